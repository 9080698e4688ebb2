"""Graph of Skills (arXiv 2604.05333): seeds by meaning and words, a walk over typed edges, a bundle that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.graph_of_skills.budget import fitting, members
from skillarena.selectors.graph_of_skills.cost import indexing
from skillarena.selectors.graph_of_skills.edges import ORIENTATIONS, Orientation
from skillarena.selectors.graph_of_skills.graph import (
    EXTRACTIONS,
    LINKINGS,
    Extraction,
    Graph,
    GraphMaker,
    Linking,
    Recipe,
)
from skillarena.selectors.graph_of_skills.pagerank import personalised_pagerank
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.graph_of_skills.rerank import rank_bonus
from skillarena.selectors.graph_of_skills.seeds import Seed, choose_seeds, lexical_pool, semantic_pool
from skillarena.selectors.interface import FixedSession, Indexing, SelectedSkill, Selection, Skill
from skillarena.selectors.options import check_choice, check_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import choose

_LONGEST_RANKING = 100


@dataclass(frozen=True, slots=True)
class _Member:
    """A node of the bundle."""

    node: int
    score: float
    """R with the walk's share and the seed's rank: what the bundle is ordered by."""
    walk: float
    """Share of the walk, what the bundle is picked by."""
    seed: int | None
    """Rank among the seeds, from 1; None: reached through the graph."""
    payload: str


class GraphOfSkills:
    """Chooses skills that a walk from the best matches reaches most often, in order of how well they match.

    Args:
        parts: library and embedder, and the language model where ``extraction`` or ``linking`` asks it.
        orientation: ``paper`` follows edges in their direction; ``released`` behaves as the public code, which loses
            directions and adds edges between near-duplicates. Results are comparable with one or the other.
        extraction: who reads inputs, outputs, tags, tooling and examples out of a skill: ``rules``, which find them
            only where a document gives them under their names, or the ``llm``, asked once a skill.
        linking: ``none`` leaves dependencies found by rule; ``llm`` asks about further relations, once a skill.
        seeds: nodes that the walk starts from (released code: 5).
        top_n: skills that the walk picks (released code: 8, and 4 in its ALFWorld runs).
        top_k: how many of them, the best first, the agent gets (3 in those runs).
        max_chars: characters of the bundle that decides how many of ``top_n`` fit, each skill counting with at most
            2,400 (released code: 12,000). The agent reads those skills whole, as with every other method.

    Raises:
        ConfigError: an option makes no sense.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        orientation: Orientation = "paper",
        extraction: Extraction = "rules",
        linking: Linking = "none",
        seeds: int = 5,
        top_n: int = 4,
        top_k: int = 3,
        max_chars: int = 12_000,
    ) -> None:
        check_choice("orientation", orientation, ORIENTATIONS)
        check_choice("extraction", extraction, EXTRACTIONS)
        check_choice("linking", linking, LINKINGS)
        check_counts(seeds=seeds, top_n=top_n, top_k=top_k, max_chars=max_chars)
        if top_k > top_n:
            raise ConfigError(
                f"top_k={top_k} asks for more skills than the {top_n} that the walk picks", f"set top_n={top_k} or more"
            )
        self._parts = parts
        self._recipe = Recipe(orientation, extraction, linking)
        self._seeds, self._top_n, self._top_k, self._max_chars = seeds, top_n, top_k, max_chars

    @property
    def needs(self) -> tuple[str, ...]:
        """The models it reads."""
        return ("embedder", "llm") if "llm" in (self._recipe.extraction, self._recipe.linking) else ("embedder",)

    def indexing(self) -> Indexing | None:
        """The LLM calls that the first use of the library takes at most; None when it takes none."""
        return indexing(self._parts.library, self._recipe)

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError``, ``BackboneError`` or ``LibraryError``."""
        graph, skills = self._graph, self._parts.library.skills
        query = Query.of_instruction(task.goal)
        base = graph.scores.of(query)
        seeds = self._seed(graph, query, task.goal, base)
        walk = personalised_pagerank(graph.flow, _restart(seeds, len(skills)))
        by_walk = np.argsort(walk, kind="stable")[::-1]  # of equal nodes the last comes first, as in the released code
        found = members(by_walk, lambda node: skills[node], top_n=self._top_n, max_chars=self._max_chars)
        ranks = {seed.node: rank for rank, seed in enumerate(seeds, start=1)}
        scores = {node: float(base[node] + walk[node]) + rank_bonus(ranks.get(node)) for node, _ in found}
        bundle = [_Member(node, scores[node], float(walk[node]), ranks.get(node), text) for node, text in found]
        bundle.sort(key=lambda member: (-member.score, -member.walk))
        texts = [member.payload for member in bundle]
        # The released code gives nothing where the instruction alone fills the bundle.
        bundle = bundle[: max(1, fitting(texts, f"# Skill bundle for query: {task.goal}", self._max_chars))]
        return FixedSession(self._selection(graph, query, seeds, bundle, walk, by_walk))

    def _seed(self, graph: Graph, query: Query, goal: str, base: NDArray[np.float64]) -> list[Seed]:
        size = len(base)
        nearest = graph.recall.top(query.embedded or goal, min(semantic_pool(self._seeds), size))
        tokens = query.tokens
        overlap = graph.lexicon.counts("all", tokens) / max(len(tokens), 1)
        lexical = lexical_pool(overlap, base, self._seeds)
        return choose_seeds([node for node, _ in nearest], lexical, base, self._seeds)

    @cached_property
    def _graph(self) -> Graph:
        return GraphMaker(self._parts, self._recipe).make()

    def _selection(
        self,
        graph: Graph,
        query: Query,
        seeds: Sequence[Seed],
        bundle: Sequence[_Member],
        walk: NDArray[np.float64],
        by_walk: NDArray[np.int64],
    ) -> Selection:
        skills = self._parts.library.skills
        inside = [member.node for member in bundle]
        reached = [int(node) for node in by_walk[: _LONGEST_RANKING + len(bundle)] if walk[node] > 0]
        ranking = list(dict.fromkeys((*inside, *reached)))[:_LONGEST_RANKING]
        chosen = bundle[: self._top_k]
        return Selection(
            skills=tuple(_chosen(skills[member.node], place, member) for place, member in enumerate(chosen, start=1)),
            marks=_marks(graph, [member.node for member in chosen]),
            details={
                "method": "graph_of_skills",
                **asdict(self._recipe),
                "graph": {
                    "nodes": len(skills),
                    "edges": graph.edges.by_kind(),
                    "near_duplicates": len(graph.duplicates),
                    "fields_not_extracted": len(graph.unread),
                    "links_not_answered": len(graph.unrelated),
                },
                "query": {"goal": query.goal, "artifacts": list(query.artifacts), "keywords": list(query.keywords)},
                "seeds": [
                    {
                        "id": skills[seed.node].id,
                        "weight": seed.weight,
                        "score": seed.score,
                        "semantic_rank": seed.semantic_rank,
                        "lexical_rank": seed.lexical_rank,
                    }
                    for seed in seeds
                ],
                "bundle": [
                    {
                        "id": skills[member.node].id,
                        "name": skills[member.node].name,
                        "score": member.score,
                        "walk": member.walk,
                        "seed": member.seed,
                        "chars": len(member.payload),
                    }
                    for member in bundle
                ],
                "relations": [
                    {
                        "source": skills[edge.source].id,
                        "target": skills[edge.target].id,
                        "type": edge.kind,
                        "weight": edge.weight,
                    }
                    for edge in graph.edges.among(inside)
                ],
                "ranking": [skills[node].id for node in ranking],
                "chosen": [skills[member.node].id for member in chosen],
            },
        )


def _restart(seeds: Sequence[Seed], size: int) -> NDArray[np.float64]:
    restart = np.zeros(size)
    restart[[seed.node for seed in seeds]] = [seed.weight for seed in seeds]
    return restart


def _chosen(skill: Skill, place: int, member: _Member) -> SelectedSkill:
    origin = f"seed {member.seed}" if member.seed else "reached through the graph"
    return choose(skill, member.score, f"Rank {place} by words, walk and seed; {origin}.")


def _marks(graph: Graph, chosen: Sequence[int]) -> tuple[str, ...]:
    found = {
        "unlinked": not len(graph.edges) and not len(graph.duplicates),
        "skill_parse_fallback": not graph.unread.isdisjoint(chosen),
        "links_missing": not graph.unrelated.isdisjoint(chosen),
    }
    return tuple(mark for mark, present in found.items() if present)
