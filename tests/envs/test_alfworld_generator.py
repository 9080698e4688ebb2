"""The generator of small ALFWorld games: format, content, determinism."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest
from written_games import Game, read

from skillarena.envs.alfworld_generator import generate
from skillarena.envs.alfworld_generator_goals import SPLITS, TASK_TYPES, Goal
from skillarena.envs.alfworld_generator_package import AlfworldPackage

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


def bytes_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Game]]:
    root = tmp_path_factory.mktemp("generated")
    return {split: [read(path) for path in generate(root, split, games_per_type=2, seed=0)] for split in SPLITS}


@pytest.fixture(scope="module")
def all_games(games: dict[str, list[Game]]) -> list[Game]:
    return [game for split in SPLITS for game in games[split]]


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
