"""No skills, nearest skills, all skills."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selector_contract import HOT_MUG, SKILLS, ScoredParts, SelectorContract, WordEmbedder, task, up_to

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.selectors.baselines import NoSkills, Vanilla, VectorTopK
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selector


class TestNoSkills(SelectorContract):
    at_least = at_most = 0

    def make(self, parts: Any) -> Selector:
        return NoSkills(parts)


class TestVectorTopK(SelectorContract):
    at_least = at_most = 2

    def make(self, parts: Any) -> Selector:
        return VectorTopK(parts, top_k=up_to(2, parts))


class TestVanilla(SelectorContract):
    at_most = 1000

    def make(self, parts: Any) -> Selector:
        return Vanilla(parts)


@pytest.fixture
def parts(tmp_path: Path) -> ScoredParts:
    return ScoredParts(SKILLS, WordEmbedder(), HeuristicParser(), tmp_path)


def test_vector_orders_by_cosine_and_breaks_ties_by_library_order(parts: ScoredParts) -> None:
    selection = VectorTopK(parts, top_k=6).open(task("mug mug mug")).selection
    scores = [skill.score for skill in selection.skills]
    assert scores == sorted(scores, reverse=True)
    assert selection.skills[0].id == "find"
    assert [row["cosine"] for row in selection.details["candidates"]] == scores


def test_vector_asks_no_reranker_and_no_parser(parts: ScoredParts) -> None:
    VectorTopK(parts, top_k=1).open(task(HOT_MUG))
    assert parts.reranker.scored + parts.reranker.cached == 0
    assert parts.parser.online.llm_calls == 0


def test_vanilla_gives_the_library_in_its_order(parts: ScoredParts) -> None:
    selection = Vanilla(parts).open(task(HOT_MUG)).selection
    assert [skill.id for skill in selection.skills] == [skill.id for skill in SKILLS.skills]
    assert selection.marks == ()


def test_vanilla_ends_before_the_first_skill_that_does_not_fit_and_says_so(parts: ScoredParts) -> None:
    budget = sum(len(skill.text) for skill in SKILLS.skills[:3])
    exact = Vanilla(parts, max_chars=budget).open(task(HOT_MUG)).selection
    short = Vanilla(parts, max_chars=budget - 1).open(task(HOT_MUG)).selection
    assert [len(exact.skills), len(short.skills)] == [3, 2]
    assert exact.marks == short.marks == ("library_truncated",)
    assert (exact.details["fitting"], exact.details["library"]) == (3, 6)


@pytest.mark.parametrize(
    ("make", "option"),
    [(lambda p: VectorTopK(p, top_k=0), "top_k"), (lambda p: Vanilla(p, max_chars=0), "max_chars")],
)
def test_counts_below_one_are_refused(parts: ScoredParts, make, option: str) -> None:
    with pytest.raises(ConfigError, match=f"{option} must be a whole number of at least 1, got 0"):
        make(parts)


def test_more_skills_than_the_library_has_are_refused_with_both_numbers(parts: ScoredParts) -> None:
    with pytest.raises(LibraryError, match=r"top_k=7 .* 6") as refused:
        VectorTopK(parts, top_k=7)
    assert "set selector.top_k=6 or less" in refused.value.fix
