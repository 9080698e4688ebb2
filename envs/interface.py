"""What every text environment offers: tasks with content identities, and one way to play them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable


class EndReason(StrEnum):
    """Why an episode ended. Environments give the first three, the agent loop the others."""

    SOLVED = "solved"
    FAILED = "failed"
    STEP_LIMIT = "step_limit"
    TOKEN_LIMIT = "token_limit"  # noqa: S105 (no password)
    INFRA_ERROR = "infra_error"


@dataclass(frozen=True, slots=True)
class Task:
    """One thing to solve.

    ``id`` is a SHA-256 hex digest of the content (ALFWorld: the PDDL problem; ScienceWorld: task, variation,
    simplifications and simulator version), so it is the same on every machine and for every folder layout.
    """

    benchmark: str
    """Benchmark name, for example ``alfworld``."""
    split: str
    """Split name, for example ``valid_seen``."""
    id: str
    """Content identity, 64 hex digits."""
    name: str
    """Readable label, unique within its split."""
    task_type: str
    """Category used for breakdowns, for example ``pick_and_place_simple`` or ``boil``."""
    goal: str
    """The instruction in natural language, as an agent and a selector see it."""
    source: dict[str, str | int] = field(default_factory=dict)
    """What the environment needs to load the task (a path, or a task name and a variation)."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The text shown after a reset, exactly as the simulator gives it."""

    text: str


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one action led to."""

    observation: str
    score: float
    """Score so far on the simulator's own scale (ALFWorld 0 or 1; ScienceWorld -100 to 100)."""
    reward: float
    """Change of ``score`` by this action."""
    done: bool
    """True when the episode is over for any reason, the step limit included."""
    won: bool
    """True when the task is fully solved."""
    end_reason: EndReason | None
    """Set exactly when ``done``: solved, failed or step_limit."""
    valid: bool = True
    """False when the simulator did not understand or refused the action (it still cost a step)."""


@runtime_checkable
class TextEnv(Protocol):
    """A reusable environment; it lives in one process, plays one task at a time and is not thread-safe."""

    def reset(self, task: Task) -> Observation:
        """Start ``task`` from its initial state. Raises ``DataError`` (bad task data) or ``EnvError``."""

    def step(self, action: str) -> StepResult:
        """Play one action; every call counts against the step limit. Raises ``EnvError`` (dead or late simulator)."""

    def admissible_commands(self) -> list[str]:
        """All actions the simulator accepts now, computed only when asked for."""

    def plan(self) -> list[str]:
        """Actions that lead from the present state to success; empty when none is known.

        This is privileged information for the simulated backbone and for tests; agents never see it.
        """

    def close(self) -> None:
        """Free the simulator. Safe to call twice."""


@runtime_checkable
class Benchmark(Protocol):
    """A benchmark with one split chosen: lists tasks and makes environments.

    Implementations are built from configuration with keyword arguments only, hold plain data, and can be pickled.
    """

    name: str
    split: str
    max_steps: int

    def tasks(self) -> list[Task]:
        """The tasks of the split after filters, in an order that depends on content only.

        This is also the preflight: raises ``DataError`` for missing, incomplete or corrupt data.
        """

    def make_env(self) -> TextEnv:
        """A new environment for tasks of this benchmark."""

    def points(self, result: StepResult) -> float:
        """The episode reward reported in tables, 0 to 100, given the last step's result."""

    def action_help(self) -> str:
        """The action vocabulary as shown to agents, one form a line."""
