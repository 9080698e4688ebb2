"""Rooms, goals and scenes out of which ALFWorld games are generated, and the engine that looks for a way."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from skillarena.envs.alfworld_generator_engine import engine
from skillarena.envs.alfworld_generator_goals import SPLITS, TASK_TYPES, Goal, feasible_goals, sample_goals
from skillarena.envs.alfworld_generator_package import AlfworldPackage, load_package
from skillarena.envs.alfworld_generator_pddl import problem
from skillarena.envs.alfworld_generator_rooms import load_room, load_rooms, object_id
from skillarena.envs.alfworld_generator_scene import PER_RECEPTACLE, RECEPTACLES, Scene, furnish


def drafts(package: AlfworldPackage, split: str, task_type: str, count: int) -> Iterator[tuple[Goal, Scene]]:
    """Scenes as generation drafts them, before the engine sees them."""
    rooms = load_rooms(package, unseen=split == "generated_unseen")
    rng = Random(7)
    for room, goal in islice(sample_goals(package, rooms, split, task_type, rng), count):
        if scene := furnish(package, room, goal, rng):
            yield goal, scene


def test_package_data_is_read_without_importing_alfworld() -> None:
    code = "import os, sys; from skillarena.envs.alfworld_generator_package import load_package; load_package(); "
    code += "assert 'alfworld' not in sys.modules and 'ALFWORLD_DATA' not in os.environ"
    environment = {name: value for name, value in os.environ.items() if name != "ALFWORLD_DATA"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_object_ids_have_alfred_form() -> None:
    assert object_id("Mug", (-104, 5, 0)) == "Mug|-01.04|+00.05|+00.00"


def test_rooms_keep_the_layouts_receptacles_and_add_what_has_no_standing_point(package: AlfworldPackage) -> None:
    room = load_room(package, 1)
    by_type = Counter(receptacle.type for receptacle in room.receptacles)
    assert by_type["Cabinet"] == 8
    assert by_type["Toaster"] == by_type["CoffeeMachine"] == by_type["StoveBurner"] == 1
    ids = {receptacle.id: receptacle for receptacle in room.receptacles}
    sink = ids["Sink|-01.90|+00.97|-01.50|SinkBasin"]
    assert sink.type == "SinkBasin"
    assert len(ids) == len(room.receptacles)
    assert not {receptacle.pose for receptacle in room.receptacles} & set(room.floor)


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_each_split_has_enough_different_goals_and_they_never_meet(package: AlfworldPackage, task_type: str) -> None:
    pairs: dict[str, set[tuple[str, str]]] = {}
    for split in SPLITS:
        stream = sample_goals(
            package, load_rooms(package, unseen=split == "generated_unseen"), split, task_type, Random(0)
        )
        found = list(islice(stream, 40))
        pairs[split] = {(goal.object, goal.place) for _, goal in found}
        assert len(pairs[split]) >= 8
        assert all((room.number in package.test_rooms) == (split == "generated_unseen") for room, _ in found)
        assert all(goal in feasible_goals(package, room, task_type) for room, goal in found)
    assert pairs["generated_seen"].isdisjoint(pairs["generated_unseen"])


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_scenes_are_small_plausible_and_not_solved_yet(package: AlfworldPackage, task_type: str) -> None:
    scenes = list(drafts(package, "generated_seen", task_type, 30))
    assert len(scenes) >= 15
    for goal, scene in scenes:
        assert RECEPTACLES[0] <= len(scene.receptacles) <= RECEPTACLES[1]
        assert len({thing.id for thing in scene.things}) == len(scene.things)
        assert max(Counter(thing.place for thing in scene.things).values()) <= PER_RECEPTACLE
        assert scene.start not in {receptacle.pose for receptacle in scene.receptacles}
        wanted = [thing for thing in scene.things if thing.type == goal.object]
        assert len(wanted) >= (2 if task_type == "pick_two_obj_and_place" else 1)
        assert all(thing.place.type not in {goal.receptacle, goal.appliance} for thing in wanted)
        lamps = [thing for thing in scene.things if thing.type == "DeskLamp"]
        assert len(lamps) == (task_type == "look_at_obj_in_light")
        assert all(thing in lamps or thing.place.type in package.homes(thing.type) for thing in scene.things)
        assert all(thing.place in scene.receptacles for thing in scene.things)
        assert {goal.receptacle, goal.appliance} - {""} <= {receptacle.type for receptacle in scene.receptacles}


def test_some_wanted_objects_are_hidden_behind_doors_and_some_lie_open(package: AlfworldPackage) -> None:
    hidden = [
        all(thing.place.type in package.openable for thing in scene.things if thing.type == goal.object)
        for goal, scene in drafts(package, "generated_seen", "pick_cool_then_place_in_recep", 60)
    ]
    assert 0.2 < sum(hidden) / len(hidden) < 0.8


def test_equal_drafts_give_equal_problems(package: AlfworldPackage) -> None:
    once, again = (
        [problem(package, scene, goal) for goal, scene in drafts(package, split, "pick_and_place_simple", 5)]
        for split in ["generated_unseen"] * 2
    )
    assert once and once == again
    assert len(set(once)) == len(once)


@pytest.mark.slow
@pytest.mark.parametrize("data", ["", None])
def test_the_engine_leaves_arguments_output_environment_and_home_alone(data: str | None, tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from skillarena.envs.alfworld_generator_engine import engine\n"
        "from skillarena.envs.alfworld_generator_package import load_package\n"
        "before = os.environ.get('ALFWORLD_DATA'), sys.argv, list(sys.argv), sys.stdout\n"
        "package = load_package()\n"
        "with engine(package.domain, package.grammar) as solver:\n"
        "    assert solver.walkthrough(sys.argv[1])\n"
        "assert 'alfworld' in sys.modules\n"
        "assert (os.environ.get('ALFWORLD_DATA'), sys.argv, list(sys.argv), sys.stdout) == before\n"
    )
    goal, scene = next(drafts(load_package(), "generated_seen", "look_at_obj_in_light", 5))
    environment = {name: value for name, value in os.environ.items() if name != "ALFWORLD_DATA"}
    environment |= {"HOME": str(tmp_path)} | ({} if data is None else {"ALFWORLD_DATA": data})
    command = [sys.executable, "-c", code, problem(load_package(), scene, goal)]
    subprocess.run(command, env=environment, check=True, timeout=60)
    assert not (tmp_path / ".cache" / "alfworld").exists()


@pytest.mark.slow
def test_a_problem_without_a_way_has_no_walkthrough(package: AlfworldPackage) -> None:
    goal, scene = next(drafts(package, "generated_seen", "pick_heat_then_place_in_recep", 5))
    text = problem(package, scene, goal)
    with engine(package.domain, package.grammar) as solver:
        assert solver.walkthrough(text)
        assert solver.walkthrough(re.sub(r"\(heatable \S+\)", "", text)) == []
