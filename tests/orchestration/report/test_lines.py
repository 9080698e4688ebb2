"""Methods in settings: seeds merged, means of sizes, labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cells import LOST, make_cell

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.lines import Line, lines_of
from skillarena.orchestration.report.report import build_report
from skillarena.orchestration.summary import MEASURES, summarise


def lines(root: Path) -> dict[str, Line]:
    """By label; the root has one setting."""
    found = lines_of(load([root]).cells)
    assert len({line.setting for line in found}) == 1
    return {line.method: line for line in found}


def test_a_cell_is_a_line_with_one_value_a_task(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=[100.0, None, LOST, 30.0], steps=[3, 4, 5, 6], tokens=[1000, 0, 0, 2000])
    line = lines(tmp_path)["skillreranker k=30"]
    np.testing.assert_array_equal(line.values["reward"], [100.0, np.nan, np.nan, 30.0])
    np.testing.assert_array_equal(line.values["env_steps"], [3, np.nan, np.nan, 6])
    np.testing.assert_array_equal(line.values["total_tokens"], [1000, np.nan, np.nan, 2000])
    assert set(line.values) == set(MEASURES)
    assert (line.scored.tolist(), line.complete, line.simulated) == ([True, False, False, True], False, True)


def test_estimates_are_those_of_the_cell_s_own_summary(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=[100.0, LOST, 30.0, 0.0, 100.0], steps=[3, 4, 5, 6, 9])
    make_cell(tmp_path, selector="none", rewards=[0.0, 0.0, 30.0, 0.0, 100.0])
    for line in lines(tmp_path).values():
        (cell,) = line.cells
        summary = summarise(list(cell.rows.values()), [task.id for task in cell.tasks], cell.resamples)
        assert set(line.estimates) == set(summary.estimates)
        for name, estimate in summary.estimates.items():
            own = line.estimates[name]
            assert (own.mean, own.low, own.high) == pytest.approx((estimate.mean, estimate.low, estimate.high))


def test_a_line_without_scores_has_no_estimates_and_one_task_no_interval(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=[LOST, None])
    make_cell(tmp_path, selector="none", rewards=[30.0, None])
    found = lines(tmp_path)
    assert found["skillreranker k=30"].estimates == {}
    one = found["none"].estimates["reward"]
    assert (one.mean, one.low, one.high) == (30.0, None, None)


def test_what_no_episode_knows_has_no_estimate(tmp_path: Path) -> None:
    make_cell(tmp_path, fields={"cost": [None, 0.5]})
    line = lines(tmp_path)["skillreranker k=30"]
    np.testing.assert_array_equal(line.values["cost"], [np.nan, 0.5])
    assert "cost" not in line.estimates and "reward" in line.estimates


def test_seeds_of_one_configuration_are_one_line_with_the_mean_of_each_task(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=[100.0, 0.0, 30.0], seed=0)
    make_cell(tmp_path, rewards=[0.0, 0.0, LOST], seed=7)
    (line,) = lines(tmp_path).values()
    assert [cell.settings["seed"] for cell in line.cells] == [0, 7]
    np.testing.assert_array_equal(line.values["reward"], [50.0, 0.0, np.nan])
    assert line.estimates["reward"].mean == 25.0
    assert not line.complete


def test_one_and_two_skills_have_a_mean_beside_them(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector", rewards=[100.0, 0.0], fields={"skills": ("a",)})
    make_cell(tmp_path, selector="vector_top2", rewards=[0.0, 0.0], fields={"skills": ("a", "b")})
    found = lines(tmp_path)
    assert list(found) == ["vector top_k=1", "vector top_k=1,2", "vector top_k=2"]
    mean = found["vector top_k=1,2"]
    assert mean.sizes == (1, 2) and found["vector top_k=1"].sizes == ()
    np.testing.assert_array_equal(mean.values["reward"], [50.0, 0.0])
    np.testing.assert_array_equal(mean.values["skills_selected"], [1.5, 1.5])


def test_the_mean_of_sizes_needs_the_same_seeds(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vector", seed=0)
    make_cell(tmp_path, selector="vector", seed=1)
    make_cell(tmp_path, selector="vector_top2", seed=0)
    assert list(lines(tmp_path)) == ["vector top_k=1", "vector top_k=2"]
    make_cell(tmp_path, selector="vector_top2", seed=1)
    assert len(lines(tmp_path)["vector top_k=1,2"].cells) == 4


def test_three_skills_have_no_part_in_a_mean(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="graph_of_skills_top1")
    make_cell(tmp_path, selector="graph_of_skills")
    assert list(lines(tmp_path)) == ["graph_of_skills top_k=1", "graph_of_skills top_k=3"]


def test_other_models_under_one_name_are_told_apart_by_their_names(tmp_path: Path) -> None:
    make_cell(tmp_path, reranker="similarity")
    make_cell(tmp_path, reranker="qwen3_reranker_0_6b")
    assert set(lines(tmp_path)) == {
        "skillreranker k=30 reranker=similarity",
        "skillreranker k=30 reranker=qwen3_reranker_0_6b",
    }


def test_other_options_are_told_apart_by_their_values(tmp_path: Path) -> None:
    make_cell(tmp_path)
    make_cell(tmp_path, options={"selector.stage_candidates": "overlapping"})
    make_cell(tmp_path, options={"benchmark.max_steps": 50})
    assert set(lines(tmp_path)) == {
        "skillreranker k=30 benchmark.max_steps=30 stage_candidates=all",
        "skillreranker k=30 benchmark.max_steps=30 stage_candidates=overlapping",
        "skillreranker k=30 benchmark.max_steps=50 stage_candidates=all",
    }


def test_other_code_under_one_name_is_told_apart_by_its_digest(tmp_path: Path) -> None:
    make_cell(tmp_path, code="a" * 64)
    make_cell(tmp_path, code="b" * 64)
    make_cell(tmp_path, selector="none", code="a" * 64)
    assert set(lines(tmp_path)) == {"skillreranker k=30 code=aaaaaaaa", "skillreranker k=30 code=bbbbbbbb", "none"}


def test_other_tasks_are_told_apart_by_their_number_and_digest(tmp_path: Path) -> None:
    for count in (2, 4):
        make_cell(tmp_path, selector="none", rewards=[100.0] * count)
    found = {len(line.tasks): line for line in lines(tmp_path).values()}
    for count, line in found.items():
        assert line.method == f"none tasks={count} ({line.cells[0].identity['tasks'][:8]})"
    assert set(found) == {2, 4}


def test_the_mean_of_sizes_keeps_what_tells_it_apart(tmp_path: Path) -> None:
    for code in ("a" * 64, "b" * 64):
        make_cell(tmp_path, selector="vector", code=code)
        make_cell(tmp_path, selector="vector_top2", code=code)
    means = {method for method, line in lines(tmp_path).items() if line.sizes}
    assert means == {"vector top_k=1,2 code=aaaaaaaa", "vector top_k=1,2 code=bbbbbbbb"}


def test_settings_are_apart_and_labels_need_be_unique_within_them_only(tmp_path: Path) -> None:
    make_cell(tmp_path, backbone="deepseek_v4_flash", simulated=False)
    make_cell(tmp_path, backbone="deepseek_v4_flash", simulated=False, split="valid_unseen")
    make_cell(tmp_path, benchmark="scienceworld")
    found = lines_of(load([tmp_path]).cells)
    assert {line.method for line in found} == {"skillreranker k=30"}
    assert [(line.setting.backbone, line.setting.benchmark, line.setting.split, line.simulated) for line in found] == [
        ("deepseek_v4_flash", "alfworld", "valid_seen", False),
        ("deepseek_v4_flash", "alfworld", "valid_unseen", False),
        ("simulated", "scienceworld", "seen", True),
    ]


@pytest.mark.parametrize(
    "values",
    [
        ([1, 2], [1, 3]),
        ("a b", "a c"),
        ("x" * 50 + "a", "x" * 50 + "b"),
        (1, "1"),
        (None, "None"),
    ],
)
def test_cells_whose_options_read_alike_are_told_apart_by_their_ids(tmp_path: Path, values: tuple[Any, Any]) -> None:
    for value in values:
        make_cell(tmp_path, selector="vector", options={"selector.own": value})
    found = lines_of(load([tmp_path]).cells)
    assert len({line.method for line in found}) == 2
    assert all(line.method.endswith(f" cell={line.cells[0].id[:8]}") for line in found)


def test_no_table_loses_a_line_however_many_options_differ(tmp_path: Path) -> None:
    for changed in range(5):
        make_cell(tmp_path, options={f"selector.{name}": int(place == changed) for place, name in enumerate("abcd")})
    report = build_report(load([tmp_path]))
    assert len({line.method for line in report.lines}) == len(report.table("table1").rows) == 5
