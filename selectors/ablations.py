"""SkillReranker with one step taken out (arXiv 2607.06283, ablation study)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.execution_graph import Edges, phi
from skillarena.selectors.interface import FixedSession, Selection
from skillarena.selectors.options import check_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import Candidate, Shortlist, choose
from skillarena.selectors.skillreranker import Logits, SkillReranker, describe_candidates, describe_parse


class WithoutSplit(SkillReranker):
    """Every sub-task is a stage: one skill for each, repeats removed."""

    method = "without_split"

    def split_points(self, edges: Edges, relevance: Logits, *, n: int) -> list[int]:
        """All inner states."""
        return list(range(1, n - 1))


class _TopRanked:
    """What the ablations without a graph share: they rank all candidates once and keep the first ``top_k``."""

    method: str

    def __init__(self, parts: Parts, *, k: int = 30, top_k: int = 1) -> None:
        check_counts(k=k, top_k=top_k)
        if top_k > k:
            raise ConfigError(f"top_k={top_k} asks for more skills than the k={k} candidates", "set top_k to k or less")
        self._parts = parts
        self._top_k = top_k
        self._shortlist = Shortlist(parts, k)

    def _keep_best(
        self, candidates: Sequence[Candidate], relevance: Logits, scores: Logits, reason: str, **found: Any
    ) -> Selection:
        order = np.argsort(-scores, kind="stable")[: self._top_k].tolist()
        described = describe_candidates(candidates, relevance)
        return Selection(
            skills=tuple(
                choose(candidates[i].skill, float(scores[i]), f"Rank {rank} of {len(candidates)} by {reason}.")
                for rank, i in enumerate(order, start=1)
            ),
            marks=("parse_fallback",) if found.get("parse", {}).get("fallback") else (),
            details={
                "method": self.method,
                **found,
                "candidates": [{**row, "score": float(score)} for row, score in zip(described, scores, strict=True)],
                "chosen": [candidates[i].skill.id for i in order],
            },
        )


class WithoutParsing(_TopRanked):
    """Neither tasks nor skills are parsed: candidates are ranked by r(q, c_k) alone.

    Args:
        parts: library, embedder and reranker.
        k: candidates from coarse recall.
        top_k: skills to choose (the paper reports the mean of 1 and 2).

    Raises:
        ConfigError: a count below 1, or more skills to choose than candidates.
        LibraryError: the library has fewer than k skills.
    """

    method = "without_parsing"
    needs = ("embedder", "reranker")

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError``."""
        candidates = self._shortlist.candidates(task)
        pairs = [(task.goal, candidate.skill.text) for candidate in candidates]
        relevance = np.asarray(self._parts.reranker.score(pairs), dtype=np.float64)
        return FixedSession(self._keep_best(candidates, relevance, relevance, "relevance to the task"))


class WithoutEdges(_TopRanked):
    """Sub-tasks are parsed but there is no graph: one ranking by fit to the task and to all sub-tasks together.

    Args:
        parts: library, embedder, reranker and parser.
        k: candidates from coarse recall.
        top_k: skills to choose (the paper reports the mean of 1 and 2).

    Raises:
        ConfigError: a count below 1, or more skills to choose than candidates.
        LibraryError: the library has fewer than k skills.
    """

    method = "without_edges"

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError`` or ``BackboneError``."""
        parsed = self._parts.parser.parse_task(task)
        candidates = self._shortlist.candidates(task)
        queries = (task.goal, " ".join(parsed.subtasks))
        pairs = [(query, candidate.skill.text) for query in queries for candidate in candidates]
        relevance, joint = np.asarray(self._parts.reranker.score(pairs), dtype=np.float64).reshape(2, len(candidates))
        return FixedSession(
            self._keep_best(
                candidates,
                relevance,
                phi(relevance, joint),
                "fit to the task and its sub-tasks",
                parse=describe_parse(parsed),
            )
        )
