"""What a case study takes out of selections of every method."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from case_factory import edges_selection, skill

import skillarena.conf
from skillarena.conf.errors import ConfigError, DataError
from skillarena.orchestration.assembly import build_selector
from skillarena.orchestration.report.case_model import CaseStudy, case_study
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selection
from skillarena.selectors.measure import measured
from skillarena.selectors.word_ranker import WordRanker

SELECTORS = Path(skillarena.conf.__file__).parent / "selector"
BASIC = {
    path.stem: section
    for path in SELECTORS.glob("*.yaml")
    if "defaults" not in (section := yaml.safe_load(path.read_text()))
}


def selected(name: str, folder: Path) -> Selection:
    """What a shipped method chooses with embeddings of hashed words and no model."""
    from selector_contract import HOT_MUG, ScoredParts, WordEmbedder, bundled, task

    parts = ScoredParts(bundled(), WordEmbedder(), HeuristicParser(), folder, WordRanker())
    goal = replace(task(HOT_MUG), task_type="pick_heat_then_place_in_recep")
    return measured(build_selector(BASIC[name], parts), parts, goal)  # type: ignore[arg-type]


def study_of(details: dict[str, Any], *chosen: str) -> CaseStudy:
    return case_study(Selection(tuple(map(skill, chosen)), details=details), "goal", "method")


LONG = {"spem": pytest.mark.slow}  # it trains a network


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=LONG.get(n, ())) for n in sorted(BASIC.keys() - {"none", "vanilla"})]
)
def test_every_method_that_chooses_has_something_to_draw(name: str, tmp_path: Path) -> None:
    selection = selected(name, tmp_path)
    study = case_study(selection, "goal", name)
    places = {option.id: option.place for option in study.options if option.place is not None}
    assert places == {skill.id: place for place, skill in enumerate(selection.skills, start=1)}
    assert len(study.options) >= len(selection.skills) > 0
    assert all(len(column.values) == len(study.options) for column in study.columns)
    assert {"skillreranker", "without_split"}.isdisjoint({name}) == (study.flows is None)


@pytest.mark.parametrize(("name", "why"), [("none", "no skill"), ("vanilla", "whole library")])
def test_a_method_without_a_choice_is_refused_with_the_reason(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{name} has nothing to draw: .*{why}"):
        case_study(selected(name, tmp_path), "goal", name)


def test_edges_are_in_the_order_of_their_states_and_keep_their_numbers() -> None:
    selection = edges_selection(states=5, skills=40, seed=3)
    study = case_study(selection, "goal", "skillreranker")
    raw = {candidate["id"]: (k, candidate) for k, candidate in enumerate(selection.details["candidates"])}
    kept = [option for option in study.options if option.target is not None]
    assert [(o.source, o.target) for o in kept] == sorted((c["src"], c["tgt"]) for _, c in raw.values() if c["keep"])
    assert study.options[: len(kept)] == tuple(kept)
    assert len(kept) == len(study.options) == 40
    weights = next(column.values for column in study.columns if column.heading == "w")
    for row, option in enumerate(study.options):
        k, candidate = raw[option.id]
        assert option.weight == weights[row] == candidate["w"]
        for stage, said in zip(study.stages, selection.details["stages"], strict=True):
            assert stage.fits[row] == said["phi"][k]
    for stage in study.stages:
        (best,) = {fit for fit, option in zip(stage.fits, study.options, strict=True) if option.id == stage.winner}
        assert best == max(fit for fit, option in zip(stage.fits, study.options, strict=True) if option.target)


def test_where_no_state_follows_every_skill_is_dropped() -> None:
    study = case_study(edges_selection(states=1, skills=4, marks=("empty_graph",)), "goal", "skillreranker")
    assert [(option.source, option.target) for option in study.options] == [(0, None)] * 4
    assert study.chosen == ()
    assert study.stages == ()


def test_a_ranking_is_shown_as_the_method_says_it() -> None:
    candidates = [{"id": name, "cosine": 1.0 - at / 10} for at, name in enumerate("abcd")]
    study = study_of({"candidates": candidates, "ranking": ["d", "b", "a", "c"]}, "d")
    assert [option.id for option in study.options] == ["d", "b", "a", "c"]
    assert [option.place for option in study.options] == [1, None, None, None]


def test_without_a_ranking_the_methods_own_score_decides() -> None:
    candidates = [{"id": "a", "cosine": 0.9, "score": 0.1}, {"id": "b", "cosine": 0.2, "score": 0.7}]
    assert [option.id for option in study_of({"candidates": candidates}).options] == ["b", "a"]


def test_a_method_of_the_users_own_is_drawn_from_what_it_chose() -> None:
    study = study_of({"anything": object.__name__}, "x", "y")
    assert [(option.id, option.place) for option in study.options] == [("x", 1), ("y", 2)]


def test_relations_to_skills_that_are_not_shown_are_left_out() -> None:
    bundle = [{"id": "a", "score": 2.0, "walk": 0.5, "seed": 1}, {"id": "b", "score": 1.0, "walk": 0.1, "seed": None}]
    relations = [
        {"source": "a", "target": "b", "type": "workflow", "weight": 1.0},
        {"source": "a", "target": "elsewhere", "type": "workflow", "weight": 1.0},
    ]
    study = study_of({"bundle": bundle, "relations": relations}, "a")
    assert [(edge.source, edge.target) for edge in study.relations] == [("a", "b")]
    assert [column.heading for column in study.columns] == ["score", "walk"]


def test_a_remembered_procedure_and_conflicts_are_told() -> None:
    template = {"source": "t", "goal": "heat a cup", "cosine": 0.91, "uses": 1, "successes": 1, "steps": ["go", "heat"]}
    study = study_of({"template": template, "ranking": ["a"], "conflicting": ["z"]}, "a")
    assert any("heat a cup" in note for note in study.notes)
    assert any("go; heat" in note for note in study.notes)
    assert any("conflict" in note and "z" in note for note in study.notes)


def test_marks_become_warnings_that_say_what_they_mean() -> None:
    study = case_study(edges_selection(marks=("parse_fallback",)), "goal", "skillreranker")
    assert study.warnings == ("parse_fallback: the task could not be parsed and counts as one sub-task",)


def test_numbers_that_are_not_finite_are_unknown() -> None:
    candidates = [{"id": "a", "score": float("nan")}, {"id": "b", "score": float("-inf")}, {"id": "c", "score": 1.0}]
    (column,) = study_of({"candidates": candidates}, "c").columns
    assert column.values == (1.0, None, None)


def test_nothing_chosen_and_nothing_ranked_is_an_error_that_says_why() -> None:
    nothing = Selection(marks=("not_labelled",), details={"method": "oracle", "ranking": [], "chosen": []})
    with pytest.raises(ConfigError, match="no labelled skills"):
        case_study(nothing, "goal", "oracle")


@pytest.mark.parametrize(
    "damage",
    [
        {"candidates": [{"cosine": 1.0}]},
        {"candidates": "many"},
        {"parse": None},
        {"splits": [0]},
        {"flow": {"inflow": [1.0], "outflow": [1.0], "cross": [1.0]}},
        {"stages": [{"start": 0, "end": 9, "text": "", "phi": [], "chosen": None}]},
        {"candidates": [{"id": "a", "src": 2, "tgt": 1, "keep": True}]},
    ],
)
def test_details_of_another_form_are_one_clear_error(damage: dict[str, Any]) -> None:
    selection = edges_selection()
    with pytest.raises(DataError, match="the working of m cannot be drawn"):
        case_study(replace(selection, details=selection.details | damage), "goal", "m")
