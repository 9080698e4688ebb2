"""Scoring of a whole set: modes, groups, and everything that is missing or strange is counted."""

from __future__ import annotations

import pytest

from skillarena.selectors.retrieval.dataset import GENERIC_ONLY, Judgement, Query, Role
from skillarena.selectors.retrieval.metrics import METRICS
from skillarena.selectors.retrieval.scoring import Exam, score

CORE, AUXILIARY, RELATED = Role.CORE, Role.AUXILIARY, Role.RELATED
QUERIES = (
    Query("one", "", "home", "", (Judgement("a", 3, CORE), Judgement("a2", 1, RELATED))),
    Query("two", "", "lab", "", (Judgement("b", 3, CORE), Judgement("c", 3, CORE), Judgement("pdf", 3, AUXILIARY))),
    Query("generic", "", "lab", GENERIC_ONLY, (Judgement("pdf", 3, AUXILIARY),)),
    Query("lost", "", "lab", "", (Judgement("gone", 3, CORE),)),
)
POOL = {"a", "a2", "b", "c", "pdf", "other"}
IDS = {query.id for query in QUERIES}


def scored(exam: Exam) -> dict[str, set[str]]:
    return {item.query: set(item.truth.needed) for item in exam.queries}


def test_core_needs_core_skills_and_leaves_generic_queries_out() -> None:
    exam = Exam.of(QUERIES, "core", POOL)
    assert scored(exam) == {"one": {"a"}, "two": {"b", "c"}}
    assert exam.left_out == {"only generic skills are needed": 1, "no needed skill is in the pool": 1}
    assert exam.queries[1].truth.grades == {"b": 3, "c": 3, "pdf": 3}


def test_all_needs_auxiliary_skills_too() -> None:
    exam = Exam.of(QUERIES, "all", POOL)
    assert scored(exam) == {"one": {"a"}, "two": {"b", "c", "pdf"}, "generic": {"pdf"}}


def test_single_keeps_queries_with_one_needed_skill() -> None:
    exam = Exam.of(QUERIES, "single", POOL)
    assert scored(exam) == {"one": {"a"}, "generic": {"pdf"}}
    assert exam.left_out == {"several skills are needed or none": 1, "no needed skill is in the pool": 1}


def test_groups_are_by_what_is_in_the_pool_and_by_benchmark() -> None:
    assert Exam.of(QUERIES, "core", POOL).strata() == {"all": 2, "single": 1, "multi": 1, "home": 1, "lab": 1}
    assert Exam.of(QUERIES, "core", POOL - {"c"}).strata() == {"all": 2, "single": 2, "home": 1, "lab": 1}
    assert Exam.of(QUERIES[1:], "core", POOL).strata() == {"all": 1, "multi": 1}


def test_a_query_without_a_ranking_counts_as_zero_and_is_counted() -> None:
    exam = Exam.of(QUERIES, "core", POOL)
    scores = score(exam, IDS, {"one": ["a"]}, POOL)
    assert scores.missing == 1
    assert scores.values["all"]["Hit@1"] == (1.0, 0.0)
    assert scores.values["lab"] == dict.fromkeys(METRICS, (0.0,))


def test_an_empty_ranking_is_an_answer() -> None:
    scores = score(Exam.of(QUERIES, "core", POOL), IDS, {"one": [], "two": ["b"]}, POOL)
    assert scores.missing == 0
    assert scores.values["all"]["Recall@10"] == (0.0, 0.5)


def test_a_repeated_skill_keeps_its_first_place_and_is_counted() -> None:
    exam = Exam.of(QUERIES, "core", POOL)
    clean = score(exam, IDS, {"one": ["a2", "a"], "two": ["b", "c"]}, POOL)
    twice = score(exam, IDS, {"one": ["a2", "a2", "a", "a2"], "two": ["b", "c"]}, POOL)
    assert (twice.repeats, clean.repeats) == (2, 0)
    assert twice.values == clean.values


def test_strange_ids_are_counted() -> None:
    rankings = {"one": ["nowhere", "a"], "two": ["b"], "generic": ["pdf"], "typo": ["a"]}
    scores = score(Exam.of(QUERIES, "core", POOL), IDS, rankings, POOL)
    assert (scores.strange_skills, scores.strange_queries, scores.depth) == (1, 1, 2)
    assert scores.values["all"]["MRR@10"] == (0.5, 1.0)


def test_just_what_is_needed_is_all_found_and_misses_other_gain() -> None:
    exam = Exam.of(QUERIES, "core", POOL)
    scores = score(exam, IDS, exam.needed_only(), POOL)
    assert scores.values["all"]["Recall@10"] == (1.0, 1.0)
    assert scores.values["all"]["nDCG@10"] == pytest.approx((3 / (3 + 1 / 1.5849625), 1.63092975 / 2.13092975))
