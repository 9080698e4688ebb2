"""SkillRouter (arXiv 2603.22455): skills found by their whole text and reranked by a model that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection, Skill
from skillarena.selectors.options import check_choice, check_counts, check_flags
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import Candidate, Shortlist, choose

Document = Literal["flat_full", "flat_nd"]
DOCUMENTS = ("flat_full", "flat_nd")
RERANKED_DESCRIPTION, RERANKED_BODY = 500, 2000
"""Characters of a skill that the reranker was trained to read."""


def encoded_text(skill: Skill, *, description_chars: int, body_chars: int) -> str:
    """What the encoder reads of a skill; both bars stay where a field is empty."""
    return f"{skill.name} | {skill.description[:description_chars]} | {skill.body[:body_chars]}"


def reranked_text(skill: Skill, document: Document) -> str:
    """What the reranker reads of a skill: ``flat_full``, or ``flat_nd`` without the body."""
    head = f"{skill.name} | {skill.description[:RERANKED_DESCRIPTION]}"
    return f"{head} | {skill.body[:RERANKED_BODY]}" if document == "flat_full" else head


class SkillRouter:
    """The nearest skills by full text, then the best of them by relevance.

    The published models are ``embedder=skillrouter_embedding_0_6b`` and ``reranker=skillrouter_reranker_0_6b``, which
    add the instructions they were trained with; any others work too. The defaults are those of the published
    evaluation. The encoder reads the instruction cut to ``query_chars``, the reranker all of it.

    Args:
        parts: library, embedder and, when reranking, reranker.
        recall: candidates that the encoder hands on.
        top_k: skills to choose.
        rerank: False keeps the encoder's order (the paper's ablation).
        document: what the reranker reads, see ``reranked_text``.
        query_chars: characters of the instruction that the encoder reads.
        description_chars: likewise of a description.
        body_chars: likewise of a body.

    Raises:
        ConfigError: an option makes no sense, or more skills to choose than candidates.
        LibraryError: the library has fewer than ``recall`` skills.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        recall: int = 20,
        top_k: int = 1,
        rerank: bool = True,
        document: Document = "flat_full",
        query_chars: int = 2000,
        description_chars: int = 500,
        body_chars: int = 8000,
    ) -> None:
        check_flags(rerank=rerank)
        check_counts(top_k=top_k, query_chars=query_chars, description_chars=description_chars, body_chars=body_chars)
        check_choice("document", document, DOCUMENTS)
        text = partial(encoded_text, description_chars=description_chars, body_chars=body_chars)
        self._shortlist = Shortlist(parts, recall, option="recall", text=text)
        if top_k > recall:
            raise ConfigError(f"top_k={top_k} asks for more skills than recall={recall}", "set top_k to recall or less")
        self.needs: tuple[str, ...] = ("embedder", "reranker") if rerank else ("embedder",)
        self._parts = parts
        self._top_k = top_k
        self._rerank = rerank
        self._document: Document = document
        self._query_chars = query_chars

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError``."""
        found = self._shortlist.nearest(task.goal[: self._query_chars])
        scores = self._relevance(task, found) if self._rerank else [candidate.cosine for candidate in found]
        # Stable: where the reranker sees no difference, the encoder's order stands.
        order = np.argsort(-np.asarray(scores), kind="stable").tolist()
        judge = "the reranker" if self._rerank else "similarity of whole text and instruction"
        return FixedSession(
            Selection(
                skills=tuple(
                    choose(found[i].skill, scores[i], f"Rank {rank} of {len(found)} by {judge}.")
                    for rank, i in enumerate(order[: self._top_k], start=1)
                ),
                details={
                    "method": "skillrouter" if self._rerank else "skillrouter_encoder",
                    "candidates": [
                        {
                            "id": candidate.skill.id,
                            "name": candidate.skill.name,
                            "cosine": candidate.cosine,
                            "score": score,
                        }
                        for candidate, score in zip(found, scores, strict=True)
                    ],
                    "ranking": [found[i].skill.id for i in order],
                    "chosen": [found[i].skill.id for i in order[: self._top_k]],
                },
            )
        )

    def _relevance(self, task: Task, found: Sequence[Candidate]) -> list[float]:
        """Logits of the candidates."""
        pairs = [(task.goal, reranked_text(candidate.skill, self._document)) for candidate in found]
        return [float(logit) for logit in self._parts.reranker.score(pairs)]
