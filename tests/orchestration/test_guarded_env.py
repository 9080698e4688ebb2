from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from test_env_contract import CorridorBenchmark, CorridorEnv

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.interface import Observation, StepResult, Task, TextEnv
from skillarena.orchestration.guarded_env import EnvLane, GuardedEnv

TASK = CorridorBenchmark().tasks()[1]


@pytest.fixture
def lane() -> Iterator[EnvLane]:
    made = EnvLane("test")
    yield made
    made.close()


class HangingEnv(CorridorEnv):
    """Hangs in ``step`` until it is closed."""

    def __init__(self) -> None:
        super().__init__(8)
        self.closed = threading.Event()

    def step(self, action: str) -> StepResult:
        self.closed.wait(30)
        return super().step(action)

    def close(self) -> None:
        self.closed.set()


def guarded(lane: EnvLane, make: Callable[[], TextEnv], deadline_s: float = 5.0) -> GuardedEnv:
    return GuardedEnv(make, deadline_s=deadline_s, lane=lane)


def test_guarded_env_plays_like_the_env_inside(lane: EnvLane) -> None:
    env = guarded(lane, CorridorBenchmark().make_env)
    assert isinstance(env, TextEnv)
    assert env.reset(TASK) == Observation("You are in the hall. Rest in the kitchen.")
    assert env.plan() == ["go right", "rest"]
    assert env.admissible_commands() == ["go right", "rest"]
    assert env.step("go right").observation == "You are in the kitchen."
    assert env.step("rest").won
    assert not env.stuck
    env.close()
    env.close()


def test_every_call_runs_in_the_one_thread_of_the_lane(lane: EnvLane) -> None:
    seen: list[threading.Thread] = []

    class Watching(CorridorEnv):
        def __init__(self) -> None:
            super().__init__(1000)
            seen.append(threading.current_thread())

        def step(self, action: str) -> StepResult:
            seen.append(threading.current_thread())
            return super().step(action)

    envs = [guarded(lane, Watching) for _ in range(4)]

    def play(env: GuardedEnv) -> None:
        env.reset(TASK)
        for _ in range(20):
            env.step("go right")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(play, envs))
    assert len(seen) == 4 + 4 * 20
    assert len(set(seen)) == 1
    assert seen[0] is not threading.current_thread()


def test_late_call_raises_and_the_lane_stays_stuck(lane: EnvLane) -> None:
    inner = HangingEnv()
    env = guarded(lane, lambda: inner, deadline_s=0.2)
    env.reset(TASK)
    started = time.monotonic()
    with pytest.raises(EnvError, match=r"step 'rest': no answer within 0.2 s"):
        env.step("rest")
    assert 0.2 <= time.monotonic() - started < 5
    assert env.stuck
    with pytest.raises(EnvError, match="still hangs in step 'rest'"):
        env.reset(TASK)
    env.close()
    assert inner.closed.is_set()


def test_calls_waiting_behind_a_late_one_fail_in_bounded_time(lane: EnvLane) -> None:
    hanging = HangingEnv()
    slow = guarded(lane, lambda: hanging, deadline_s=0.3)
    other = guarded(lane, CorridorBenchmark().make_env)
    slow.reset(TASK)
    with ThreadPoolExecutor(2) as threads:
        late = threads.submit(slow.step, "rest")
        time.sleep(0.05)
        behind = threads.submit(other.reset, TASK)
        for waiting in (late, behind):
            assert isinstance(waiting.exception(timeout=5), EnvError)
    slow.close()


def test_waiting_for_another_env_does_not_count_against_the_deadline(lane: EnvLane) -> None:
    class Slow(CorridorEnv):
        def step(self, action: str) -> StepResult:
            time.sleep(0.15)
            return super().step(action)

    envs = [guarded(lane, lambda: Slow(8), deadline_s=0.3) for _ in range(4)]
    for env in envs:
        env.reset(TASK)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda env: env.step("go right"), envs))
    assert [result.observation for result in results] == ["You are in the kitchen."] * 4


def test_typed_errors_pass_and_others_become_env_errors(lane: EnvLane) -> None:
    class Broken(CorridorEnv):
        def step(self, action: str) -> StepResult:
            raise {"bug": KeyError("no such room"), "exit": SystemExit(3), "end": StopIteration()}[action]

    env = guarded(lane, lambda: Broken(8))
    with pytest.raises(DataError):
        env.reset(Task("corridor", "all", "0" * 64, "nowhere", "rest", "Rest.", {}))
    for action, name in (("bug", "KeyError"), ("exit", "SystemExit"), ("end", "StopIteration")):
        with pytest.raises(EnvError, match=f"step '{action}': {name}") as caught:
            env.step(action)
        assert caught.value.__cause__ is not None
    assert not env.stuck


def test_fault_while_making_the_env_is_an_env_error(lane: EnvLane) -> None:
    def make() -> TextEnv:
        raise OSError("no simulator")

    with pytest.raises(EnvError, match="making the environment: OSError: no simulator"):
        guarded(lane, make)


def test_stuck_lane_does_not_keep_the_interpreter_alive(lane: EnvLane) -> None:
    env = guarded(lane, HangingEnv, deadline_s=0.05)
    env.reset(TASK)
    with pytest.raises(EnvError):
        env.step("rest")
    workers = [thread for thread in threading.enumerate() if thread.name == "test lane"]
    assert workers and all(thread.daemon for thread in workers)
    env.close()
