"""Retrieval metrics against values worked out by hand, the published evaluation's shape, and scikit-learn."""

from __future__ import annotations

import math
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.selectors.retrieval.dataset import GENERIC_ONLY, Judgement, Query, Role
from skillarena.selectors.retrieval.metrics import METRICS, Truth, measure, ndcg
from skillarena.selectors.retrieval.scoring import Exam, score

SHAPE = """
    1,0,2 5,0,9 1,0,2 1,0,1 4,0,7 2,0,4 2,0,4 1,0,1 1,0,2 4,0,7 4,1,8 1,0,2 1,0,2 3,0,2 4,0,7 1,0,2 5,0,8
    2,1,5 4,0,8 3,0,6 2,0,4 6,0,12 3,0,6 1,1,3 3,0,6 1,0,2 3,0,6 2,0,4 3,0,5 5,0,9 1,2,3 1,0,2 3,2,8 1,0,0
    4,0,8 1,1,3 2,4,11 1,1,4 2,1,6 1,1,4 3,0,5 3,0,5 3,0,6 6,0,12 2,3,8 1,1,3 3,0,5 1,0,2 4,0,7 4,0,6 2,1,6
    6,0,10 1,0,2 4,0,8 2,0,4 3,0,6 2,0,4 4,1,9 3,0,6 1,1,3 3,0,6 4,0,8 5,0,9 3,0,6 3,0,4 1,0,2 2,0,4 2,0,4
    6,0,12 4,0,8 3,0,5 7,0,14 1,0,2 1,0,2 1,1,4
"""
"""Core and auxiliary skills (of grade 3) and degraded ones (of grade 1) of SkillRouter's 75 scored tasks."""
TRUTH = Truth(frozenset({"a", "b"}), {"a": 3.0, "b": 3.0, "c": 1.0, "d": 3.0})


def published_queries() -> list[Query]:
    """75 invented queries with as many judged skills as the published ones, and 12 with generic skills only."""
    queries = []
    for number, entry in enumerate(SHAPE.split()):
        core, auxiliary, degraded = map(int, entry.split(","))
        judgements = [
            *(Judgement(f"gt/{number}-{i}", 3, Role.CORE) for i in range(core)),
            *(Judgement(f"gt/aux-{number}-{i}", 3, Role.AUXILIARY) for i in range(auxiliary)),
            *(Judgement(f"degraded/{number}-{i}", 1, Role.RELATED) for i in range(degraded)),
        ]
        queries.append(Query(f"q{number}", "do", "b", "mixed" if auxiliary else "clean", tuple(judgements)))
    generic = (Judgement("gt/aux", 3, Role.AUXILIARY),)
    return queries + [Query(f"g{i}", "do", "b", GENERIC_ONLY, generic) for i in range(12)]


def means(prefix: tuple[str, ...], *, degraded: bool) -> tuple[dict[str, float], dict[str, int]]:
    """Means for rankings of the core skills in order, behind ``prefix``."""
    queries = published_queries()
    pool = {item.skill for query in queries for item in query.judgements}
    if not degraded:
        pool = {skill for skill in pool if skill.startswith("gt/")}
    exam = Exam.of(queries, "core", pool)
    rankings = {
        query.id: [*prefix, *(item.skill for item in query.judgements if item.role is Role.CORE)] for query in queries
    }
    scores = score(exam, set(rankings), rankings, pool)
    return {name: fmean(column) for name, column in scores.values["all"].items()}, exam.strata()


def test_core_skills_in_order_give_the_published_values() -> None:
    found, strata = means((), degraded=True)
    assert strata == {"all": 75, "single": 24, "multi": 51}
    expected = {
        "Hit@1": 1.0,
        "MRR@10": 1.0,
        "nDCG@1": 1.0,
        "nDCG@3": 0.873892,
        "nDCG@10": 0.728669,
        "Precision@3": 0.728889,
        "Recall@10": 1.0,
        "Recall@20": 1.0,
        "Recall@50": 1.0,
        "FullCoverage@3": 0.72,
        "FullCoverage@5": 0.933333,
        "FullCoverage@10": 1.0,
    }
    assert found == pytest.approx(expected, abs=1e-6)


def test_worse_copies_that_are_not_in_the_pool_gain_nothing() -> None:
    found, _ = means((), degraded=False)
    assert (found["nDCG@3"], found["nDCG@10"]) == pytest.approx((0.941175, 0.927525), abs=1e-6)


def test_an_unknown_skill_ahead_costs_a_place() -> None:
    found, _ = means(("nowhere",), degraded=False)
    values = [
        found[name] for name in ("nDCG@3", "nDCG@10", "MRR@10", "Precision@3", "FullCoverage@3", "FullCoverage@5")
    ]
    assert values == pytest.approx([0.552898, 0.657050, 0.5, 0.56, 0.493333, 0.88], abs=1e-6)


def test_one_ranking_by_hand() -> None:
    found = measure(["x", "c", "b", "a"], TRUTH)
    ideal = 3 + 3 / math.log2(3) + 3 / 2
    assert found == pytest.approx(
        {
            "Hit@1": 0,
            "MRR@10": 1 / 3,
            "nDCG@1": 0,
            "nDCG@3": (1 / math.log2(3) + 3 / 2) / ideal,
            "nDCG@10": (1 / math.log2(3) + 3 / 2 + 3 / math.log2(5)) / (ideal + 1 / math.log2(5)),
            "Precision@3": 1 / 3,
            "Recall@10": 1,
            "Recall@20": 1,
            "Recall@50": 1,
            "FullCoverage@3": 0,
            "FullCoverage@5": 1,
            "FullCoverage@10": 1,
        }
    )


def test_nothing_ranked_is_worth_nothing() -> None:
    assert set(measure([], TRUTH).values()) == {0.0}


def test_where_nothing_is_needed_all_of_it_is_covered_and_nothing_gained() -> None:
    found = measure(["a"], Truth(frozenset(), {}))
    assert {name for name, value in found.items() if value} == {"FullCoverage@3", "FullCoverage@5", "FullCoverage@10"}


def test_a_repeated_skill_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        measure(["a", "b", "a"], TRUTH)


skills = st.sampled_from([f"s{i}" for i in range(15)])
rankings = st.lists(skills, unique=True)
truths = st.dictionaries(skills, st.floats(0.1, 5), min_size=1).flatmap(
    lambda grades: st.builds(Truth, st.frozensets(st.sampled_from(sorted(grades)), min_size=1), st.just(grades))
)


@given(rankings, truths)
def test_every_metric_is_a_share_and_grows_with_depth(ranking: list[str], truth: Truth) -> None:
    found = measure(ranking, truth)
    assert tuple(found) == METRICS
    assert all(0 <= value <= 1 + 1e-12 for value in found.values())
    assert found["Recall@10"] <= found["Recall@20"] <= found["Recall@50"]
    assert found["FullCoverage@3"] <= found["FullCoverage@5"] <= found["FullCoverage@10"]
    assert found["Hit@1"] <= found["MRR@10"]


@given(truths)
def test_only_the_best_order_of_all_graded_skills_is_perfect(truth: Truth) -> None:
    best = sorted(truth.grades, key=lambda skill: -truth.grades[skill])
    assert ndcg(best, truth, 10) == pytest.approx(1)
    assert ndcg(best[::-1], truth, 10) <= 1 + 1e-12


@given(rankings, truths)
def test_a_needed_skill_put_first_never_hurts(ranking: list[str], truth: Truth) -> None:
    best = min(truth.needed)
    before, after = measure(ranking, truth), measure([best, *(skill for skill in ranking if skill != best)], truth)
    assert after["Hit@1"] == after["MRR@10"] == 1
    assert after["Recall@50"] >= before["Recall@50"]


@settings(deadline=None)  # the first example imports scikit-learn
@given(st.lists(st.floats(0, 5), min_size=2, max_size=15), st.integers(1, 12))
def test_ndcg_agrees_with_scikit_learn(gains: list[float], k: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    names = [f"s{i}" for i in range(len(gains))]
    truth = Truth(frozenset(), dict(zip(names, gains, strict=True)))
    scores = list(range(len(gains), 0, -1))  # the order given is the ranking
    assert ndcg(names, truth, k) == pytest.approx(sklearn.ndcg_score([gains], [scores], k=k))
