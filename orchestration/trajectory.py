"""What happened in one episode, as frozen plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from skillarena.conf.errors import DataError
from skillarena.envs.interface import EndReason
from skillarena.orchestration.backbones.interface import Usage
from skillarena.selectors.live import EpisodeRecord, Step


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model and what it led to."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    reply: str
    """The model's text as it came."""
    thought: str
    """The reasoning found in the reply."""
    action: str | None
    """The command sent to the environment; None when the reply held none or called a tool (no env step was made)."""
    normalised: bool
    """True when the command's spelling was changed to the simulator's before it was sent."""
    valid: bool
    """False for a reply without a command and for a command or tool call that was refused."""
    observation: str
    """The environment's or the tool's answer, or the feedback on a reply without a command."""
    score: float
    """Score after the turn, on the simulator's own scale."""
    usage: Usage
    """Tokens of this turn's call."""
    finish_reason: str
    """Why the model stopped; ``length`` means the reply was cut."""
    llm_seconds: float
    """Seconds waited for the model, retries included."""
    env_seconds: float
    """Seconds waited for the environment."""
    tool: str = ""
    """The call of a selector's tool that the reply held in place of a command; empty for none."""
    tool_seconds: float = 0.0
    """Seconds waited for the selector: the tool, or advice after the turn."""
    skills_read: tuple[str, ...] = ()
    """Ids of skills whose text this turn added to the conversation."""
    advice: str = ""
    """What the selector added after the environment's answer; empty for nothing."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One finished attempt at a task. The four counters and the token sums follow from the turns."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    episode_id: str
    seed: int
    benchmark: str
    split: str
    task_id: str
    task_name: str
    task_type: str
    goal: str
    backbone: str
    """Name of the backbone."""
    simulated: bool
    """True when no language model played."""
    skills: tuple[str, ...]
    """Ids of the skills in the prompt, in prompt order."""
    first_observation: str
    turns: tuple[Turn, ...]
    outcome: EndReason
    reward: float
    """Points, 0 to 100, as tables report them."""
    score: float
    """Last score on the simulator's own scale; 0, like ``reward``, when no command was played."""
    won: bool
    """True when the task was fully solved."""
    seconds: float
    """Wall time from the reset to the end."""
    reset_seconds: float
    """The part of ``seconds`` that the reset took."""

    @property
    def env_steps(self) -> int:
        """Commands sent to the environment, refused ones included."""
        return sum(turn.action is not None for turn in self.turns)

    @property
    def llm_turns(self) -> int:
        """Replies of the model."""
        return len(self.turns)

    @property
    def invalid_actions(self) -> int:
        """Replies without a command plus commands the environment refused; tool calls are no actions."""
        return sum(not turn.valid and not turn.tool for turn in self.turns)

    @property
    def skill_lookups(self) -> int:
        """Calls of selector tools, refused ones included."""
        return sum(bool(turn.tool) for turn in self.turns)

    @property
    def skills_read(self) -> tuple[str, ...]:
        """Ids of all skills the agent read, those in the first prompt first."""
        later = (skill for turn in self.turns for skill in turn.skills_read)
        return tuple(dict.fromkeys((*self.skills, *later)))

    @property
    def tool_seconds(self) -> float:
        """Seconds waited for the selector during the episode."""
        return sum(turn.tool_seconds for turn in self.turns)

    @property
    def normalised_actions(self) -> int:
        """Commands whose spelling was changed before they were sent."""
        return sum(turn.normalised for turn in self.turns)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls."""
        return reduce(add, (turn.usage for turn in self.turns), Usage())

    @property
    def llm_seconds(self) -> float:
        """Seconds waited for the model."""
        return sum(turn.llm_seconds for turn in self.turns)

    @property
    def env_seconds(self) -> float:
        """Seconds waited for the environment, the reset included."""
        return self.reset_seconds + sum(turn.env_seconds for turn in self.turns)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        plain: dict[str, Any] = _SCHEMA.dump_python(self, mode="json")
        return plain

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Trajectory:
        """The inverse of ``to_dict``.

        Raises:
            DataError: a key is missing or unknown, or a value has the wrong type.
        """
        try:
            return _SCHEMA.validate_python(plain)
        except ValidationError as error:
            raise DataError(f"not a trajectory: {error}", "it was written by another version or is damaged") from error


_SCHEMA = TypeAdapter(Trajectory)


def record_of(trajectory: Trajectory) -> EpisodeRecord:
    """An episode as a learning selector sees it."""
    return EpisodeRecord(
        first_observation=trajectory.first_observation,
        steps=tuple(
            Step(turn.action, turn.observation, turn.score, turn.valid)
            for turn in trajectory.turns
            if turn.action is not None
        ),
        won=trajectory.won,
        reward=trajectory.reward,
        total_tokens=trajectory.usage.total_tokens,
        skills=trajectory.skills_read,
    )
