"""SkillReranker (arXiv 2607.06283): states of a task, skills as edges between them, one skill for each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillarena.envs.interface import Task
from skillarena.selectors.execution_graph import (
    STAGE_CANDIDATES,
    Edges,
    Stage,
    StageCandidates,
    build_edges,
    flow,
    phi,
    sigmoid,
    split_points,
    stage_winners,
    stages,
)
from skillarena.selectors.interface import FixedSession, ParsedSkill, ParsedTask, Reranker, SelectedSkill, Selection
from skillarena.selectors.options import check_choice
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import Candidate, Shortlist, choose

Logits = NDArray[np.float64]


class SkillReranker:
    """Chooses at least one skill and at most one for each stage of the task.

    Args:
        parts: library, embedder, reranker and parser.
        k: candidates from coarse recall (paper: 30).
        stage_candidates: ``all`` candidates compete in each stage, or only those whose edge is ``overlapping`` it; the
            paper leaves this open.

    Raises:
        ConfigError: an option makes no sense.
        LibraryError: the library has fewer than k skills.
    """

    method = "skillreranker"

    def __init__(self, parts: Parts, *, k: int = 30, stage_candidates: StageCandidates = "all") -> None:
        check_choice("stage_candidates", stage_candidates, STAGE_CANDIDATES)
        self._parts = parts
        self._shortlist = Shortlist(parts, k)
        self._stage_candidates = stage_candidates

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError`` or ``BackboneError``."""
        parser, reranker = self._parts.parser, self._parts.reranker
        parsed = parser.parse_task(task)
        n = len(parsed.states)
        candidates = self._shortlist.candidates(task)
        documents = [candidate.skill.text for candidate in candidates]
        skills = [parser.parse_skill(candidate.skill) for candidate in candidates]

        relevance, before, after = score_states(reranker, task.goal, documents, parsed.states, skills)
        edges = build_edges(before, after)
        splits = self.split_points(edges, relevance, n=n)
        texts = {(a, b): " ".join(parsed.subtasks[a:b]) for a, b in stages(splits, n=n)}
        stage_scores = score_stages(reranker, texts, documents)
        winners = stage_winners(*edges, relevance, stage_scores, candidates=self._stage_candidates)

        working = _Working(candidates, parsed, skills, relevance, edges, splits, texts, stage_scores, winners)
        return FixedSession(
            Selection(
                skills=working.chosen(),
                marks=working.marks(),
                details={"method": self.method, **working.details()},
            )
        )

    def split_points(self, edges: Edges, relevance: Logits, *, n: int) -> list[int]:
        """The inner states that bound stages."""
        return split_points(*edges, relevance, n=n)


def score_states(
    reranker: Reranker, goal: str, documents: Sequence[str], states: Sequence[str], skills: Sequence[ParsedSkill]
) -> tuple[Logits, Logits, Logits]:
    """Everything the graph is built from, in one call of the reranker.

    Returns:
        Raw logits: relevance r(q, c_k) float[K], preconditions r(s_i, p_k) float[K, n-1] (NaN rows where p_k is None),
        completions r(s_j, e_k) float[K, n]. No edge ends in s_0, so that column is not scored but -inf.
    """
    starts, ends = states[:-1], states[1:]
    required = [k for k, skill in enumerate(skills) if skill.precondition is not None]
    pairs = [(goal, document) for document in documents]
    pairs += [(state, str(skills[k].precondition)) for k in required for state in starts]
    pairs += [(state, skill.completion) for skill in skills for state in ends]
    logits = np.asarray(reranker.score(pairs), dtype=np.float64)
    relevance, given, reached = np.split(logits, np.cumsum([len(documents), len(required) * len(starts)]))
    before = np.full((len(skills), len(starts)), np.nan)
    before[required] = given.reshape(len(required), len(starts))
    after = np.full((len(skills), len(states)), -np.inf)
    after[:, 1:] = reached.reshape(len(skills), len(ends))
    return relevance, before, after


def score_stages(reranker: Reranker, texts: Mapping[Stage, str], documents: Sequence[str]) -> dict[Stage, Logits]:
    """Raw logits r(tau, c_k) float[K] for the text tau of each stage, in one call of the reranker."""
    if not texts:
        return {}
    pairs = [(text, document) for text in texts.values() for document in documents]
    logits = np.asarray(reranker.score(pairs), dtype=np.float64).reshape(len(texts), len(documents))
    return dict(zip(texts, logits, strict=True))


def describe_parse(parsed: ParsedTask) -> dict[str, Any]:
    """A parse as plain data."""
    return {"subtasks": list(parsed.subtasks), "states": list(parsed.states), "fallback": parsed.fallback}


def describe_candidates(candidates: Sequence[Candidate], relevance: Logits) -> list[dict[str, Any]]:
    """Candidates with the logit rho and the weight w of their relevance as plain data."""
    return [
        {
            "id": candidate.skill.id,
            "name": candidate.skill.name,
            "cosine": candidate.cosine,
            "rho": float(rho),
            "w": float(sigmoid(rho)),
        }
        for candidate, rho in zip(candidates, relevance, strict=True)
    ]


@dataclass(frozen=True)
class _Working:
    """All that was computed for one task, told as a selection."""

    candidates: Sequence[Candidate]
    parsed: ParsedTask
    skills: Sequence[ParsedSkill]
    relevance: Logits
    edges: Edges
    splits: Sequence[int]
    texts: Mapping[Stage, str]
    stage_scores: Mapping[Stage, Logits]
    winners: Mapping[Stage, int]

    def chosen(self) -> tuple[SelectedSkill, ...]:
        """The winners in stage order, each with the first stage it won."""
        first_won: dict[int, Stage] = {}
        for stage, index in self.winners.items():
            first_won.setdefault(index, stage)
        return tuple(
            choose(
                self.candidates[index].skill,
                score=float(phi(self.relevance[index], self.stage_scores[stage][index])),
                reason=f"Best of {len(self.candidates)} candidates for: {self.texts[stage]}",
            )
            for index, stage in first_won.items()
        )

    def marks(self) -> tuple[str, ...]:
        unusual = {
            "parse_fallback": self.parsed.fallback,
            "skill_parse_fallback": any(skill.fallback for skill in self.skills),
            "empty_graph": not self.edges.keep.any(),
        }
        return tuple(mark for mark, present in unusual.items() if present)

    def details(self) -> dict[str, Any]:
        nodes = flow(*self.edges, self.relevance, n=len(self.parsed.states))
        return {
            "parse": describe_parse(self.parsed),
            "candidates": [
                {**candidate, **self._describe_edge(k)}
                for k, candidate in enumerate(describe_candidates(self.candidates, self.relevance))
            ],
            "skill_parse_fallbacks": sum(skill.fallback for skill in self.skills),
            "flow": {name: values.tolist() for name, values in nodes._asdict().items()},
            "splits": list(self.splits),
            "stages": [self._describe_stage(stage) for stage in self.texts],
            "chosen": [skill.id for skill in self.chosen()],
        }

    def _describe_edge(self, k: int) -> dict[str, Any]:
        return {
            "src": int(self.edges.src[k]),
            "tgt": int(self.edges.tgt[k]),
            "keep": bool(self.edges.keep[k]),
            "precondition": self.skills[k].precondition,
            "completion": self.skills[k].completion,
            "fallback": self.skills[k].fallback,
        }

    def _describe_stage(self, stage: Stage) -> dict[str, Any]:
        return {
            "start": stage[0],
            "end": stage[1],
            "text": self.texts[stage],
            "logits": self.stage_scores[stage].tolist(),
            "phi": phi(self.relevance, self.stage_scores[stage]).tolist(),
            "chosen": self.candidates[self.winners[stage]].skill.id if stage in self.winners else None,
        }
