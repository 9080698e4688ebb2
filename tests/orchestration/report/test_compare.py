"""`skillarena compare`: who is set against whom, what is said of it, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import cells, rows_of, run_command
from report_cells import LOST, make_cell
from typer.testing import CliRunner

from skillarena.conf.errors import ConfigError, DataError
from skillarena.orchestration.cli import app
from skillarena.orchestration.report.compare import compare

WON, LOSS = 100.0, 0.0
FIRST = [WON, WON, LOSS, LOSS, WON, LOSS]
SECOND = [WON, LOSS, LOSS, WON, LOSS, LOSS]


def printed(first: object, second: object, capsys: pytest.CaptureFixture[str]) -> str:
    assert compare(str(first), str(second), as_json=False) == 0
    return capsys.readouterr().out


def plain(first: object, second: object, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert compare(str(first), str(second), as_json=True) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def one_pair(found: dict[str, Any]) -> dict[str, Any]:
    (pair,) = found["pairs"]
    return {**pair, **{one["measure"]: one for one in pair["comparisons"]}}


def compared(found: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (one["setting"]["benchmark"], one["first"], one["second"])
        for pair in found["pairs"]
        for one in pair["comparisons"]
    }


def test_two_cells_are_compared_task_by_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_cell(tmp_path, selector="vanilla", rewards=FIRST)
    second = make_cell(tmp_path, selector="skillreranker", rewards=SECOND)
    text = printed(first, second, capsys)
    assert "SIMULATED" in text
    assert "exact McNemar" in text
    assert "not resolved; about" in text
    named = text.split("2 tasks that A alone solved:")[1]
    assert named.split()[:2] == ["look_at_obj_in_light/1", "pick_and_place_simple/4"]
    assert named.split("1 task that B alone solved:")[1].split()[0] == "look_at_obj_in_light/3"
    assert "selector: vanilla -> skillreranker" in text
    assert "reranker: none -> similarity" in text


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_no_terminal_is_too_narrow_for_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    first = make_cell(tmp_path, selector="vanilla", rewards=FIRST, tokens=1_234_567)
    second = make_cell(tmp_path, selector="skillreranker", rewards=SECOND, tokens=1_234_567)
    monkeypatch.setenv("COLUMNS", str(width))
    text = " ".join(printed(first, second, capsys).split())
    assert "\u2026" not in text
    assert "1,234,567" in text and "0 [0, 0]" in text
    assert "not resolved; about" in text and "SIMULATED: no language model" in text


def test_json_is_all_there_is_on_standard_output(tmp_path: Path) -> None:
    first = make_cell(tmp_path, selector="vanilla", rewards=FIRST)
    second = make_cell(tmp_path, selector="skillreranker", rewards=SECOND)
    done = CliRunner().invoke(app, ["compare", str(first), str(second), "--json"])
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert found["simulated"] is True
    pair = one_pair(found)
    assert (pair["success"]["tasks"], pair["success"]["p"]) == (6, 1.0)
    assert [pair["task_names"][task] for task in pair["success"]["only_second"]] == ["look_at_obj_in_light/3"]
    assert pair["reward"]["difference"] == pytest.approx(-100 / 6)


def test_methods_of_one_folder_are_chosen_by_name_and_compared_in_every_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for benchmark in ("alfworld", "scienceworld"):
        make_cell(tmp_path, selector="vanilla", benchmark=benchmark, rewards=FIRST)
        make_cell(tmp_path, selector="vector", top_k=1, benchmark=benchmark, rewards=SECOND)
        make_cell(tmp_path, selector="none", benchmark=benchmark, rewards=SECOND)
    found = plain(f"{tmp_path}:vanilla", f"{tmp_path}:vector top_k=1", capsys)
    assert compared(found) == {(name, "vanilla", "vector top_k=1") for name in ("alfworld", "scienceworld")}
    assert found["without_partner"] == []
    text = printed(f"{tmp_path}:vanilla", f"{tmp_path}:vector", capsys)
    assert "p (Holm)" in text
    assert "corrected for all rows of a measure" in text
    assert text.count("selector: vanilla -> vector") == 1


def test_two_sweeps_pair_equal_methods_and_name_those_without_partner(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    make_cell(old, selector="vanilla", rewards=FIRST)
    make_cell(old, selector="none", rewards=FIRST)
    make_cell(old, selector="vanilla", benchmark="scienceworld", rewards=FIRST)
    make_cell(new, selector="vanilla", rewards=SECOND, library="other")
    make_cell(new, selector="random", top_k=1, rewards=SECOND)
    found = plain(old, new, capsys)
    assert compared(found) == {("alfworld", "vanilla", "vanilla")}
    assert found["without_partner"] == [
        "only A has none (simulated, alfworld/valid_seen)",
        "only A has vanilla (simulated, scienceworld/seen)",
        "only B has random top_k=1 (simulated, alfworld/valid_seen)",
    ]
    (differing,) = one_pair(found)["settings_that_differ"]
    assert differing.startswith("library.fingerprint: ")
    assert len(differing) < 60  # digests are cut


def test_what_differs_is_listed_option_by_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_cell(tmp_path / "a", selector="skillreranker", k=30, seed=0)
    second = make_cell(
        tmp_path / "b", selector="skillreranker", k=10, seed=5, options={"agent.review_turns": 7, "run.max_attempts": 9}
    )
    differing = one_pair(plain(first, second, capsys))["settings_that_differ"]
    assert set(differing) == {"selector.k: 30 -> 10", "seed: 0 -> 5", "agent.review_turns: 2 -> 7"}


def test_other_tasks_are_left_out_with_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_cell(tmp_path, selector="vanilla", rewards=[*FIRST, WON, WON])
    second = make_cell(tmp_path, selector="none", rewards=[LOST, *SECOND[1:]])
    text = printed(first, second, capsys)
    assert "note: compared on the 6 tasks that both have, of A's 8 and B's 6" in text
    assert "note: B has no scored episode of 1 of the 6 shared tasks; they are left out" in text
    assert one_pair(plain(first, second, capsys))["success"]["tasks"] == 5


def test_a_cell_nothing_is_scored_in_is_said_to_have_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = make_cell(tmp_path, selector="vanilla", rewards=[WON, WON])
    second = make_cell(tmp_path, selector="none", rewards=[LOST, None])
    assert "no shared task has a score on both sides" in printed(first, second, capsys)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"benchmark": "scienceworld"}, "benchmark alfworld and scienceworld, split valid_seen and seen"),
        ({"split": "valid_unseen"}, "split valid_seen and valid_unseen"),
    ],
)
def test_cells_of_other_benchmarks_and_splits_are_refused(tmp_path: Path, other: dict[str, str], named: str) -> None:
    first, second = make_cell(tmp_path, selector="vanilla"), make_cell(tmp_path, selector="vanilla", **other)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=named):
        compare(str(first), str(second), as_json=False)


def test_a_cell_without_an_episode_is_no_method(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_cell(tmp_path, selector="none", rewards=FIRST)
    make_cell(tmp_path, selector="vector", rewards=SECOND)
    make_cell(tmp_path, selector="vector", rewards=[None] * 4)
    make_cell(tmp_path, selector="vanilla", rewards=[None] * 6)
    left_out = "2 of 4 cells have no episode and are left out of tables and comparisons"
    found = plain(f"{tmp_path}:none", f"{tmp_path}:vector", capsys)
    assert compared(found) == {("alfworld", "none", "vector top_k=1")}
    assert found["problems"] == [f"A: {left_out}", f"B: {left_out}"]
    with pytest.raises(ConfigError, match="no method 'vanilla' with an episode"):
        compare(f"{tmp_path}:none", f"{tmp_path}:vanilla", as_json=False)


def test_cells_without_a_common_task_are_refused(tmp_path: Path) -> None:
    first = make_cell(tmp_path, selector="vanilla")
    second = make_cell(tmp_path, selector="none")
    config = second / "config.json"
    plain_config = json.loads(config.read_text())
    for task in plain_config["tasks"]:
        task["id"] = "0" * 63 + task["id"][0]
    config.write_text(json.dumps(plain_config))
    with pytest.raises(ConfigError, match="share no task"):
        compare(str(first), str(second), as_json=False)


def test_runs_of_different_methods_are_refused_with_what_each_has(tmp_path: Path) -> None:
    for selector in ("vanilla", "none"):
        make_cell(tmp_path / "a", selector=selector)
    for selector in ("random", "oracle"):
        make_cell(tmp_path / "b", selector=selector)
    with pytest.raises(ConfigError, match="only A has none") as refused:
        compare(str(tmp_path / "a"), str(tmp_path / "b"), as_json=False)
    assert "PATH:METHOD" in refused.value.fix


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vanilla")
    with pytest.raises(ConfigError, match="same cells"):
        compare(str(tmp_path), f"{tmp_path}/cells", as_json=False)


def test_misspelt_and_ambiguous_methods_are_refused(tmp_path: Path) -> None:
    for k in (10, 20):
        make_cell(tmp_path, selector="skillreranker", k=k)
    with pytest.raises(ConfigError, match="did you mean 'skillreranker'"):
        compare(f"{tmp_path}:skilreranker", f"{tmp_path}:skillreranker k=10", as_json=False)
    with pytest.raises(ConfigError, match="several methods") as ambiguous:
        compare(f"{tmp_path}:skillreranker", f"{tmp_path}:skillreranker k=10", as_json=False)
    assert "skillreranker k=10, skillreranker k=20" in ambiguous.value.fix


def test_a_selector_with_two_sizes_stands_for_their_mean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_cell(tmp_path, selector="vector", top_k=1, rewards=FIRST)
    make_cell(tmp_path, selector="vector", top_k=2, rewards=SECOND)
    make_cell(tmp_path, selector="vanilla", rewards=SECOND)
    found = compared(plain(f"{tmp_path}:vanilla", f"{tmp_path}:vector", capsys))
    assert found == {("alfworld", "vanilla", "vector top_k=1,2")}


def test_a_path_that_holds_no_cell_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no cell to report on"):
        compare(str(tmp_path / "nothing:vector"), str(tmp_path), as_json=False)


def test_a_colon_in_a_folders_name_is_not_taken_for_a_method(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run:1"
    make_cell(folder, selector="vanilla", rewards=FIRST)
    make_cell(folder, selector="none", rewards=SECOND)
    assert compared(plain(f"{folder}:vanilla", f"{folder}:none", capsys)) == {("alfworld", "vanilla", "none")}


def test_unreadable_cells_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_cell(tmp_path / "a", selector="vanilla", rewards=FIRST)
    make_cell(tmp_path / "b", selector="vanilla", rewards=SECOND)
    broken = tmp_path / "b" / "cells" / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{")
    assert "problem: B: broken/config.json" in printed(first, tmp_path / "b", capsys)


def test_names_cannot_command_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = make_cell(tmp_path / "a", selector="vanilla", rewards=FIRST)
    make_cell(tmp_path / "b", selector="vanilla", rewards=SECOND)
    config = first / "config.json"
    text = config.read_text().replace("look_at_obj_in_light/1", "[bold]\\u001b[2Jcleared")
    config.write_text(text)
    shown = printed(first, tmp_path / "b", capsys)
    assert "\x1b" not in shown
    assert "[bold]" in shown


def test_a_mistake_ends_with_one_message_and_the_exit_code_of_mistakes(tmp_path: Path) -> None:
    done = run_command("compare", "nowhere", "elsewhere", cache=tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "error: there is no cell to report on" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_real_sweep_is_compared_by_folder_and_by_sweep_file(tmp_path: Path) -> None:
    played = ("benchmark=alfworld", "benchmark.limit=6", "tracking.enabled=false", "cluster.rollout_workers=2")
    done = run_command("run", "-m", "selector=none,skillreranker", *played, cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_command("compare", "outputs:none", "outputs:skillreranker", "--json", cache=tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    pair = one_pair(json.loads(done.stdout))
    (first,), (second,) = ([c for c in cells(tmp_path / "outputs") if name in c.name] for name in ("none", "reranker"))
    steps = [sum(row.env_steps for row in rows_of(cell)) / 6 for cell in (first, second)]
    assert [pair["env_steps"]["first_mean"], pair["env_steps"]["second_mean"]] == pytest.approx(steps)
    solved = [{row.task_id for row in rows_of(cell) if row.success} for cell in (first, second)]
    assert set(pair["success"]["only_first"]) == solved[0] - solved[1]
    assert set(pair["success"]["only_second"]) == solved[1] - solved[0]
    (sweep,) = (tmp_path / "outputs" / "sweeps").iterdir()
    done = run_command("compare", str(first), f"{sweep}:skillreranker", cache=tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "SIMULATED" in done.stdout
    assert "selector: none -> skillreranker" in done.stdout
