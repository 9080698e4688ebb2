"""The contract itself, run against a small environment in pure Python."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import pytest
from env_contract import EnvContract

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.interface import EndReason, Observation, StepResult, Task

ROOMS = ("hall", "kitchen", "study", "attic")


@dataclass(frozen=True)
class CorridorBenchmark:
    """Walk along a row of rooms and rest in the right one."""

    name: str = "corridor"
    split: str = "all"
    max_steps: int = 8

    def tasks(self) -> list[Task]:
        return [
            Task(
                benchmark=self.name,
                split=self.split,
                id=hashlib.sha256(room.encode()).hexdigest(),
                name=f"rest in {room}",
                task_type="rest",
                goal=f"Rest in the {room}.",
                source={"room": room},
            )
            for room in ROOMS
        ]

    def make_env(self) -> CorridorEnv:
        return CorridorEnv(self.max_steps)

    def points(self, result: StepResult) -> float:
        return 100.0 if result.won else 0.0

    def action_help(self) -> str:
        return "go left\ngo right\nrest"


class CorridorEnv:
    """One agent in a row of rooms, starting in the hall."""

    def __init__(self, max_steps: int) -> None:
        self._max_steps = max_steps
        self._running = False

    def reset(self, task: Task) -> Observation:
        if task.source.get("room") not in ROOMS:
            raise DataError(f"task {task.name} names no room")
        self._target = ROOMS.index(str(task.source["room"]))
        self._here = self._steps = 0
        self._running = True
        return Observation(f"You are in the hall. {task.goal}")

    def step(self, action: str) -> StepResult:
        if not self._running:
            raise EnvError("no episode is running")
        self._steps += 1
        valid = action in self.admissible_commands()
        if valid and action != "rest":
            self._here += 1 if action == "go right" else -1
        won = valid and action == "rest" and self._here == self._target
        late = self._steps >= self._max_steps
        self._running = not (won or late)
        reason = EndReason.SOLVED if won else EndReason.STEP_LIMIT if late else None
        text = f"You are in the {ROOMS[self._here]}." if valid else "You cannot do that."
        return StepResult(text, float(won), float(won), reason is not None, won, reason, valid)

    def admissible_commands(self) -> list[str]:
        ways = [("go left", self._here > 0), ("go right", self._here < len(ROOMS) - 1), ("rest", True)]
        return [action for action, open_ in ways if open_]

    def plan(self) -> list[str]:
        distance = self._target - self._here
        return ["go right" if distance > 0 else "go left"] * abs(distance) + ["rest"]

    def close(self) -> None:
        self._running = False


class TestCorridor(EnvContract):
    @pytest.fixture(scope="class")
    @classmethod
    def benchmark(cls) -> CorridorBenchmark:
        return CorridorBenchmark()

    @classmethod
    def sample(cls, tasks: list[Task]) -> list[Task]:
        return tasks[1:3]
