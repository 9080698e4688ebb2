"""The generator of small ALFWorld games: format, content, determinism, and writing all or nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pytest

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs import alfworld_generator
from skillarena.envs.alfworld_generator import ensure_generated, generate
from skillarena.envs.alfworld_generator_engine import engine
from skillarena.envs.alfworld_generator_goals import SPLITS, TASK_TYPES, Goal, feasible_goals, sample_goals
from skillarena.envs.alfworld_generator_package import AlfworldPackage, load_package
from skillarena.envs.alfworld_generator_pddl import problem
from skillarena.envs.alfworld_generator_rooms import load_room, load_rooms, object_id
from skillarena.envs.alfworld_generator_scene import PER_RECEPTACLE, RECEPTACLES, Scene, furnish

REAL_GAMES = Path(__file__).parents[3] / "shared" / "data" / "alfworld_games.tar.xz"

SENTENCES = {
    "pick_and_place_simple": r"put a {obj} in {place}|put some {obj} on {place}",
    "look_at_obj_in_light": r"look at {obj} under the {place}|examine the {obj} with the {place}",
    "pick_clean_then_place_in_recep": r"put a clean {obj} in {place}|clean some {obj} and put it in {place}",
    "pick_heat_then_place_in_recep": r"put a hot {obj} in {place}|heat some {obj} and put it in {place}",
    "pick_cool_then_place_in_recep": r"put a cool {obj} in {place}|cool some {obj} and put it in {place}",
    "pick_two_obj_and_place": r"put two {obj} in {place}|find two {obj} and put them in {place}",
}
"""ALFWorld's goal sentences."""

COMMAND = re.compile(
    r"go to T N|open T N|take T N from T N|move T N to T N|use T N|(?:clean|heat|cool) T N with T N".replace(
        "T N", r"[a-z]+ \d+"
    )
)


@dataclass(frozen=True)
class Game:
    """A written game, read back."""

    path: Path
    content: dict[str, Any]
    trajectory: dict[str, Any]

    @property
    def goal(self) -> str:
        (sentence,) = re.findall(r'Your task is to: (.*?)\."', self.content["grammar"])
        return str(sentence)

    @property
    def pair(self) -> tuple[str, str]:
        wanted = self.trajectory["pddl_params"]
        return wanted["object_target"], wanted["parent_target"] or wanted["toggle_target"]


def read(path: Path) -> Game:
    trajectory = json.loads(path.with_name("traj_data.json").read_text(encoding="utf-8"))
    return Game(path, json.loads(path.read_text(encoding="utf-8")), trajectory)


def bytes_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def python(code: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **variables}, text=True, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


@pytest.fixture(scope="module")
def package() -> AlfworldPackage:
    return load_package()


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Game]]:
    root = tmp_path_factory.mktemp("generated")
    return {split: [read(path) for path in generate(root, split, games_per_type=2, seed=0)] for split in SPLITS}


@pytest.fixture(scope="module")
def all_games(games: dict[str, list[Game]]) -> list[Game]:
    return [game for split in SPLITS for game in games[split]]


def drafts(package: AlfworldPackage, split: str, task_type: str, count: int) -> Iterator[tuple[Goal, Scene]]:
    """Scenes as generation drafts them, before the engine sees them."""
    rooms = load_rooms(package, unseen=split == "generated_unseen")
    rng = Random(7)
    for room, goal in islice(sample_goals(package, rooms, split, task_type, rng), count):
        if scene := furnish(package, room, goal, rng):
            yield goal, scene


# Rooms, goals and scenes: no engine.


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


# Refusals.


def test_a_misspelt_split_is_named_with_its_neighbour(tmp_path: Path) -> None:
    for ask in (
        lambda: generate(tmp_path, "generated_sen", games_per_type=1, seed=0),
        lambda: ensure_generated("generated_sen", tmp_path),
    ):
        with pytest.raises(ConfigError, match="did you mean 'generated_seen'"):
            ask()
    assert not list(tmp_path.iterdir())


def test_no_games_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="games_per_type is 0"):
        generate(tmp_path, "generated_seen", games_per_type=0, seed=0)


def test_missing_alfworld_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(DataError, match=r"skillarena\[alfworld\]"):
        ensure_generated("generated_seen", tmp_path)


def test_a_cache_folder_that_cannot_be_made_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="can be written"):
        ensure_generated("generated_seen", tmp_path / "file")


# Written games.


@pytest.mark.slow
def test_files_lie_as_in_the_download(games: dict[str, list[Game]]) -> None:
    for split, found in games.items():
        assert Counter(game.trajectory["task_type"] for game in found) == dict.fromkeys(TASK_TYPES, 2)
        for game in found:
            *_, version, folder, task, trial, name = game.path.parts
            assert (version, folder, name) == ("json_2.1.1", split, "game.tw-pddl")
            number = game.trajectory["scene"]["scene_num"]
            assert task == f"{game.trajectory['task_type']}-{game.pair[0]}-None-{game.pair[1]}-{number}"
            assert trial == game.trajectory["task_id"]


@pytest.mark.slow
def test_games_use_the_packaged_logic_and_are_solvable(package: AlfworldPackage, all_games: list[Game]) -> None:
    for game in all_games:
        assert game.content["pddl_domain"] == package.domain
        assert game.content["grammar"] == package.grammar.replace("UNKNOWN GOAL", game.goal)
        assert game.content["solvable"] is True


@pytest.mark.slow
def test_goal_sentences_are_alfworlds(all_games: list[Game]) -> None:
    for game in all_games:
        thing, place = (name.lower() for name in game.pair)
        forms = SENTENCES[game.trajectory["task_type"]].format(obj=thing, place=place)
        assert re.fullmatch(forms, game.goal), game.goal


@pytest.mark.slow
def test_walkthroughs_are_short_and_use_visible_names(all_games: list[Game]) -> None:
    for game in all_games:
        assert 3 <= len(game.content["walkthrough"]) <= 12
        assert all(COMMAND.fullmatch(command) for command in game.content["walkthrough"]), game.content["walkthrough"]


@pytest.mark.slow
def test_problems_are_all_different_and_the_unseen_split_shares_no_room_and_no_pair(
    games: dict[str, list[Game]],
) -> None:
    problems = [game.content["pddl_problem"] for found in games.values() for game in found]
    assert len(set(problems)) == len(problems) == 2 * len(SPLITS) * len(TASK_TYPES)
    unseen = games["generated_unseen"]
    others = [*games["generated_seen"], *games["generated_train"]]
    assert {game.pair for game in others}.isdisjoint(game.pair for game in unseen)
    assert {game.trajectory["scene"]["scene_num"] for game in others}.isdisjoint(
        game.trajectory["scene"]["scene_num"] for game in unseen
    )


@pytest.mark.slow
def test_no_game_is_in_two_splits(games: dict[str, list[Game]]) -> None:
    problems = [game.content["pddl_problem"] for found in games.values() for game in found]
    assert games.keys() == set(SPLITS)
    assert len(set(problems)) == len(problems)


@pytest.mark.slow
def test_stock_alfworld_finds_the_games_and_wins_by_the_walkthroughs(games: dict[str, list[Game]]) -> None:
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos, AlfredTWEnv
    from textworld.envs import PddlEnv

    env = AlfredInfos(AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True))))
    for split, found in games.items():
        config = {
            "env": {"goal_desc_human_anns_prob": 0, "task_types": [1, 2, 3, 4, 5, 6]},
            "dataset": {"eval_id_data_path": str(found[0].path.parents[2]), "num_eval_games": -1},
        }
        collected = AlfredTWEnv(config, train_eval="eval_in_distribution").game_files
        assert sorted(collected) == sorted(str(game.path) for game in found)
        for game in found[split == "generated_unseen" :: 2]:
            env.load(str(game.path))
            state = env.reset()
            assert f"Your task is to: {game.goal}." in state.feedback
            for command in game.content["walkthrough"]:
                assert not state.won
                assert command in state.admissible_commands
                state, _, done = env.step(command)
            assert state.won and done


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> list[Game]:
    if not REAL_GAMES.exists():
        pytest.skip(f"no real ALFWorld games at {REAL_GAMES}")
    root = tmp_path_factory.mktemp("real")
    with tarfile.open(REAL_GAMES) as archive:
        wanted = re.compile(r"/valid_seen/(look_at|pick_heat|pick_two)")
        archive.extractall(root, [m for m in archive.getmembers() if wanted.search(m.name)], filter="data")
    real = [read(path) for path in sorted(root.rglob("game.tw-pddl"))]
    assert len({game.trajectory["task_type"] for game in real}) == 3
    return real


@pytest.mark.slow
def test_files_have_the_keys_and_facts_of_real_ones(all_games: list[Game], real: list[Game]) -> None:
    def facts(game: Game) -> set[str]:
        initial = game.content["pddl_problem"].split("(:init")[1].split("(:goal")[0]
        return set(re.findall(r"\((\w+) ", initial))

    known_facts = set[str]().union(*(facts(game) for game in real))
    for game in all_games:
        assert list(game.content) == list(real[0].content)
        assert facts(game) <= known_facts
        assert list(game.trajectory) == list(real[0].trajectory)
        for key in ("pddl_params", "scene", "turk_annotations"):
            assert game.trajectory[key].keys() == real[0].trajectory[key].keys()
        mine, theirs = (one.trajectory["turk_annotations"]["anns"][0] for one in (game, real[0]))
        assert mine.keys() == theirs.keys()


@pytest.mark.slow
def test_goals_are_those_of_real_problems(package: AlfworldPackage, real: list[Game]) -> None:
    for game in real:
        lit = game.trajectory["task_type"] == "look_at_obj_in_light"
        thing, place = game.pair
        goal = Goal(game.trajectory["task_type"], thing, "" if lit else place, place if lit else "")
        assert goal.pddl(package).split() == ["(:goal", *game.content["pddl_problem"].split("(:goal")[1].split()]


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


@pytest.mark.slow
def test_bytes_do_not_depend_on_process_and_hash_seed(games: dict[str, list[Game]], tmp_path: Path) -> None:
    """One game of each type is the beginning of two of each, so it costs half to compare."""
    code = "import sys, pathlib; from skillarena.envs.alfworld_generator import generate; "
    code += "generate(pathlib.Path(sys.argv[1]), sys.argv[2], games_per_type=1, seed=0)"
    for split, hash_seed in zip(SPLITS, ("0", "12345", "4294967295"), strict=True):
        command = [sys.executable, "-c", code, str(tmp_path), split]
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": hash_seed}, check=True, timeout=120)
    expected = bytes_below(games["generated_seen"][0].path.parents[4])
    found = bytes_below(tmp_path)
    assert len(found) == len(expected) / 2 == 2 * len(SPLITS) * len(TASK_TYPES)  # a game and its trajectory
    assert all(expected[name] == content for name, content in found.items())


@pytest.mark.slow
def test_other_seeds_give_other_games(games: dict[str, list[Game]], tmp_path: Path) -> None:
    others = [read(path) for path in generate(tmp_path, "generated_seen", games_per_type=1, seed=1)]
    assert len(others) == len(TASK_TYPES)
    known = {game.content["pddl_problem"] for game in games["generated_seen"]}
    assert known.isdisjoint(game.content["pddl_problem"] for game in others)


# The cache.

ENSURE = (
    "import pathlib; from skillarena.envs import alfworld_generator as generator; generator.GAMES_PER_TYPE = 1; "
    "generator.ensure_generated('generated_seen', pathlib.Path({cache!r}))"
)


def cached(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/json_2.1.1/generated_seen/*/*/game.tw-pddl"))


@pytest.mark.slow
def test_processes_at_once_share_one_generation(tmp_path: Path) -> None:
    code = ENSURE.format(cache=str(tmp_path))
    both = [python(code), python(code)]
    for process in both:
        finish(process)
    assert len(cached(tmp_path)) == len(TASK_TYPES)
    assert not list(tmp_path.glob("*/.*.partial"))


@pytest.mark.slow
def test_a_killed_generation_leaves_no_games_and_the_next_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = python(ENSURE.format(cache=str(tmp_path)).replace("PER_TYPE = 1", "PER_TYPE = 50"))
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/.*.partial/**/game.tw-pddl")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert cached(tmp_path) == []

    monkeypatch.setattr(alfworld_generator, "GAMES_PER_TYPE", 1)
    root = ensure_generated("generated_seen", tmp_path)
    assert [read(path) for path in cached(tmp_path)] and len(cached(tmp_path)) == len(TASK_TYPES)
    assert not list(root.glob(".*.partial"))


def test_present_games_are_given_back_without_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def quick(root: Path, split: str, *, games_per_type: int, seed: int) -> list[Path]:
        made.append(split)
        (root / "json_2.1.1" / split).mkdir(parents=True)
        return []

    monkeypatch.setattr(alfworld_generator, "generate", quick)
    roots = {ensure_generated(split, tmp_path) for split in (*SPLITS, *SPLITS)}
    assert made == list(SPLITS)
    (root,) = roots
    assert sorted(path.name for path in (root / "json_2.1.1").iterdir()) == sorted(SPLITS)


def test_waiting_for_another_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    monkeypatch.setattr(alfworld_generator, "LOCK_TIMEOUT_S", 0.1)
    monkeypatch.setattr(alfworld_generator, "generate", lambda *_, **__: pytest.fail("generated without the lock"))
    monkeypatch.setattr(alfworld_generator, "alfworld_version", lambda: "9")
    root = tmp_path / f"alfworld_generated-{alfworld_generator.GENERATOR_VERSION}-alfworld-9"
    root.mkdir()
    with FileLock(root / ".generated_seen.lock"), pytest.raises(DataError, match="Another process"):
        ensure_generated("generated_seen", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut off", "changed", "missing", "unsealed"])
def test_damaged_games_are_made_again(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    root = ensure_generated("generated_seen", tmp_path)
    before = {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()}
    victim = sorted(root.rglob("game.tw-pddl"))[3]
    if damage == "missing":
        victim.unlink()
    elif damage == "unsealed":
        (root / ".generated_seen.sha256").unlink()
    else:
        content = victim.read_bytes()
        victim.write_bytes(content[:100] if damage == "cut off" else content.replace(b"solvable", b"solvablf"))
    assert ensure_generated("generated_seen", tmp_path) == root
    assert {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()} == before
    assert "made again" in caplog.text
