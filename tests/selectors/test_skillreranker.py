"""SkillReranker and its ablations: the paper's worked cases end to end, marks, options, and the selector contract."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selector_contract import HOT_MUG, SKILLS, ScoredParts, SelectorContract, WordEmbedder, task, up_to
from temporary_store import TemporaryStore

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.envs.interface import Task
from skillarena.selectors.ablations import WithoutEdges, WithoutParsing, WithoutSplit
from skillarena.selectors.execution_graph import logsigmoid, sigmoid
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import ParsedSkill, ParsedTask, Selector, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.skillreranker import SkillReranker, score_states


class TestSkillReranker(SelectorContract):
    def make(self, parts: Any) -> Selector:
        return SkillReranker(parts, k=up_to(30, parts))


class TestSkillRerankerOverlapping(SelectorContract):
    def make(self, parts: Any) -> Selector:
        return SkillReranker(parts, k=up_to(30, parts), stage_candidates="overlapping")


class TestWithoutSplit(SelectorContract):
    def make(self, parts: Any) -> Selector:
        return WithoutSplit(parts, k=up_to(30, parts))


class TestWithoutEdges(SelectorContract):
    at_least = at_most = 2

    def make(self, parts: Any) -> Selector:
        return WithoutEdges(parts, k=up_to(30, parts), top_k=up_to(2, parts))


class TestWithoutParsing(SelectorContract):
    at_least = at_most = 2

    def make(self, parts: Any) -> Selector:
        return WithoutParsing(parts, k=up_to(30, parts), top_k=up_to(2, parts))


# --- scripted parts: every score is given by hand, so every number of the method can be told beforehand


@dataclass
class Script:
    """A task, its parse, and for each skill its states and its logits; parser and reranker in one."""

    goal: str
    parse: ParsedTask
    skills: dict[str, ParsedSkill]
    logits: dict[tuple[str, str], float]
    calls: list[list[tuple[str, str]]] = field(default_factory=list)
    identity: str = "script"
    indexes: IndexStore = field(default_factory=TemporaryStore)

    @property
    def library(self) -> SkillLibrary:
        return SkillLibrary(tuple(Skill(name, name, f"about {name}", name) for name in self.skills))

    @property
    def embedder(self) -> WordEmbedder:
        return WordEmbedder()

    @property
    def parser(self) -> Script:
        return self

    @property
    def reranker(self) -> Script:
        return self

    def parse_task(self, task: Task) -> ParsedTask:
        assert task.goal == self.goal
        return self.parse

    def parse_skill(self, skill: Skill) -> ParsedSkill:
        return self.skills[skill.name]

    def score(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        names = {skill.text: skill.name for skill in self.library.skills}
        self.calls.append(list(pairs))
        return np.array([self.logits[query, names.get(text, text)] for query, text in pairs], dtype=np.float32)


def logit(weight: float) -> float:
    return math.log(weight / (1 - weight))


def script(goal: str, subtasks: list[str], rows: dict[str, dict[str, Any]]) -> Script:
    """Rows give a skill's weight ``w``, what it requires ``p`` and completes ``e`` (logits by state), its stage fit."""
    states = [f"S{i}" for i in range(len(subtasks) + 1)]
    skills, logits = {}, {}
    for name, row in rows.items():
        precondition = f"before {name}" if "p" in row else None
        skills[name] = ParsedSkill(precondition, f"after {name}")
        logits[goal, name] = logit(row["w"])
        logits |= {(f"S{i}", f"before {name}"): score for i, score in enumerate(row.get("p", []))}
        logits |= {(f"S{i + 1}", f"after {name}"): score for i, score in enumerate(row["e"])}
        logits |= {(text, name): score for text, score in row["fit"].items()}
    return Script(goal, ParsedTask(tuple(subtasks), tuple(states)), skills, logits)


OBTAIN = "Obtain a mug from a storage container."
HEAT = "Heat the mug."
PUT = "Put the hot mug into the coffeemachine."
HEAT_AND_PUT = f"{HEAT} {PUT}"
WHOLE = f"{OBTAIN} {HEAT_AND_PUT}"


def hot_mug() -> Script:
    """The paper's second worked case (figure 4) with edges that fit the drawing."""

    def fit(obtain: float, heat_and_put: float, heat: float, put: float) -> dict[str, float]:
        return {OBTAIN: obtain, HEAT_AND_PUT: heat_and_put, HEAT: heat, PUT: put, WHOLE: heat_and_put - 1}

    return script(
        HOT_MUG,
        [OBTAIN, HEAT, PUT],
        {
            "object-locator": {"w": 0.84, "e": [3, 0, -1], "fit": fit(3, -2, -3, -1)},
            "heat-object-with-appliance": {"w": 0.81, "p": [0, 2, 1], "e": [0, 1, 2], "fit": fit(-2, 3, 2, -2)},
            "object-heater": {"w": 0.45, "p": [0, 3, 1], "e": [0, 1, 3], "fit": fit(-3, 2, 2, -1)},
            "device-operator": {"w": 0.32, "p": [0, 1, 0], "e": [0, 0, 1], "fit": fit(-2, 0, 1, 0)},
            "tool-user": {"w": 0.28, "p": [0, 2, 1], "e": [0, 1, 2], "fit": fit(-2, -1, 0, 4)},
        },
    )


def watch() -> Script:
    """The paper's first worked case."""
    obtain, place = "Obtain a watch from its current location.", "Place the watch on a sidetable."
    rows = {
        "object-locator": {"w": 0.89, "e": [0, 2], "fit": 2.0},
        "environment-scanner": {"w": 0.72, "e": [0, 1], "fit": 1.0},
        "search-pattern-executor": {"w": 0.48, "e": [1, 0], "fit": 0.5},
        "locate-target-object": {"w": 0.33, "e": [1, 0], "fit": 0.4},
        "tool-user": {"w": 0.13, "p": [0, 1], "e": [0, 1], "fit": -1.0},
    }
    rows = {name: {**row, "fit": {f"{obtain} {place}": row["fit"]}} for name, row in rows.items()}
    return script("put a watch on a sidetable", [obtain, place], rows)


def test_a_watch_on_a_sidetable_takes_one_skill() -> None:
    parts = watch()
    selection = SkillReranker(parts, k=5).open(task(parts.goal)).selection
    assert [skill.name for skill in selection.skills] == ["object-locator"]
    assert selection.details["splits"] == []
    assert [(stage["start"], stage["end"], stage["text"]) for stage in selection.details["stages"]] == [
        (0, 2, "Obtain a watch from its current location. Place the watch on a sidetable.")
    ]
    assert selection.marks == ()


def test_a_hot_mug_takes_one_skill_before_and_one_after_it_is_obtained() -> None:
    selection = SkillReranker(hot_mug(), k=5).open(task(HOT_MUG)).selection
    details = selection.details
    assert [skill.name for skill in selection.skills] == ["object-locator", "heat-object-with-appliance"]
    assert details["splits"] == [1]
    assert [(stage["start"], stage["end"], stage["text"]) for stage in details["stages"]] == [
        (0, 1, OBTAIN),
        (1, 3, HEAT_AND_PUT),
    ]
    by_name = {row["name"]: row for row in details["candidates"]}
    assert by_name["object-locator"]["w"] == pytest.approx(0.84)
    assert (by_name["object-locator"]["precondition"], by_name["object-locator"]["src"]) == (None, 0)
    assert {(row["src"], row["tgt"]) for name, row in by_name.items() if name != "object-locator"} == {(1, 3)}
    assert details["flow"]["inflow"][1] == pytest.approx(0.84)
    assert details["flow"]["cross"][2] == pytest.approx(0.81 + 0.45 + 0.32 + 0.28)
    assert [skill.score for skill in selection.skills] == pytest.approx(
        [float(logsigmoid(logit(0.84)) + logsigmoid(3)), float(logsigmoid(logit(0.81)) + logsigmoid(3))]
    )
    assert OBTAIN in selection.skills[0].reason


def test_details_hold_one_logit_and_one_fit_for_each_candidate_and_stage() -> None:
    details = SkillReranker(hot_mug(), k=5).open(task(HOT_MUG)).selection.details
    for stage in details["stages"]:
        assert len(stage["logits"]) == len(stage["phi"]) == len(details["candidates"]) == 5
        best = int(np.argmax(stage["phi"]))
        assert stage["chosen"] == details["candidates"][best]["id"]
    for row in details["candidates"]:
        assert row["w"] == pytest.approx(float(sigmoid(row["rho"])))


def test_all_pairs_of_a_task_are_scored_in_two_calls() -> None:
    parts = hot_mug()
    SkillReranker(parts, k=5).open(task(HOT_MUG))
    states, stages = parts.calls
    # 5 relevances, 4 preconditions by 3 states, 5 completions by 3 states (none leads to s_0); 2 stages by 5 skills
    assert len(states) == len(set(states)) == 5 + 4 * 3 + 5 * 3
    assert len(stages) == len(set(stages)) == 2 * 5
    assert ("S0", "after object-locator") not in states


def test_states_are_scored_into_their_own_rows_and_columns() -> None:
    parts = hot_mug()
    skills = [parts.skills["object-locator"], parts.skills["object-heater"]]
    documents = [skill.text for name in ("object-locator", "object-heater") for skill in [parts.library.by_id[name]]]
    relevance, before, after = score_states(parts, HOT_MUG, documents, parts.parse.states, skills)
    assert relevance.tolist() == pytest.approx([logit(0.84), logit(0.45)])
    assert np.isnan(before[0]).all()
    assert before[1].tolist() == [0, 3, 1]
    assert after.tolist() == [[-math.inf, 3, 0, -1], [-math.inf, 0, 1, 3]]


def test_a_skill_that_wins_two_stages_is_chosen_once() -> None:
    parts = hot_mug()
    parts.logits[HEAT_AND_PUT, "object-locator"] = 50.0
    selection = SkillReranker(parts, k=5).open(task(HOT_MUG)).selection
    assert [skill.name for skill in selection.skills] == ["object-locator"]
    assert [stage["chosen"] for stage in selection.details["stages"]] == ["object-locator"] * 2


def test_overlapping_stages_leave_out_skills_that_lead_elsewhere() -> None:
    parts = hot_mug()
    parts.logits[HEAT_AND_PUT, "object-locator"] = 50.0
    selection = SkillReranker(parts, k=5, stage_candidates="overlapping").open(task(HOT_MUG)).selection
    assert [skill.name for skill in selection.skills] == ["object-locator", "heat-object-with-appliance"]


def test_without_split_chooses_for_each_subtask() -> None:
    selection = WithoutSplit(hot_mug(), k=5).open(task(HOT_MUG)).selection
    assert [stage["text"] for stage in selection.details["stages"]] == [OBTAIN, HEAT, PUT]
    assert [skill.name for skill in selection.skills] == ["object-locator", "heat-object-with-appliance", "tool-user"]


@pytest.mark.parametrize("top_k", [1, 2, 5])
def test_without_edges_ranks_by_fit_to_the_task_and_to_all_subtasks(top_k: int) -> None:
    parts = hot_mug()
    selection = WithoutEdges(parts, k=5, top_k=top_k).open(task(HOT_MUG)).selection
    fit = {
        name: float(logsigmoid(parts.logits[HOT_MUG, name]) + logsigmoid(parts.logits[WHOLE, name]))
        for name in parts.skills
    }
    best = sorted(fit, key=lambda name: -fit[name])[:top_k]
    assert [skill.name for skill in selection.skills] == best
    assert [skill.score for skill in selection.skills] == pytest.approx([fit[name] for name in best])
    assert selection.details["parse"]["subtasks"] == [OBTAIN, HEAT, PUT]
    assert len(parts.calls) == 1


def test_without_parsing_ranks_by_relevance_and_parses_nothing() -> None:
    parts = hot_mug()

    class Unparsed:
        library, embedder, reranker, indexes = parts.library, parts.embedder, parts.reranker, parts.indexes

    selection = WithoutParsing(Unparsed(), k=5, top_k=2).open(task(HOT_MUG)).selection
    assert [skill.name for skill in selection.skills] == ["object-locator", "heat-object-with-appliance"]
    assert [skill.score for skill in selection.skills] == pytest.approx([logit(0.84), logit(0.81)])


# --- marks


@pytest.mark.parametrize("method", [SkillReranker, WithoutSplit, WithoutEdges])
def test_a_task_that_could_not_be_parsed_is_marked(method: Any) -> None:
    parts = hot_mug()
    parts.parse = ParsedTask(("all",), ("S0", "S1"), fallback=True)
    parts.logits |= {("all", name): 0.0 for name in parts.skills}
    selection = method(parts, k=5).open(task(HOT_MUG)).selection
    assert selection.marks == ("parse_fallback",)
    assert selection.details["parse"]["fallback"] is True
    assert len(selection.skills) == 1


def test_skills_that_could_not_be_parsed_are_marked_and_counted() -> None:
    parts = hot_mug()
    for name in ("object-locator", "tool-user"):
        old = parts.skills[name]
        parts.skills[name] = ParsedSkill(old.precondition, old.completion, fallback=True)
    selection = SkillReranker(parts, k=5).open(task(HOT_MUG)).selection
    assert selection.marks == ("skill_parse_fallback",)
    assert selection.details["skill_parse_fallbacks"] == 2
    assert {row["name"] for row in selection.details["candidates"] if row["fallback"]} == {
        "object-locator",
        "tool-user",
    }


@pytest.mark.parametrize("method", [SkillReranker, WithoutSplit])
def test_an_empty_graph_selects_nothing_and_is_marked(method: Any) -> None:
    parts = hot_mug()
    parts.parse = ParsedTask((), ("S0",))
    selection = method(parts, k=5).open(task(HOT_MUG)).selection
    assert selection.skills == ()
    assert selection.marks == ("empty_graph",)
    assert not any(row["keep"] for row in selection.details["candidates"])


# --- options


@pytest.fixture
def parts(tmp_path: Path) -> ScoredParts:
    return ScoredParts(SKILLS, WordEmbedder(), HeuristicParser(), tmp_path)


@pytest.mark.parametrize("method", [SkillReranker, WithoutSplit, WithoutEdges, WithoutParsing])
@pytest.mark.parametrize("k", [0, -1, 1.5, "3", True])
def test_a_candidate_count_that_is_no_count_is_refused(parts: ScoredParts, method: Any, k: Any) -> None:
    with pytest.raises(ConfigError, match=r"k must be a whole number of at least 1"):
        method(parts, k=k)


@pytest.mark.parametrize("method", [SkillReranker, WithoutSplit, WithoutEdges, WithoutParsing])
def test_more_candidates_than_skills_are_refused_with_both_numbers(parts: ScoredParts, method: Any) -> None:
    with pytest.raises(LibraryError, match=r"k=30 .* 6") as refused:
        method(parts)
    assert "set selector.k=6 or less" in refused.value.fix


def test_a_misspelt_choice_of_stage_candidates_is_refused_with_the_nearest(parts: ScoredParts) -> None:
    with pytest.raises(ConfigError, match="did you mean 'overlapping'"):
        SkillReranker(parts, k=6, stage_candidates="overlaping")  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [WithoutEdges, WithoutParsing])
def test_a_top_k_that_cannot_be_met_is_refused(parts: ScoredParts, method: Any) -> None:
    with pytest.raises(ConfigError, match="top_k must be a whole number"):
        method(parts, k=6, top_k=0)
    with pytest.raises(ConfigError, match="top_k=4 asks for more skills than the k=3 candidates"):
        method(parts, k=3, top_k=4)
