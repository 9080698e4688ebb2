"""Tables as data: rows, coverage, ranks, published values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_cells import AS_PUBLISHED, LOST, make_cell

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.report import Report, build_report
from skillarena.orchestration.report.table_model import Entry, ReportTable

SEEN, STEPS = "alfworld.valid_seen.reward", "alfworld.valid_seen.env_steps"


def report(root: Path) -> Report:
    return build_report(load([root]))


def entries(table: ReportTable, column: str) -> dict[str, Entry]:
    """By the last label; for tables with one backbone."""
    place = [known.key for known in table.columns].index(column)
    return {row.labels[-1]: row.entries[place] for row in table.rows}


def ranks(table: ReportTable, column: str) -> dict[str, int]:
    return {label: entry.rank for label, entry in entries(table, column).items()}


def test_table_1_has_backbones_and_methods_down_and_settings_across(tmp_path: Path) -> None:
    for backbone in ("simulated", "smollm2"):
        for selector in ("skillreranker", "vector"):
            make_cell(tmp_path, selector=selector, backbone=backbone)
            make_cell(tmp_path, selector=selector, backbone=backbone, benchmark="scienceworld")
    table = report(tmp_path).table("table1")
    assert [column.heading for column in table.columns] == [
        ("alfworld", "valid_seen", "R"),
        ("alfworld", "valid_seen", "S"),
        ("scienceworld", "seen", "R"),
        ("scienceworld", "seen", "S"),
    ]
    assert [row.labels for row in table.rows] == [
        ("simulated", "vector top_k=1"),
        ("simulated", "skillreranker k=30"),
        ("smollm2", "vector top_k=1"),
        ("smollm2", "skillreranker k=30"),
    ]
    assert all(entry.complete and entry.simulated for row in table.rows for entry in row.entries)


def test_an_entry_has_mean_interval_and_coverage(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=[100.0, 0.0, 30.0, LOST, None], steps=[2, 4, 9, 5, 5])
    table = report(tmp_path).table("table1")
    reward = entries(table, SEEN)["skillreranker k=30"]
    assert reward.mean == pytest.approx(130 / 3)
    assert reward.low is not None and reward.high is not None and 0 <= reward.low < 130 / 3 < reward.high <= 100
    assert (reward.scored, reward.expected, reward.complete) == (3, 5, False)
    assert entries(table, STEPS)["skillreranker k=30"].mean == 5.0


def test_what_was_not_run_stays_visible(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector")
    make_cell(tmp_path, selector="none", split="valid_unseen")
    table = report(tmp_path).table("table1")
    missing = entries(table, SEEN)["none"]
    assert (missing.mean, missing.scored, missing.expected) == (None, 0, 0)
    assert entries(table, SEEN)["vector top_k=1"].mean == 50.0


def test_a_cell_without_episodes_is_not_the_same_as_a_missing_one(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector", rewards=[None, LOST])
    entry = entries(report(tmp_path).table("table1"), SEEN)["vector top_k=1"]
    assert (entry.mean, entry.scored, entry.expected) == (None, 0, 2)


def test_best_and_second_are_marked_by_their_direction(tmp_path: Path) -> None:
    for selector, reward, steps in (("none", 0.0, 9), ("vector", 60.0, 7), ("random", 30.0, 3), ("vanilla", 30.0, 8)):
        make_cell(tmp_path, selector=selector, rewards=[reward, reward], steps=steps)
    table = report(tmp_path).table("table1")
    assert ranks(table, SEEN) == {"none": 0, "vector top_k=1": 1, "random top_k=1": 2, "vanilla": 2}
    assert ranks(table, STEPS) == {"none": 0, "vector top_k=1": 2, "random top_k=1": 1, "vanilla": 0}


def test_an_incomplete_method_is_never_ranked(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="none", rewards=[0.0, 0.0])
    make_cell(tmp_path, selector="vector", rewards=[100.0, LOST])
    make_cell(tmp_path, selector="random", rewards=[30.0, 30.0])
    assert ranks(report(tmp_path).table("table1"), SEEN) == {"none": 2, "random top_k=1": 1, "vector top_k=1": 0}


def test_a_method_with_fewer_tasks_than_others_is_incomplete(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="none", rewards=[0.0, 0.0])
    make_cell(tmp_path, selector="vector", rewards=[100.0])
    made = report(tmp_path)
    entry = entries(made.table("table1"), SEEN)["vector top_k=1"]
    assert (entry.scored, entry.expected, entry.rank) == (1, 2, 0)
    assert any("not all methods have the same tasks" in problem for problem in made.problems)


def test_the_upper_bound_is_shown_and_not_ranked(tmp_path: Path) -> None:
    for selector, reward in (("oracle", 100.0), ("none", 0.0), ("vector", 30.0)):
        make_cell(tmp_path, selector=selector, rewards=[reward])
    table = report(tmp_path).table("table1")
    assert ranks(table, SEEN) == {"none": 2, "vector top_k=1": 1, "oracle": 0}
    assert any("oracle" in note and "not ranked" in note for note in table.notes)


def test_what_is_printed_alike_ranks_alike_and_one_value_is_no_best(tmp_path: Path) -> None:
    for selector, steps in (("none", [3, 3]), ("vector", [3, 3]), ("random", [2, 3])):
        make_cell(tmp_path, selector=selector, steps=steps)
    table = report(tmp_path).table("table1")
    assert set(ranks(table, SEEN).values()) == {0}
    assert ranks(table, STEPS) == {"none": 2, "random top_k=1": 1, "vector top_k=1": 2}


def test_a_simulated_value_is_not_ranked_beside_real_ones(tmp_path: Path) -> None:
    real: dict[str, Any] = {"backbone": "deepseek_v4_flash"}
    make_cell(tmp_path, selector="llm_selector", llm="simulated", simulated=True, rewards=[100.0], **real)
    make_cell(tmp_path, selector="none", simulated=False, rewards=[0.0], **real)
    make_cell(tmp_path, selector="vector", simulated=False, rewards=[30.0], **real)
    table = report(tmp_path).table("table1")
    assert ranks(table, SEEN) == {"none": 2, "vector top_k=1": 1, "llm_selector k=30 top_k=1": 0}
    assert (table.simulated, table.all_simulated) == (True, False)
    assert "some numbers SIMULATED" in table.heading


def test_both_sizes_appear_as_their_mean_and_singly_in_the_last_table(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector", rewards=[100.0])
    make_cell(tmp_path, selector="vector_top2", rewards=[0.0])
    made = report(tmp_path)
    assert {label: entry.mean for label, entry in entries(made.table("table1"), SEEN).items()} == {
        "vector top_k=1,2": 50.0
    }
    assert {label: entry.mean for label, entry in entries(made.table("cells"), "reward").items()} == {
        "vector top_k=1": 100.0,
        "vector top_k=1,2": 50.0,
        "vector top_k=2": 0.0,
    }


def test_ablations_stand_in_table_2_beside_the_whole_method(tmp_path: Path) -> None:
    for selector in ("skillreranker", "without_split", "without_edges", "without_edges_top2", "vector"):
        make_cell(tmp_path, selector=selector)
    made = report(tmp_path)
    assert [row.labels[1] for row in made.table("table2").rows] == [
        "skillreranker k=30",
        "without_edges k=30 top_k=1,2",
        "without_split k=30",
    ]
    assert [row.labels[1] for row in made.table("table1").rows] == ["vector top_k=1", "skillreranker k=30"]


def test_without_ablations_there_is_no_table_2(tmp_path: Path) -> None:
    make_cell(tmp_path)
    table = report(tmp_path).table("table2")
    assert (table.rows, table.notes) == ((), ())


def test_table_3_counts_skills_and_tokens(tmp_path: Path) -> None:
    make_cell(tmp_path, tokens=[1000, 3000], fields={"skills": [("a",), ("a", "b")]})
    table = report(tmp_path).table("table3")
    (row,) = table.rows
    assert [entry.mean for entry in row.entries] == [1.5, 2000.0]


def test_a_published_value_stands_beside_its_own_with_the_difference(tmp_path: Path) -> None:
    make_cell(tmp_path, **{**AS_PUBLISHED, "rewards": [100.0] * 70 + [0.0] * 70})
    entry = entries(report(tmp_path).table("table1"), SEEN)["skillreranker k=30"]
    assert (entry.published, entry.source, entry.differs) == (84.65, "arXiv 2607.06283v1, table 1", ())
    assert entry.difference == pytest.approx(50.0 - 84.65)
    assert "118.5 of 140" in entry.uncertain


def test_without_equal_settings_there_is_no_difference(tmp_path: Path) -> None:
    make_cell(tmp_path, **{**AS_PUBLISHED, "k": 10})
    made = report(tmp_path)
    entry = entries(made.table("table1"), SEEN)["skillreranker k=10"]
    assert (entry.published, entry.difference) == (84.65, None)
    assert entry.differs == ("Candidates from coarse recall (K): 10 here, 30 published.",)
    assert made.differences[0] == (
        "arXiv 2607.06283v1: Candidates from coarse recall (K): 10 here, 30 published"
        " (all rows that have a published value)."
    )
    assert made.differences[-1].startswith("arXiv 2607.06283v1 does not say: ")


def test_an_incomplete_cell_has_no_difference(tmp_path: Path) -> None:
    make_cell(tmp_path, **{**AS_PUBLISHED, "rewards": [100.0] * 139 + [LOST]})
    entry = entries(report(tmp_path).table("table1"), SEEN)["skillreranker k=30"]
    assert (entry.published, entry.differs, entry.difference) == (84.65, (), None)


def test_a_simulated_cell_has_no_published_value(tmp_path: Path) -> None:
    make_cell(tmp_path, **{**AS_PUBLISHED, "simulated": True})
    made = report(tmp_path)
    entry = entries(made.table("table1"), SEEN)["skillreranker k=30"]
    assert (entry.published, entry.difference, made.differences) == (None, None, ())


def test_a_missing_cell_shows_what_was_published_for_its_method_only(tmp_path: Path) -> None:
    make_cell(tmp_path, **AS_PUBLISHED)
    make_cell(tmp_path, **{**AS_PUBLISHED, "k": 5})
    make_cell(tmp_path, **{**AS_PUBLISHED, "selector": "none", "split": "valid_unseen", "rewards": [0.0] * 134})
    missing = entries(report(tmp_path).table("table1"), "alfworld.valid_unseen.reward")
    assert (missing["skillreranker k=30"].mean, missing["skillreranker k=30"].published) == (None, 78.73)
    assert missing["skillreranker k=5"].published is None


def test_two_models_under_one_backbone_are_told_apart_and_each_has_its_own_published_value(tmp_path: Path) -> None:
    for model in ("MiniMax-M2.7", "GPT-5.2-Codex"):
        changes = {"backbone": "openai_compatible", "selector": "vanilla", "options": {"backbone.model": model}}
        make_cell(tmp_path, **{**AS_PUBLISHED, **changes})
    made = report(tmp_path)
    found = {label: entry.published for label, entry in entries(made.table("table1"), STEPS).items()}
    assert found == {"vanilla backbone.model=GPT-5.2-Codex": 14.65, "vanilla backbone.model=MiniMax-M2.7": 21.24}
    assert any("backbone.model is GPT-5.2-Codex or MiniMax-M2.7" in problem for problem in made.problems)


def test_types_of_tasks_have_columns_of_their_own(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=[100.0, 0.0, 0.0, LOST])
    make_cell(tmp_path, benchmark="scienceworld", rewards=[100.0, 30.0, 50.0])
    table = report(tmp_path).table("by_task_type")
    means = {column.key: entry for column, entry in zip(table.columns, table.rows[0].entries, strict=True)}
    assert {key: (entry.mean, entry.scored, entry.expected) for key, entry in means.items()} == {
        "alfworld.valid_seen.look_at_obj_in_light.reward": (0.0, 1, 2),
        "alfworld.valid_seen.pick_and_place_simple.reward": (50.0, 2, 2),
        "scienceworld.seen.boil.reward": (75.0, 2, 2),
        "scienceworld.seen.melt.reward": (30.0, 1, 1),
        "scienceworld.seen.boil.success": (50.0, 2, 2),
        "scienceworld.seen.melt.success": (0.0, 1, 1),
    }


def test_several_k_of_one_method_are_a_curve_in_order(tmp_path: Path) -> None:
    for k in (30, 5, 10):
        make_cell(tmp_path, k=k, steps=k)
    make_cell(tmp_path, selector="llm_selector")
    table = report(tmp_path).table("k_curve")
    assert [row.labels for row in table.rows] == [
        ("simulated", "alfworld/valid_seen", "skillreranker", k) for k in ("5", "10", "30")
    ]
    assert [row.entries[2].mean for row in table.rows] == [5.0, 10.0, 30.0]


def test_one_k_is_no_curve(tmp_path: Path) -> None:
    make_cell(tmp_path)
    assert report(tmp_path).table("k_curve").rows == ()


def test_selection_costs_are_means_over_episodes(tmp_path: Path) -> None:
    fields = {"selection_seconds": [1.0, 3.0], "pairs_scored": [10, 30], "selector_prompt_tokens": [7, 9]}
    make_cell(tmp_path, fields=fields)
    table = report(tmp_path).table("selection_costs")
    found = {column.key: entry.mean for column, entry in zip(table.columns, table.rows[0].entries, strict=True)}
    assert (found["selection_seconds"], found["pairs_scored"], found["selector_tokens"]) == (2.0, 20.0, 8.0)


def test_the_last_table_counts_what_was_lost_and_what_was_unusual(tmp_path: Path) -> None:
    fields = {"marks": [("unlinked",), ("unlinked", "own mark"), ()], "tokens_estimated": [True, False, False]}
    make_cell(tmp_path, rewards=[100.0, 0.0, LOST], fields=fields)
    make_cell(tmp_path, rewards=[100.0, 0.0, 30.0], seed=1)
    table = report(tmp_path).table("cells")
    found = {column.key: entry.mean for column, entry in zip(table.columns, table.rows[0].entries, strict=True)}
    counted = ("scored", "expected", "infra_errors", "cells")
    assert [found[f"episodes.{name}"] for name in counted] == [2.0, 3.0, 1.0, 2.0]
    assert [found[f"marks.{name}"] for name in ("own mark", "tokens_estimated", "unlinked")] == [1.0, 1.0, 2.0]
    assert any(note.startswith("unlinked: ") for note in table.notes)
    assert "cost" not in found, "no line has any"


def test_settings_that_are_not_equal_within_a_setting_are_a_problem(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="none")
    make_cell(tmp_path, selector="vector", options={"benchmark.max_steps": 50}, library="other")
    make_cell(tmp_path, selector="vector", options={"benchmark.max_steps": 50}, library="other", seed=1)
    problems = report(tmp_path).problems
    where = "simulated on alfworld/valid_seen: not all methods"
    assert f"{where} were run under the same conditions: benchmark.max_steps is 30 or 50." in problems
    assert any(
        problem.startswith(f"{where} were run under the same conditions: library.fingerprint is ")
        for problem in problems
    )
    assert f"{where} have the same seeds: 0 or 0+1." in problems


def test_content_counts_cells_and_episodes(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rewards=[100.0, None, LOST])
    content = report(tmp_path).sweep
    assert (content.cells, content.simulated_cells, content.tasks, content.episodes, content.infra_errors) == (
        1,
        1,
        3,
        1,
        1,
    )
    assert content.folders == (cell.name,)


@pytest.mark.parametrize("k", ["auto", None, 0.5])
def test_a_method_that_calls_something_else_k_has_no_curve(tmp_path: Path, k: Any) -> None:
    for changed in (k, 5):
        make_cell(tmp_path, selector="vector", options={"selector.k": changed})
    assert build_report(load([tmp_path])).table("k_curve").rows == ()
