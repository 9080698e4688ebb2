"""From an instruction and the present state to ranked candidates: bounded recall, decision graph, network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from skillarena.selectors.interface import Skill
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import Shortlist
from skillarena.selectors.spem.decision_graph import DecisionGraph, Matrix, build_decision_graph
from skillarena.selectors.spem.gnn import Weights, utilities
from skillarena.selectors.spem.links import Links, facets, link
from skillarena.selectors.spem.procedure import skill_order
from skillarena.selectors.spem.statistics import Statistics, features
from skillarena.selectors.spem.templates import Template

RECENT = 3
"""Latest commands that make up one node (ours)."""
_FACETS_KEPT = 1024
"""Skills whose facets stay in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The candidates of a moment, in order of recall, and the graph over them."""

    candidates: tuple[Skill, ...]
    links: Links
    graph: DecisionGraph

    def ranking(self, weights: Weights) -> list[tuple[int, float]]:
        """(position among the candidates, utility), best first, ties in order of recall."""
        values = utilities(weights, self.graph)
        return [(int(at), float(values[at])) for at in np.argsort(-values, kind="stable")]


class Decisions:
    """Makes decisions over one library.

    Args:
        parts: library and embedder.
        size: candidates, K.
    """

    def __init__(self, parts: Parts, size: int) -> None:
        self.size = size
        self._parts = parts
        self._shortlist = Shortlist(parts, size)
        self._facets = lru_cache(maxsize=_FACETS_KEPT)(facets)

    @property
    def dimension(self) -> int:
        """Numbers in an embedding. Raises ``RerankerError``."""
        return int(self.vectors(["dimension"], "query").shape[1])

    def recall(self, goal: str) -> list[Skill]:
        """The bounded candidates of an instruction, nearest first. Raises ``RerankerError``."""
        return [candidate.skill for candidate in self._shortlist.nearest(goal)]

    def decide(
        self,
        goal: str,
        candidates: Sequence[Skill],
        statistics: Statistics,
        order: set[tuple[str, str]],
        state: tuple[str, Sequence[str]] | None = None,
    ) -> Decision:
        """The decision graph of a moment. Raises ``RerankerError``.

        Args:
            goal: the instruction.
            candidates: what to rank.
            statistics: of all skills.
            order: pairs of skill ids of which the second builds on the first, from templates.
            state: last observation and all commands so far; None before the episode.
        """
        ids = [skill.id for skill in candidates]
        links = link(ids, [self._facets(skill) for skill in candidates], order)
        task, *contexts = self.vectors([goal, *(context_texts(*state) if state else ())], "query")
        skills = self.vectors([skill.metadata for skill in candidates], "document")
        graph = build_decision_graph(task, contexts, skills, features(statistics, ids), links)
        return Decision(tuple(candidates), links, graph)

    def vectors(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Matrix:
        """float32[n, d], unit length. Raises ``RerankerError``.

        Behind a cache, texts that are soon needed one by one are quicker when asked for together first.
        """
        return self._parts.embedder.encode(texts, kind)


def known_order(templates: Sequence[Template]) -> set[tuple[str, str]]:
    """Pairs of skills of which the second builds on the first in a remembered procedure."""
    return {pair for template in templates for pair in skill_order(template.procedure)}


def nearest_skill(vectors: Matrix, skills: Mapping[str, Matrix]) -> list[str]:
    """For each command's vector, the id of the nearest skill; the earlier one where they tie. Empty without skills."""
    if not skills:
        return [""] * len(vectors)
    ids = list(skills)
    cosines = np.round(vectors @ np.stack(list(skills.values())).T, 6)
    return [ids[at] for at in np.argmax(cosines, axis=1)]


def context_texts(observation: str, actions: Sequence[str]) -> list[str]:
    """One text a node; before the first command there are no latest ones."""
    return [observation, *(["; ".join(actions[-RECENT:])] if actions else [])]
