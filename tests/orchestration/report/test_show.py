"""`skillarena show`: one episode out of many, told completely and safely."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from case_factory import HOSTILE, edges_selection, keep_selections
from report_cells import LOST, make_cell

from skillarena.conf.errors import ConfigError, DataError
from skillarena.orchestration.ledger import EpisodeRow, Ledger, read_config, read_rows
from skillarena.orchestration.report.show import show

Shown = Callable[..., str]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What the command prints, 160 columns wide."""
    monkeypatch.setenv("COLUMNS", "160")

    def run(wanted: object, *paths: Path, **options: Any) -> str:
        defaults: dict[str, Any] = {"outcome": None, "task_type": None, "as_json": False, "figure": None}
        assert show(str(wanted), paths, **defaults | options) == 0
        return capsys.readouterr().out

    return run


def rows(cell: Path) -> list[EpisodeRow]:
    return list(read_rows(cell).rows)


def damage(cell: Path, name: str, offset: int, line: bytes) -> None:
    """Overwrite the beginning of the line at an offset."""
    with (cell / name).open("r+b") as file:
        file.seek(offset)
        file.write(line)


def test_an_episode_is_told_with_its_task_skills_turns_and_end(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[100.0, 0.0], steps=[3, 2], tokens=1000)
    row = rows(cell)[0]
    text = shown(row.episode_id[:12], tmp_path)
    assert row.episode_id in text
    for said in (
        "alfworld/valid_seen skillreranker k=30 simulated seed=0",
        row.task_name,
        "do task 0",
        "solved, reward 100 of 100, score 1",
        "3 env steps, 3 turns, 0 invalid actions, 0 skill look-ups",
        "1,000: prompt 900, completion 100",
        "1. set/first",
        "2. set/second",
        "run.keep_selections=true",
        "You are in a room.",
        "Turn 3  score 0 > 1; prompt 300, completion 34; 0.250 s model, 0.125 s environment",
        "ended: solved after 3 turns",
    ):
        assert said in text
    for number in range(3):
        assert f"thought      step {number}." in text
        assert f"observation  You are in room {number}." in text
    assert text.count("action       look") == 3
    assert "Turn 4" not in text


def test_every_kind_of_turn_says_what_it_was(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0], steps=6)
    row = rows(cell)[0]
    plain = orjson.loads((cell / "trajectories.jsonl").read_bytes())
    usage = {
        "prompt_tokens": 50,
        "cached_tokens": 40,
        "completion_tokens": 30,
        "reasoning_tokens": 20,
        "wasted_tokens": 7,
    }
    changes: list[dict[str, Any]] = [
        {"valid": False, "observation": "Nothing happens."},
        {"action": None, "valid": False, "thought": "hm", "reply": "hm"},
        {"action": None, "tool": "search(heat)", "tool_seconds": 1.5, "skills_read": ["set/third"]},
        {"normalised": True, "finish_reason": "length"},
        {"advice": "Try the stove.", "usage": {**plain["turns"][0]["usage"], **usage, "estimated": True}},
        {"thought": "", "reply": "only this"},
    ]
    for turn, change in zip(plain["turns"], changes, strict=True):
        turn |= change
    config = read_config(cell)
    with Ledger(cell, config["identity"], {}, ()) as ledger:
        ledger.append(replace(row, attempts=2, wasted_tokens=1234, memory="m-1.bin", marks=("template",)), plain)
    text = shown(row.episode_id, tmp_path)
    for said in (
        "look  (refused)",
        "the reply held no command",
        "tool         search(heat)",
        "1.500 s selector",
        "skills read  set/third",
        "look  (respelt)",
        "the reply was cut",
        "advice       Try the stove.",
        "prompt 50 (40 cached), completion 30 (20 reasoning), 7 wasted, estimated",
        "2, 1,234 tokens wasted",
        "m-1.bin",
        "template: a remembered procedure was given",
    ):
        assert said in text, said


def test_a_kept_selection_gives_names_scores_and_reasons(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path)
    selection = replace(edges_selection(), guidance="First this, then that.")
    keep_selections(cell, selection)
    text = shown(rows(cell)[0].episode_id, tmp_path)
    for skill in selection.skills:
        assert f"{skill.id}" in text
        assert f"{skill.score:.3f}" in text
        assert skill.reason in text
    assert "First this, then that." in text
    assert "keep_selections" not in text


def test_a_lost_episode_shows_its_reason(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[LOST, 100.0])
    text = shown(rows(cell)[0].episode_id, tmp_path)
    assert "infra_error, which has no score" in text
    assert "worker died" in text
    assert "attempts  3" in text
    assert "Turn" not in text


def test_json_holds_row_trajectory_and_selection(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path)
    row = rows(cell)[0]
    before = json.loads(shown(row.episode_id, tmp_path, as_json=True))
    assert before["selection"] is None
    assert before["episode"]["episode_id"] == before["trajectory"]["episode_id"] == row.episode_id
    assert before["cell"]["name"].startswith("alfworld/valid_seen")
    keep_selections(cell, edges_selection())
    after = json.loads(shown(row.episode_id, tmp_path, as_json=True))
    assert after["selection"]["details"]["method"] == "skillreranker"


@pytest.mark.parametrize("wanted", ["{cell}:{name}", "{cell}:2", "{id:.4}", "{ID}"])
def test_an_episode_is_found_by_the_beginning_of_its_id_or_by_its_task(
    tmp_path: Path, shown: Shown, wanted: str
) -> None:
    cell = make_cell(tmp_path, rewards=[0.0, 100.0])
    row = rows(cell)[1]
    word = wanted.format(cell=cell, name=row.task_name, id=row.episode_id, ID=row.episode_id.upper())
    assert row.episode_id in shown(word, tmp_path)


def test_a_task_that_several_cells_play_is_ambiguous_in_their_folder(tmp_path: Path, shown: Shown) -> None:
    cells = [make_cell(tmp_path, selector=selector) for selector in ("random", "vector")]
    with pytest.raises(ConfigError, match="stands for 2 episodes") as caught:
        shown(f"{tmp_path}:1")
    for cell in cells:
        assert rows(cell)[0].episode_id in str(caught.value)


def test_the_beginning_of_two_ids_is_refused_and_both_are_listed(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0, 0.0, 0.0])
    config = read_config(cell)
    with Ledger(cell, config["identity"], {}, ()) as ledger:
        for row in rows(cell):
            ledger.append(replace(row, episode_id="abcd" + row.episode_id[4:]))
    with pytest.raises(ConfigError, match="abcd stands for 3 episodes") as caught:
        shown("abcd", tmp_path)
    assert all(row.episode_id in str(caught.value) for row in rows(cell)[3:])


def test_what_cannot_be_found_says_what_there_is(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0, None])
    with pytest.raises(ConfigError, match=r"no episode's id begins with 00000000 \(1 cells"):
        shown("00000000", tmp_path)
    with pytest.raises(ConfigError, match=r"id begins with 00000000 \(0 cells"):
        shown("00000000", tmp_path / "absent")
    with pytest.raises(ConfigError, match="at least 4"):
        shown("abc", tmp_path)
    with pytest.raises(ConfigError, match="neither a folder nor"):
        shown("no such thing", tmp_path)
    with pytest.raises(ConfigError, match="did you mean 'pick_and_place_simple/0'"):
        shown(f"{cell}:pick_and_place_simpl/0")
    with pytest.raises(ConfigError, match="has no finished episode"):
        shown(f"{cell}:2")


def test_a_cells_folder_lists_its_episodes(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[100.0, 37.5, LOST, None], steps=[4, 5, 6, 7], tokens=12345)
    text = shown(cell)
    assert "3 episodes of 4 tasks" in text
    lines = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    assert [line[0] for line in lines] == ["1", "2", "3"]
    assert [line[1] for line in lines] == [row.episode_id[:10] for row in rows(cell)]
    assert lines[0][2:] == ["pick_and_place_simple/0", "solved", "100", "4", "12,345"]
    assert lines[1][2:] == ["look_at_obj_in_light/1", "step_limit", "37.5", "5", "12,345"]
    assert lines[2][2:] == ["pick_and_place_simple/2", "infra_error", "0", "0"]
    listed = json.loads(shown(cell, as_json=True))
    assert [(one["number"], one["outcome"]) for one in listed] == [(1, "solved"), (2, "step_limit"), (3, "infra_error")]


def test_a_list_can_be_of_one_outcome_or_type_and_numbers_stay(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[100.0, 0.0, 0.0, 100.0])
    numbers = lambda **options: [one["number"] for one in json.loads(shown(cell, as_json=True, **options))]  # noqa: E731
    assert numbers(outcome="solved") == [1, 4]
    assert numbers(task_type="look_at_obj_in_light") == [2, 4]
    assert numbers(outcome="solved", task_type="look_at_obj_in_light") == [4]
    with pytest.raises(ConfigError, match="did you mean 'solved'"):
        shown(cell, outcome="solvd")
    with pytest.raises(ConfigError, match="cell's list"):
        shown(rows(cell)[0].episode_id, tmp_path, outcome="solved")


def test_an_output_folder_lists_its_cells(tmp_path: Path, shown: Shown) -> None:
    folders = [make_cell(tmp_path, selector=selector, rewards=[0.0, None]) for selector in ("random", "vector")]
    text = shown(tmp_path)
    assert "2 cells" in text
    assert text.count("1/2") == 2
    listed = json.loads(shown(tmp_path, as_json=True))
    assert [one["folder"] for one in listed] == [str(folder) for folder in folders]
    with pytest.raises(ConfigError, match="2 cells"):
        shown(tmp_path, outcome="solved")


def test_a_list_cuts_no_number_in_a_narrow_terminal(
    tmp_path: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = make_cell(tmp_path, rewards=[100.0, 30.0], benchmark="scienceworld", tokens=1_234_567)
    monkeypatch.setenv("COLUMNS", "40")
    text = shown(cell)
    assert "\u2026" not in text
    assert text.count("1,234,567") == 2


def test_a_word_that_can_be_no_path_is_a_mistake(shown: Shown) -> None:
    with pytest.raises(ConfigError, match="neither a folder"):
        shown("x" * 300)
    with pytest.raises(ConfigError, match="neither a folder"):
        shown("x" * 300 + ":1")


def test_only_the_lines_of_the_episode_are_read(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0] * 3)
    first, wanted, last = rows(cell)
    for other in (first, last):
        damage(cell, "trajectories.jsonl", other.trajectory_offset, b"garbage")
    assert wanted.task_name in shown(wanted.episode_id, tmp_path)


def test_a_damaged_trajectory_is_one_clear_error(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0] * 3)
    first, second, third = rows(cell)
    damage(cell, "trajectories.jsonl", first.trajectory_offset, b"garbage")
    with pytest.raises(DataError, match=r"trajectories\.jsonl, byte 0: not a line of JSON"):
        shown(first.episode_id, tmp_path)
    damage(cell, "trajectories.jsonl", second.trajectory_offset, b'{"episode_ie":')
    with pytest.raises(DataError, match="not the line of this episode"):
        shown(second.episode_id, tmp_path)
    damage(
        cell,
        "trajectories.jsonl",
        third.trajectory_offset + 1,
        b'"episode_id":"' + third.episode_id.encode() + b'","sead"',
    )
    with pytest.raises(DataError, match=r"byte \d+: not a trajectory"):
        shown(third.episode_id, tmp_path)
    (cell / "trajectories.jsonl").unlink()
    with pytest.raises(DataError, match="cannot be read"):
        shown(third.episode_id, tmp_path)


def test_a_damaged_selection_is_one_clear_error(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0])
    keep_selections(cell, edges_selection())
    (row,) = rows(cell)
    line = orjson.dumps({"episode_id": row.episode_id, "selection": {"skills": 1}}) + b"\n"
    damage(cell, "selections.jsonl", row.selection_offset, line)
    with pytest.raises(DataError, match=r"selections\.jsonl, byte 0: not a selection"):
        shown(row.episode_id, tmp_path)


@pytest.mark.parametrize("form", ["svg", "png", "html"])
def test_a_kept_selection_is_drawn(tmp_path: Path, shown: Shown, form: str) -> None:
    cell = make_cell(tmp_path, texts={"goal": "put a hot mug in cabinet"})
    selection = edges_selection()
    keep_selections(cell, selection)
    figure = tmp_path / f"case.{form}"
    shown(rows(cell)[1].episode_id, tmp_path, figure=figure)
    if form != "png":
        drawn = figure.read_text()
        assert "put a hot mug in cabinet" in drawn
        assert selection.skills[0].id in drawn


def test_without_a_kept_selection_a_figure_says_how_to_get_one(tmp_path: Path, shown: Shown) -> None:
    cell = make_cell(tmp_path, rewards=[0.0, LOST])
    played, lost = rows(cell)
    figure = tmp_path / "case.svg"
    with pytest.raises(ConfigError, match=r"was not kept(.|\n)*run\.keep_selections=true(.|\n)*skillarena select"):
        shown(played.episode_id, tmp_path, figure=figure)
    with pytest.raises(ConfigError, match="was lost and has no selection: worker died"):
        shown(lost.episode_id, tmp_path, figure=figure)
    with pytest.raises(ConfigError, match="not of a folder"):
        shown(cell, figure=figure)
    with pytest.raises(ConfigError, match="no such kind of figure"):
        shown(played.episode_id, tmp_path, figure=tmp_path / "case.jpg")
    assert not figure.exists()


def test_hostile_text_cannot_command_the_terminal(tmp_path: Path, shown: Shown) -> None:
    names = ("goal", "observation", "reply", "thought", "action")
    cell = make_cell(tmp_path, texts=dict.fromkeys(names, f"{HOSTILE} [red]x[/red]"), fields={"error": "\x1b[2J"})
    text = shown(rows(cell)[0].episode_id, tmp_path)
    assert not any(c in text for c in "\x1b\x00\u202e")
    assert "[red]x[/red]" in text
    assert "<script>alert(1)</script>" in text


@pytest.mark.parametrize("columns", ["80", "160"])
def test_nothing_is_cut_at_any_width(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    cell = make_cell(tmp_path, texts={"observation": "word " * 100 + "y" * 400})
    row = rows(cell)[0]
    for wanted in (row.episode_id, str(cell), str(tmp_path)):
        show(
            wanted,
            [tmp_path] if wanted == row.episode_id else [],
            outcome=None,
            task_type=None,
            as_json=False,
            figure=None,
        )
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= int(columns)
        assert "…" not in text
        if wanted == row.episode_id:
            assert text.count("y" * 60) >= 6
            assert row.episode_id in text.replace("\n", "")
