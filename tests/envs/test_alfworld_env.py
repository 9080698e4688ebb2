"""Playing ALFWorld games: the contract, equality with ALFWorld's own stack, plans, and what must not leak."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from env_contract import EnvContract, play
from stock_alfworld import StockGames, stock_alfworld

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.alfworld_env import AlfworldEnv
from skillarena.envs.interface import EndReason, StepResult, Task

pytestmark = pytest.mark.slow

GARBAGE = ["", "  look  ", "LOOK", "look.", "help", "inventory", "put mug 1 in/on desk 1", "go to nowhere 3", "go to"]


@pytest.fixture(scope="session")
def generated(generated_alfworld: str, alfworld_cache: str) -> AlfworldBenchmark:
    return AlfworldBenchmark(split="generated_seen", data=generated_alfworld, cache_dir=alfworld_cache)


@pytest.fixture(scope="session")
def real(real_alfworld: str, alfworld_cache: str) -> list[AlfworldBenchmark]:
    return [
        AlfworldBenchmark(split=split, data=real_alfworld, cache_dir=alfworld_cache)
        for split in ("valid_seen", "valid_unseen")
    ]


@pytest.fixture
def env(generated: AlfworldBenchmark) -> Iterator[AlfworldEnv]:
    env = generated.make_env()
    yield env
    env.close()


class TestGeneratedGames(EnvContract):
    @pytest.fixture(scope="class")
    @classmethod
    def benchmark(cls, generated: AlfworldBenchmark) -> AlfworldBenchmark:
        return generated

    @classmethod
    def sample(cls, tasks: list[Task]) -> list[Task]:
        return tasks


class TestRealGames(EnvContract):
    @pytest.fixture(scope="class")
    @classmethod
    def benchmark(cls, real: list[AlfworldBenchmark]) -> AlfworldBenchmark:
        return real[1]

    @classmethod
    def sample(cls, tasks: list[Task]) -> list[Task]:
        return small(tasks, 3)


def small(tasks: list[Task], count: int) -> list[Task]:
    """Those with the shortest problems, which ALFWorld's own stack plays fastest."""
    return sorted(tasks, key=lambda task: Path(str(task.source["path"])).stat().st_size)[:count]


def mixed(env: AlfworldEnv, task: Task, count: int) -> list[str]:
    """Random accepted commands with some garbage between, the same each time."""
    rng = Random(task.id)
    env.reset(task)
    actions: list[str] = []
    for _ in range(count):
        actions.append(rng.choice(GARBAGE if rng.random() < 0.3 else env.admissible_commands()))
        if env.step(actions[-1]).done:
            break
    return actions


def assert_equal_to_stock(benchmark: AlfworldBenchmark, task: Task, actions: list[str]) -> None:
    env = benchmark.make_env()
    stock = StockGames([str(task.source["path"])], benchmark.max_steps)
    start = stock.reset()
    assert (env.reset(task).text, env.admissible_commands()) == (start.observation, start.commands)
    for action in actions:
        theirs, ours = stock.step(action), env.step(action)
        assert ours.observation == theirs.observation, (task.name, action)
        assert (ours.score, ours.done, ours.won) == (theirs.score, theirs.done, theirs.won), (task.name, action)
        assert ours.valid is (theirs.observation != "Nothing happens.")
        if ours.done:
            break
        assert env.admissible_commands() == theirs.commands, (task.name, action)
    env.close()


def test_generated_games_play_as_in_the_stock_stack(generated: AlfworldBenchmark, env: AlfworldEnv) -> None:
    with stock_alfworld():
        for task in generated.tasks():
            env.reset(task)
            assert_equal_to_stock(generated, task, env.plan())
            assert_equal_to_stock(generated, task, mixed(env, task, 12))


def test_an_episode_of_garbage_ends_as_in_the_stock_stack(generated: AlfworldBenchmark) -> None:
    with stock_alfworld():
        actions = [GARBAGE[step % len(GARBAGE)] for step in range(generated.max_steps)]
        assert_equal_to_stock(generated, small(generated.tasks(), 1)[0], actions)


def test_real_games_play_as_in_the_stock_stack(real: list[AlfworldBenchmark]) -> None:
    with stock_alfworld():
        for benchmark in real:
            tasks = benchmark.tasks()
            kitchen = next(task for task in tasks if task.task_type == "pick_heat_then_place_in_recep")
            env = benchmark.make_env()
            for task in [*small(tasks, 1), kitchen]:
                actions = mixed(env, task, 8)
                assert_equal_to_stock(benchmark, task, [*actions, *env.plan()])
            env.close()


def test_published_plans_win(real: list[AlfworldBenchmark], real_alfworld: str) -> None:
    published = json.loads((Path(__file__).parents[3] / "shared" / "data" / "alfworld_walkthroughs.json").read_text())
    for benchmark in real:
        env = benchmark.make_env()
        for task in small(benchmark.tasks(), 12):
            game = Path(str(task.source["path"])).relative_to(real_alfworld)
            _, results = play(env, task, published[benchmark.split][str(game)])
            assert results[-1].won, task.name
        env.close()


def test_plans_win_from_the_start_and_after_slips(real: list[AlfworldBenchmark]) -> None:
    for benchmark in real:
        env = benchmark.make_env()
        for task in small(benchmark.tasks(), 12):
            for slips in (0, 3):
                env.reset(task)
                rng = Random(task.id)
                for _ in range(slips):
                    assert not env.step(rng.choice(env.admissible_commands())).done
                plan = env.plan()
                assert plan, (task.name, slips)
                results: list[StepResult] = []
                for number, action in enumerate(plan):
                    assert env.plan() == plan[number:]
                    results.append(env.step(action))
                assert [result.done for result in results] == [False] * (len(plan) - 1) + [True], (task.name, plan)
                assert results[-1].won
        env.close()


def test_planning_leaves_the_game_where_it_is(generated: AlfworldBenchmark, env: AlfworldEnv) -> None:
    for task in generated.tasks():
        actions = mixed(env, task, 6)
        without = play(env, task, actions)
        env.reset(task)
        results = []
        for action in actions:
            env.plan()
            results.append(env.step(action))
        assert results == without[1]


def test_every_command_has_one_of_the_forms_shown_to_agents(generated: AlfworldBenchmark, env: AlfworldEnv) -> None:
    patterns = {
        form: re.sub(r"\\\{.*?\\\}", r"[a-z]+ [0-9]+", re.escape(form)) for form in generated.action_help().split("\n")
    }
    seen: set[str] = set()
    for task in generated.tasks():
        env.reset(task)
        for action in env.plan():
            for command in env.admissible_commands():
                (form,) = [form for form, pattern in patterns.items() if re.fullmatch(pattern, command)]
                seen.add(form)
            env.step(action)
    assert patterns.keys() - seen <= {"slice {object} with {object}", "close {receptacle}"}


def test_a_step_that_wins_at_the_limit_is_a_solution(generated_alfworld: str, alfworld_cache: str) -> None:
    def benchmark(max_steps: int) -> AlfworldBenchmark:
        return AlfworldBenchmark(
            split="generated_seen", data=generated_alfworld, cache_dir=alfworld_cache, max_steps=max_steps
        )

    task = benchmark(30).tasks()[0]
    env = benchmark(30).make_env()
    env.reset(task)
    plan = env.plan()
    short = benchmark(len(plan)).make_env()
    _, results = play(short, task, plan)
    assert results[-1].end_reason is EndReason.SOLVED
    _, results = play(short, task, ["look", *plan])
    assert results[-1].end_reason is EndReason.STEP_LIMIT
    short.close()
    env.close()


def test_a_game_that_changed_since_it_was_listed_is_refused(
    generated: AlfworldBenchmark, env: AlfworldEnv, tmp_path: Path
) -> None:
    one, other = generated.tasks()[:2]
    with pytest.raises(DataError, match="is not the game it was"):
        env.reset(replace(one, source=other.source))
    with pytest.raises(DataError, match="cannot be read"):
        env.reset(replace(one, source={"path": str(tmp_path / "gone" / "game.tw-pddl")}))
    with pytest.raises(EnvError, match="no ALFWorld episode"):
        env.step("look")


def test_a_game_that_cannot_be_translated_is_named(
    generated: AlfworldBenchmark, env: AlfworldEnv, tmp_path: Path
) -> None:
    source = Path(str(generated.tasks()[0].source["path"]))
    split = tmp_path / "json_2.1.1" / "broken"
    broken = split / "task" / "trial" / source.name
    broken.parent.mkdir(parents=True)
    broken.write_text(source.read_text().replace("(:objects", "(:objexts"))
    broken.with_name("traj_data.json").write_text(source.with_name("traj_data.json").read_text())
    (task,) = AlfworldBenchmark(split="broken", data=str(tmp_path)).tasks()
    with pytest.raises(DataError, match=re.escape(str(broken))):
        env.reset(task)


def test_one_env_plays_many_games_in_bounded_memory(generated: AlfworldBenchmark, env: AlfworldEnv) -> None:
    def footprint() -> tuple[int, int]:
        maps = Path("/proc/self/maps").read_text().count("libdownward")
        status = Path("/proc/self/status").read_text()
        return maps, int(re.findall(r"VmRSS:\s+(\d+)", status)[0])

    def rounds(count: int) -> None:
        for _ in range(count):
            for task in generated.tasks():
                play(env, task, mixed(env, task, 4))

    rounds(4)
    maps, memory = footprint()
    rounds(10)
    maps_after, memory_after = footprint()
    assert maps_after == maps
    assert memory_after - memory < 10_000  # KiB, over 120 resets


def test_closed_envs_leave_their_library_to_the_next(generated: AlfworldBenchmark) -> None:
    task = generated.tasks()[0]
    counts = []
    for _ in range(5):
        env = generated.make_env()
        env.reset(task)
        env.close()
        counts.append(Path("/proc/self/maps").read_text().count("libdownward"))
    assert len(set(counts)) == 1
    assert counts[0] > 0


def test_a_process_that_used_several_envs_ends_cleanly(generated: AlfworldBenchmark, alfworld_cache: str) -> None:
    data = str(generated.tasks()[0].source["path"]).partition("/json_2.1.1/")[0]
    code = f"""
import sys
from skillarena.envs.alfworld import AlfworldBenchmark
benchmark = AlfworldBenchmark(split="generated_seen", data={data!r}, cache_dir={alfworld_cache!r})
envs = [benchmark.make_env() for _ in range(3)]
for env in envs:
    env.reset(benchmark.tasks()[0])
for env in envs[1:]:
    env.close()
assert not {{"textworld", "alfworld", "tatsu"}}.intersection(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_envs_in_threads_do_not_disturb_each_other(generated: AlfworldBenchmark) -> None:
    tasks = generated.tasks()

    def trace(task: Task) -> list[tuple[str, list[StepResult]]]:
        env = generated.make_env()
        try:
            return [play(env, task, mixed(env, task, 12)) for _ in range(5)]
        finally:
            env.close()

    alone = [trace(task) for task in tasks]
    with ThreadPoolExecutor(len(tasks)) as pool:
        assert list(pool.map(trace, tasks)) == alone
