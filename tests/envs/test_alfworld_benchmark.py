"""Listing ALFWorld tasks: preflight, filters, identities, and where the data is looked for."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from alfworld_files import PROBLEM, write_game

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.alfworld_games import TASK_TYPES

CONFIG = Path(__file__).parents[2] / "conf" / "benchmark" / "alfworld.yaml"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """An empty split with a name of its own, which has no standard number of games."""
    folder = tmp_path / "data" / "json_2.1.1" / "mine"
    folder.mkdir(parents=True)
    return folder


def benchmark(split: Path, **options: object) -> AlfworldBenchmark:
    return AlfworldBenchmark(split=split.name, data=str(split.parents[1]), **options)  # type: ignore[arg-type]


def test_a_task_has_the_games_content(split: Path) -> None:
    path = write_game(split, "cup", task_type="look_at_obj_in_light")
    (task,) = benchmark(split).tasks()
    assert task.id == hashlib.sha256(PROBLEM.format(name="cup").encode()).hexdigest()
    assert (task.benchmark, task.split, task.task_type) == ("alfworld", "mine", "look_at_obj_in_light")
    assert task.goal == "find cup."
    assert task.name == "look_at_obj_in_light-cup/trial_cup"
    assert task.source == {"path": str(path)}


def test_ids_and_order_are_the_same_in_another_layout(split: Path, tmp_path: Path) -> None:
    for name in ("cup", "mug", "pan"):
        write_game(split, name)
    other = tmp_path / "other" / "json_2.1.1" / "mine"
    for number, name in enumerate(("pan", "cup", "mug")):
        write_game(other, name, folder=f"deep/folder/{number}/trial")
    assert [task.id for task in benchmark(split).tasks()] == [task.id for task in benchmark(other).tasks()]


def test_the_first_tasks_are_of_all_types(split: Path) -> None:
    for task_type in TASK_TYPES:
        for number in range(3):
            write_game(split, f"{task_type}{number}", task_type=task_type)
    assert Counter(task.task_type for task in benchmark(split, limit=6).tasks()) == Counter(TASK_TYPES)


def test_tasks_are_kept_by_type_and_by_id_or_name(split: Path) -> None:
    for name in ("cup", "mug", "pan"):
        write_game(split, name, task_type=TASK_TYPES[0] if name == "cup" else TASK_TYPES[1])
    by_goal = {task.goal: task for task in benchmark(split).tasks()}
    cup, mug, pan = (by_goal[f"find {name}."] for name in ("cup", "mug", "pan"))
    assert benchmark(split, task_types=[TASK_TYPES[0]]).tasks() == [cup]
    for reference in (mug.id, mug.id[:8], mug.name):
        assert benchmark(split, task_ids=[reference]).tasks() == [mug]
    assert set(map(str, benchmark(split, task_ids=[pan.id, cup.name]).tasks())) == {str(pan), str(cup)}


def test_what_alfworlds_own_loader_leaves_out_is_left_out(split: Path) -> None:
    write_game(split, "cup")
    write_game(split, "hopeless", solvable=False)
    write_game(split, "pan", folder="pick_and_place_simple-AppleSliced-None-Desk-1/trial")
    write_game(split, "mug", folder="pick_and_place_with_movable_recep-Cup-Mug-Desk-1/trial")
    write_game(split, "other", task_type="pick_and_place_with_movable_recep")
    (split / "no_game" / "trial").mkdir(parents=True)
    (split / "no_game" / "trial" / "traj_data.json").write_text("{}")
    assert [task.goal for task in benchmark(split).tasks()] == ["find cup."]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"leave_out": "solvable"}, "solvable: Field required"),
        ({"leave_out": "pddl_domain"}, "pddl_domain: Field required"),
        ({"grammar": ""}, "grammar: String should have at least 1"),
        ({"grammar": "grammar :: nothing"}, "grammar cannot be read from line 1"),
        ({"pddl_problem": 7}, "pddl_problem: Input should be a valid string"),
        ({"pddl_problem": PROBLEM.format(name="x").rstrip()[:-1]}, "no complete PDDL problem"),
        ({"walkthrough": ["look", 3]}, "walkthrough.1"),
        ({"solvable": "yes"}, "solvable: Input should be a valid boolean"),
    ],
)
def test_a_bad_game_file_is_named_with_what_is_wrong(split: Path, changes: dict[str, object], complaint: str) -> None:
    write_game(split, "good")
    bad = write_game(split, "bad", **changes)  # type: ignore[arg-type]
    with pytest.raises(DataError) as caught:
        benchmark(split, limit=1).tasks()
    assert str(bad) in caught.value.message
    assert complaint in caught.value.message
    assert "skillarena data alfworld" in caught.value.fix or "alfworld 0.4" in caught.value.fix


def test_a_torn_game_file_is_named(split: Path) -> None:
    path = write_game(split, "cup")
    path.write_text(path.read_text()[:-100])
    with pytest.raises(DataError, match=r"game\.tw-pddl: the file: Invalid JSON"):
        benchmark(split).tasks()


def test_a_missing_trajectory_file_is_named(split: Path) -> None:
    write_game(split, "cup").with_name("traj_data.json").unlink()
    with pytest.raises(DataError, match=r"traj_data\.json cannot be read: No such file"):
        benchmark(split).tasks()


def test_the_same_game_twice_is_refused(split: Path) -> None:
    path = write_game(split, "cup")
    shutil.copytree(path.parent, split / "copy" / "trial")
    with pytest.raises(DataError, match="are the same game"):
        benchmark(split).tasks()


def test_a_standard_split_must_be_complete_unless_a_part_is_asked_for(tmp_path: Path) -> None:
    split = tmp_path / "json_2.1.1" / "valid_seen"
    for name in ("cup", "mug"):
        write_game(split, name)
    with pytest.raises(DataError, match="2 playable games of 140"):
        benchmark(split).tasks()
    assert len(benchmark(split, allow_partial=True).tasks()) == 2
    assert len(benchmark(split, limit=5).tasks()) == 2
    assert len(benchmark(split, task_types=["pick_and_place_simple"]).tasks()) == 2


@pytest.mark.parametrize("options", [{}, {"allow_partial": True}, {"limit": 3}])
def test_an_empty_split_is_refused(split: Path, options: dict[str, object]) -> None:
    with pytest.raises(DataError, match="holds 0 playable games"):
        benchmark(split, **options).tasks()


def test_missing_data_says_how_to_get_some(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        AlfworldBenchmark(split="valid_seen", data=str(tmp_path / "nowhere"))
    assert str(tmp_path / "nowhere") in caught.value.message
    for way in ("skillarena data alfworld", "ALFWORLD_DATA", "split=generated_seen"):
        assert way in caught.value.fix


def test_an_unknown_split_is_answered_with_the_known_ones(split: Path) -> None:
    with pytest.raises(DataError) as caught:
        AlfworldBenchmark(split="mien", data=str(split.parents[1]))
    assert "did you mean 'mine'" in caught.value.message
    assert "mine, generated_seen, generated_unseen" in caught.value.fix


def test_data_is_found_by_argument_then_variable_then_home(
    split: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_game(split, "cup")
    write_game(tmp_path / ".cache" / "alfworld" / "json_2.1.1" / "mine", "home")
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable, goal in ((str(split.parents[1]), "find cup."), ("", "find home.")):
        monkeypatch.setenv("ALFWORLD_DATA", variable)
        assert [task.goal for task in AlfworldBenchmark(split="mine").tasks()] == [goal]
    monkeypatch.setenv("ALFWORLD_DATA", "/nonexistent")
    assert [task.goal for task in benchmark(split).tasks()] == ["find cup."]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"task_types": ["pick_and_place_simpel"]}, "did you mean 'pick_and_place_simple'"),
        ({"limit": 0}, "limit is 0"),
        ({"max_steps": 0}, "max_steps is 0"),
        ({"deadline_s": 0.5}, "deadline_s is 0.5"),
    ],
)
def test_bad_options_are_refused_at_once(options: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        AlfworldBenchmark(**options)  # type: ignore[arg-type]


def test_an_unknown_task_is_refused(split: Path) -> None:
    write_game(split, "cup")
    with pytest.raises(ConfigError, match="unknown task 'ffffffff'"):
        benchmark(split, task_ids=["ffffffff"]).tasks()


def test_the_config_file_builds_the_default_benchmark() -> None:
    options = yaml.safe_load(CONFIG.read_text())
    assert options.pop("_target_") == "skillarena.envs.alfworld.AlfworldBenchmark"
    assert options.pop("name") == AlfworldBenchmark.name
    assert vars(AlfworldBenchmark(**options)) == vars(AlfworldBenchmark())


@pytest.mark.slow
@pytest.mark.parametrize(("split", "count"), [("valid_seen", 140), ("valid_unseen", 134)])
def test_real_splits_are_complete_and_read_as_published(real_alfworld: str, split: str, count: int) -> None:
    published = Path(__file__).parents[3] / "shared" / "data" / "alfworld_tasks.json"
    expected = {
        str(Path(real_alfworld) / entry["game"]): (entry["goal"], entry["task_type"])
        for entry in json.loads(published.read_text())[split]
    }
    tasks = AlfworldBenchmark(split=split, data=real_alfworld).tasks()
    assert len(tasks) == len({task.id for task in tasks}) == count
    assert {task.source["path"]: (task.goal, task.task_type) for task in tasks} == expected
    assert len({task.task_type for task in tasks[:6]}) == 6
