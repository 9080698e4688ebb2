"""Gold paths: shipped for the standard tasks, found and kept for all others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillarena.conf.errors import EnvError
from skillarena.envs.interface import Task
from skillarena.envs.scienceworld_gold import GoldPaths
from skillarena.envs.scienceworld_gold_data import shipped_paths, write_paths
from skillarena.envs.scienceworld_jvm import JvmOptions
from skillarena.envs.scienceworld_tasks import Scene, scenes, simulator_version

NO_JAVA = JvmOptions(java="/no/such/java")


def standard_tasks() -> list[Task]:
    version = simulator_version()
    return [scene.to_task(split, version) for split in ("seen", "unseen") for scene in scenes(split, "easy")]


def test_every_standard_task_has_a_shipped_path_and_nothing_else_is_shipped() -> None:
    assert {task.id for task in standard_tasks()} == set(shipped_paths())
    assert all(path and all(isinstance(action, str) for action in path) for path in shipped_paths().values())


def test_a_shipped_path_needs_no_simulator(tmp_path: Path) -> None:
    task = standard_tasks()[0]
    assert GoldPaths(tmp_path, NO_JAVA, 60).path(task) == shipped_paths()[task.id]
    assert list(tmp_path.iterdir()) == []


def test_the_data_file_is_the_same_for_the_same_paths(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_paths(tmp_path / name, dict(reversed(shipped_paths().items())) if name == "b" else shipped_paths())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.slow
def test_a_path_found_anew_is_the_shipped_one_and_is_kept(tmp_path: Path) -> None:
    wanted = [("find-animal", 159), ("lifespan-longest-lived", 92), ("chemistry-mix-paint-secondary-color", 19)]
    tasks = [Scene(name, variation, "easy").to_task("seen", simulator_version()) for name, variation in wanted]
    gold = GoldPaths(tmp_path, JvmOptions(), 120, shipped={})
    found = [gold.path(task) for task in tasks]
    gold.close()
    assert found == [shipped_paths()[task.id] for task in tasks]
    assert json.loads((tmp_path / f"{tasks[0].id}.json").read_text())["actions"] == found[0]
    again = GoldPaths(tmp_path, NO_JAVA, 60, shipped={})
    assert [again.path(task) for task in tasks] == found
    with pytest.raises(EnvError):
        again.path(Scene("find-animal", 1, "easy").to_task("train", simulator_version()))
