"""ScienceWorld's splits, identities and arguments; no simulator runs here."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections import Counter
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from skillarena.conf.errors import ConfigError, DataError, EnvError
from skillarena.envs.interface import Benchmark, StepResult, Task, TextEnv
from skillarena.envs.json_file import write_json
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_replies import is_refusal
from skillarena.envs.scienceworld_tasks import SPLITS, Scene, canonical_simplifications, scenes

VERSION = metadata.version("scienceworld")
REPOSITORY = Path(__file__).parents[2]


def benchmark_with_goals(folder: Path, **options: Any) -> ScienceWorldBenchmark:
    """A benchmark whose goals are already on disk, so that listing tasks needs no simulator."""
    goals = {scene.name: f"Do {scene.name}." for split in ("seen", "unseen") for scene in scenes(split, "easy")}
    write_json(folder / "scienceworld" / f"goals-{VERSION}-easy.json", goals)
    return ScienceWorldBenchmark(cache_dir=str(folder), **options)


@pytest.mark.parametrize(("split", "count"), [("seen", 194), ("unseen", 211)])
def test_splits_hold_the_published_numbers_of_tasks(tmp_path: Path, split: str, count: int) -> None:
    tasks = benchmark_with_goals(tmp_path, split=split).tasks()
    assert len(tasks) == len({task.id for task in tasks}) == len({task.name for task in tasks}) == count
    assert len({task.task_type for task in tasks}) == 24
    assert all(task.goal == f"Do {task.name}." and task.split == split for task in tasks)


def test_splits_are_those_of_the_reference_data() -> None:
    reference = REPOSITORY.parent / "shared" / "data" / "scienceworld_splits.json"
    if not reference.exists():
        pytest.skip(f"reference data not at {reference}")
    pairs = json.loads(reference.read_text(encoding="utf-8"))
    for split in ("seen", "unseen"):
        expected = Counter((pair["task"], pair["variation"]) for pair in pairs[split])
        assert Counter((scene.task, scene.variation) for scene in scenes(split, "easy")) == expected


def test_splits_share_no_task() -> None:
    assert not set(scenes("seen", "easy")) & set(scenes("unseen", "easy"))


def test_identity_is_the_content_and_nothing_else() -> None:
    scene = Scene("boil", 14, "easy")
    content = f'{{"simplifications":"easy","simulator":"scienceworld {VERSION}","task":"boil","variation":14}}'
    assert scene.to_task("seen", VERSION).id == hashlib.sha256(content.encode()).hexdigest()
    assert scene.to_task("elsewhere", VERSION).id == scene.to_task("seen", VERSION).id
    others = [
        Scene("melt", 14, "easy").to_task("seen", VERSION),
        Scene("boil", 15, "easy").to_task("seen", VERSION),
        Scene("boil", 14, "").to_task("seen", VERSION),
        scene.to_task("seen", "9.9.9"),
    ]
    assert len({scene.to_task("seen", VERSION).id, *(task.id for task in others)}) == 5


def test_a_task_leads_back_to_its_scene() -> None:
    scene = Scene("boil", 14, "easy")
    task = scene.to_task("seen", VERSION)
    assert (task.name, task.task_type, task.benchmark) == ("boil/14", "boil", "scienceworld")
    assert Scene.of(task) == scene


@pytest.mark.parametrize("source", [{}, {"task": "boil", "variation": "14", "simplifications": ""}, {"path": "x"}])
def test_task_of_another_benchmark_is_refused(source: dict[str, str | int]) -> None:
    with pytest.raises(DataError, match="no ScienceWorld task"):
        Scene.of(Task("b", "s", "0" * 64, "strange", "t", "goal", source))


def test_benchmark_and_env_keep_the_interfaces(tmp_path: Path) -> None:
    benchmark = benchmark_with_goals(tmp_path, limit=2)
    assert isinstance(benchmark, Benchmark)
    env = benchmark.make_env()
    assert isinstance(env, TextEnv)
    env.close()


def test_benchmark_survives_pickling(tmp_path: Path) -> None:
    benchmark = benchmark_with_goals(tmp_path, limit=5, max_steps=7)
    copy = pickle.loads(pickle.dumps(benchmark))
    assert (copy.tasks(), copy.split, copy.max_steps) == (benchmark.tasks(), "seen", 7)


def test_filters_choose_tasks(tmp_path: Path) -> None:
    boiling = benchmark_with_goals(tmp_path, task_types=["boil"]).tasks()
    assert Counter(task.task_type for task in boiling) == {"boil": 6}
    chosen = benchmark_with_goals(tmp_path, task_ids=["boil/14", boiling[-1].id[:8]]).tasks()
    assert {task.name for task in chosen} == {"boil/14", boiling[-1].name}
    mixed = benchmark_with_goals(tmp_path, limit=24).tasks()
    assert len({task.task_type for task in mixed}) == 24


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"split": "sen"}, "did you mean 'seen'"),
        ({"task_types": ["boill"]}, "did you mean 'boil'"),
        ({"task_ids": ["boil/1"]}, "unknown task 'boil/1'"),
        ({"simplifications": "opendoors"}, "did you mean 'openDoors'"),
        ({"simplifications": "easy,openDoors"}, "misplaced simplification 'easy'"),
        ({"simplifications": "noElectricalAction"}, "cannot be solved without electrical actions"),
        ({"limit": 0}, "limit"),
        ({"max_steps": 0}, "max_steps"),
        ({"jvm_heap_mb": 1}, "jvm_heap_mb"),
        ({"call_deadline_s": 0}, "call_deadline_s"),
    ],
)
def test_wrong_arguments_are_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScienceWorldBenchmark(**options)


def test_missing_simulator_is_one_error_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(EnvError) as caught:
        ScienceWorldBenchmark()
    assert "pip install 'skillarena[scienceworld]'" in caught.value.fix


def test_simplifications_have_one_spelling() -> None:
    assert canonical_simplifications("teleportAction, openDoors") == "openDoors,teleportAction"
    assert canonical_simplifications(" easy ") == "easy"
    assert canonical_simplifications("") == ""


@pytest.mark.parametrize(("score", "points"), [(-100.0, 0.0), (0.0, 0.0), (42.0, 42.0), (100.0, 100.0)])
def test_points_are_the_score_without_negatives(score: float, points: float) -> None:
    result = StepResult("", score, 0.0, done=True, won=score == 100, end_reason=None)
    assert ScienceWorldBenchmark(limit=1).points(result) == points


def test_action_help_follows_the_simplifications() -> None:
    def first_words(**options: Any) -> set[str]:
        return {line.split()[0] for line in ScienceWorldBenchmark(**options).action_help().split("\n")}

    assert {"teleport", "connect"} <= first_words()
    assert "teleport" not in first_words(simplifications="openDoors")
    without = first_words(simplifications="noElectricalAction", task_types=["boil"])
    assert not {"connect", "disconnect", "teleport"} & without


@pytest.mark.parametrize(
    "observation",
    [
        "No known action matches that input.",
        "Unknown action.  Type 'help' for a list of actions, and 'objects' for a list of possible object referents. ",
        "The door is already open.",
        "It's not clear how to get there from here.",
        "You can't pick up a liquid directly. Try pouring it from one container to another, or dunking it.",
        "I'm not sure how to use those two things together.",
        "The wood cup is empty, so there's nothing to pour.",
        "The adult elephant is not something that can be activated.",
        "terminal 1 on red wire is already connected, and must be disconnected before it can be connected to something "
        "else",
    ],
)
def test_refusals_are_recognised(observation: str) -> None:
    assert is_refusal(observation)


@pytest.mark.parametrize(
    "observation",
    [
        "The door is now open.",
        "You move to the kitchen.",
        "Ambiguous request: Please enter the number for the action you intended (or blank to cancel):\n0:\topen door",
        "a door to the kitchen (that is closed)",
        "There is nothing in the wood cup.",
        "This room is called the hallway.\nThe door is already open.",
        "red wire has been disconnected",
    ],
)
def test_answers_are_no_refusals(observation: str) -> None:
    assert not is_refusal(observation)


def test_the_training_split_has_every_task_and_none_of_the_evaluation_splits() -> None:
    ids = {split: {scene.to_task(split, "1").id for scene in scenes(split, "easy")} for split in SPLITS}
    assert [len(ids[split]) for split in ("seen", "unseen", "train")] == [194, 211, 120]
    assert ids["train"].isdisjoint(ids["seen"] | ids["unseen"])
    assert len({scene.task for scene in scenes("train", "easy")}) == 30
