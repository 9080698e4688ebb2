"""Rankings of all queries of a set, scored: nothing is left out without being counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from skillarena.selectors.retrieval.dataset import GENERIC_ONLY, Query, Role
from skillarena.selectors.retrieval.metrics import METRICS, Truth, measure

Mode = Literal["core", "single", "all"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""``core``: the core skills are needed, queries that need generic ones only are left out (the published default).
``all``: auxiliary skills are needed too. ``single``: queries with a single one of either kind."""
EVERY, SINGLE, MULTI = "all", "single", "multi"
"""Strata: every query, those that need one skill of the pool, those that need several."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A query that can be scored."""

    query: str
    truth: Truth
    strata: tuple[str, ...]
    """Groups that it counts in: ``all``, and ``single`` or ``multi`` by the number of needed skills in the pool."""


@dataclass(frozen=True, slots=True)
class Exam:
    """What rankings are compared with."""

    queries: tuple[Scored, ...]
    left_out: Mapping[str, int]
    """Queries that cannot be scored, by reason."""

    @classmethod
    def of(cls, queries: Sequence[Query], mode: Mode, pool: Container[str]) -> Exam:
        """The queries of a set in a mode; judgements of skills that are not in the pool count for nothing.

        With queries of several benchmarks, each of these is a stratum too.
        """
        benchmarks = len({query.benchmark for query in queries}) > 1
        scored: list[Scored] = []
        left_out: Counter[str] = Counter()
        for query in queries:
            needed = _needed(query, mode)
            present = frozenset(skill for skill in needed if skill in pool)
            if mode == "core" and query.task_type == GENERIC_ONLY:
                left_out["only generic skills are needed"] += 1
            elif mode == "single" and len(needed) != 1:
                left_out["several skills are needed or none"] += 1
            elif not present:
                left_out["no needed skill is in the pool"] += 1
            else:
                grades = {item.skill: item.grade for item in query.judgements if item.skill in pool}
                size = SINGLE if len(present) == 1 else MULTI
                strata = (EVERY, size, *([query.benchmark] if benchmarks else []))
                scored.append(Scored(query.id, Truth(present, grades), strata))
        return cls(tuple(scored), dict(left_out))

    def strata(self) -> dict[str, int]:
        """Groups of queries with their sizes: ``all``, by number of needed skills, by benchmark."""
        sizes = Counter(stratum for query in self.queries for stratum in query.strata)
        first = [stratum for stratum in (EVERY, SINGLE, MULTI) if stratum in sizes]
        return {stratum: sizes[stratum] for stratum in dict.fromkeys((*first, *sizes))}

    def needed_only(self) -> dict[str, list[str]]:
        """The ranking of each query that holds what it needs and nothing else.

        Its nDCG is below 1 where skills that are not needed have a grade.
        """
        return {
            scored.query: sorted(scored.truth.needed, key=lambda skill: (-scored.truth.grades.get(skill, 0.0), skill))
            for scored in self.queries
        }


@dataclass(frozen=True, slots=True)
class Scores:
    """What the rankings of one method are worth."""

    values: Mapping[str, Mapping[str, tuple[float, ...]]]
    """0 to 1 of each query, by stratum and metric."""
    missing: int
    """Queries without a ranking; they count as 0 in every metric."""
    repeats: int
    """Places taken away because their skill is ranked higher already."""
    strange_skills: int
    """Places of skills that are not in the pool; each counts as a wrong skill."""
    strange_queries: int
    """Rankings of queries that are not in the set; they count for nothing."""
    depth: int
    """Places of the longest ranking."""


def score(exam: Exam, queries: Container[str], rankings: Mapping[str, Sequence[str]], pool: Container[str]) -> Scores:
    """Score the rankings of one method.

    Args:
        exam: what they are compared with.
        queries: ids of all queries of the set, those left out of the exam included.
        rankings: skill ids, best first, by query.
        pool: ids of all skills.
    """
    missing = repeats = strange_skills = depth = 0
    values: dict[str, dict[str, list[float]]] = {stratum: {name: [] for name in METRICS} for stratum in exam.strata()}
    for scored in exam.queries:
        raw = rankings.get(scored.query)
        ranking = list(dict.fromkeys(raw or ()))
        missing += raw is None
        repeats += len(raw or ()) - len(ranking)
        strange_skills += sum(skill not in pool for skill in ranking)
        depth = max(depth, len(ranking))
        measured = measure(ranking, scored.truth) if raw is not None else dict.fromkeys(METRICS, 0.0)
        for stratum in scored.strata:
            for name, value in measured.items():
                values[stratum][name].append(value)
    frozen = {stratum: {name: tuple(column) for name, column in columns.items()} for stratum, columns in values.items()}
    strange_queries = sum(query not in queries for query in rankings)
    return Scores(frozen, missing, repeats, strange_skills, strange_queries, depth)


def _needed(query: Query, mode: Mode) -> set[str]:
    roles = {Role.CORE} if mode == "core" else {Role.CORE, Role.AUXILIARY}
    return {judgement.skill for judgement in query.judgements if judgement.role in roles}
