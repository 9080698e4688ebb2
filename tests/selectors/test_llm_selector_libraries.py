"""The language model as a selector among skills that others published, in small and in large libraries."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from real_libraries import LARGE, HashedWords, pool, public_skills
from scripted_ranker import Model, asked_ids, backwards, recalled
from selector_contract import HOT_MUG, ScoredParts, task

from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.llm_ranking import make_ids
from skillarena.selectors.llm_selector import LlmSelector
from skillarena.selectors.measure import measured


@pytest.mark.parametrize("benchmark", ["alfworld", "scienceworld"])
@pytest.mark.parametrize("kind", ["letters", "numbers"])
def test_real_skills_are_asked_about_in_full(benchmark: Any, kind: Any, tmp_path: Path) -> None:
    library, model = public_skills(benchmark), Model([backwards])
    parts = ScoredParts(library, HashedWords(), HeuristicParser(), tmp_path, model)
    selection = LlmSelector(parts, ids=kind).open(task(HOT_MUG)).selection
    assert asked_ids(model.seen[0]) == make_ids(30, kind)
    assert selection.details["ranking"] == recalled(selection)[::-1]
    assert selection.marks == ()
    for skill_id in recalled(selection):
        assert library.by_id[skill_id].text in model.seen[0][0]["content"]


def test_real_skills_are_trimmed_to_a_small_context(tmp_path: Path) -> None:
    model = Model([backwards], context=24_000)
    parts = ScoredParts(public_skills("alfworld"), HashedWords(), HeuristicParser(), tmp_path, model)
    selection = LlmSelector(parts).open(task(HOT_MUG)).selection
    assert selection.marks == ("bodies_trimmed",)
    assert 18_000 < len(model.seen[0][0]["content"]) <= 24_000
    assert len(model.refused) < 20


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [2_000, pytest.param(LARGE, marks=pytest.mark.long)])
def test_large_libraries_are_asked_about_as_quickly_as_small_ones(size: int, tmp_path: Path) -> None:
    model = Model([backwards])
    parts = ScoredParts(pool(size), HashedWords(), HeuristicParser(), tmp_path, model)
    selector = LlmSelector(parts)
    assert measured(selector, parts, task(HOT_MUG)).marks == ()
    start = time.process_time()
    cost = measured(selector, parts, task("put two book in desk.")).cost
    assert time.process_time() - start < 2
    assert (cost.llm_calls, cost.offline_tokens) == (1, 0)
    assert len(asked_ids(model.seen[1])) == 30
