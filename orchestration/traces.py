"""An episode as a trace: spans for the selection, every call of the model and everything the environment answered.

Only seconds are recorded of each part, and the time at which the whole was over. Parts are therefore laid end to end,
beginning that many seconds before the end; time that belongs to no part (making prompts, waiting for the driver) is the
gap before the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.prices import Price
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.prompts import continuation
from skillarena.orchestration.trajectory import Trajectory, Turn

_NANO = 1_000_000_000


@dataclass(frozen=True)
class EpisodeSpan:
    """One part of an episode."""

    name: str
    kind: str
    """One of MLflow's span types."""
    start_ns: int
    """Nanoseconds of Unix time."""
    end_ns: int
    """Nanoseconds of Unix time; not before ``start_ns``."""
    inputs: Any
    outputs: Any
    attributes: dict[str, Any] = field(default_factory=dict)
    refused: bool = False
    """The environment or the tool refused what it was asked."""


def episode_spans(trajectory: Trajectory, row: EpisodeRow, price: Price | None) -> list[EpisodeSpan]:
    """The whole episode first, then its parts in order of time; all of them are the first one's children.

    Args:
        trajectory: what happened.
        row: what the ledger says of it.
        price: of the backbone's tokens; None where it is not known.
    """
    end = int(row.finished_at * _NANO)
    begin = end - _ns(trajectory.seconds)
    selection = _selection(trajectory.goal, row, begin)
    parts = [selection, *_parts(trajectory, begin, price)]
    whole = EpisodeSpan(
        name=row.task_name,
        kind="AGENT",
        start_ns=selection.start_ns,
        end_ns=max(end, parts[-1].end_ns),
        inputs=trajectory.goal,
        outputs={"outcome": row.outcome, "reward": row.reward, "env_steps": row.env_steps},
        attributes={
            "episode_id": row.episode_id,
            "task_id": row.task_id,
            "backbone": trajectory.backbone,
            "simulated": trajectory.simulated,
            "skills": list(row.skills),
            "attempts": row.attempts,
            "wasted_tokens": row.wasted_tokens,
            "node": row.node,
        },
    )
    return [whole, *parts]


def _selection(goal: str, row: EpisodeRow, end: int) -> EpisodeSpan:
    """A selection that was computed earlier takes no time here."""
    return EpisodeSpan(
        name="selection",
        kind="RETRIEVER",
        start_ns=end - (0 if row.selection_reused else _ns(row.selection_seconds)),
        end_ns=end,
        inputs=goal,
        outputs=[{"page_content": skill, "metadata": {"place": place}} for place, skill in enumerate(row.skills, 1)],
        attributes={
            "reused": row.selection_reused,
            "seconds": row.selection_seconds,
            "prompt_tokens": row.selector_prompt_tokens,
            "completion_tokens": row.selector_completion_tokens,
            "offline_tokens": row.offline_tokens,
            "pairs_scored": row.pairs_scored,
            "pairs_cached": row.pairs_cached,
            "marks": list(row.marks),
        },
    )


def _parts(trajectory: Trajectory, begin: int, price: Price | None) -> Iterator[EpisodeSpan]:
    clock = _Clock(begin)
    yield EpisodeSpan("reset", "TASK", *clock.next(trajectory.reset_seconds), None, trajectory.first_observation)
    heard = f"Task: {trajectory.goal}\n\n{trajectory.first_observation}"
    for number, turn in enumerate(trajectory.turns, 1):
        yield EpisodeSpan(
            name=f"model {number}",
            kind="CHAT_MODEL",
            start_ns=clock.now,
            end_ns=clock.next(turn.llm_seconds)[1],
            inputs={"messages": [{"role": "user", "content": heard}]},
            outputs={
                "choices": [
                    {"message": {"role": "assistant", "content": turn.reply}, "finish_reason": turn.finish_reason}
                ]
            },
            attributes=_usage(turn.usage, trajectory.backbone, price),
        )
        yield from _consequences(turn, number, clock)
        heard = str(continuation(turn)[1]["content"])


def _consequences(turn: Turn, number: int, clock: _Clock) -> Iterator[EpisodeSpan]:
    """What the reply led to: a call of a tool, or a step of the environment; then advice."""
    if turn.tool:
        yield EpisodeSpan(
            name=f"tool {number}",
            kind="TOOL",
            start_ns=clock.now,
            end_ns=clock.next(turn.tool_seconds)[1],
            inputs=turn.tool,
            outputs=turn.observation,
            attributes={"skills_read": list(turn.skills_read)},
            refused=not turn.valid,
        )
        return
    if turn.action is not None:
        yield EpisodeSpan(
            name=f"environment {number}",
            kind="TOOL",
            start_ns=clock.now,
            end_ns=clock.next(turn.env_seconds)[1],
            inputs=turn.action,
            outputs=turn.observation,
            attributes={"score": turn.score, "normalised": turn.normalised},
            refused=not turn.valid,
        )
    if turn.advice or turn.tool_seconds:
        yield EpisodeSpan(
            name=f"advice {number}",
            kind="RETRIEVER",
            start_ns=clock.now,
            end_ns=clock.next(turn.tool_seconds)[1],
            inputs=turn.observation,
            outputs=[{"page_content": turn.advice, "metadata": {"skills": list(turn.skills_read)}}],
        )


def _usage(usage: Usage, model: str, price: Price | None) -> dict[str, Any]:
    """Tokens, and money where the price is known, under the names that MLflow sums up and draws.

    The model's name goes with a price only, because MLflow estimates the cost of models that it knows by name.
    """
    tokens = {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "cache_read_input_tokens": usage.cached_tokens,
    }
    found: dict[str, Any] = {"mlflow.chat.tokenUsage": tokens, "estimated": usage.estimated}
    if usage.reasoning_tokens:
        found["reasoning_tokens"] = usage.reasoning_tokens
    if price is not None:
        total = price.cost(usage)
        output = price.cost(Usage(completion_tokens=usage.completion_tokens))
        cost = {"input_cost": total - output, "output_cost": output, "total_cost": total}
        found |= {"mlflow.llm.model": model, "mlflow.llm.cost": cost}
    return found


class _Clock:
    """Lays parts end to end."""

    def __init__(self, begin: int) -> None:
        self.now = begin
        """Nanoseconds of Unix time."""

    def next(self, seconds: float) -> tuple[int, int]:
        """Begin and end of a part that takes ``seconds``."""
        begin, self.now = self.now, self.now + _ns(seconds)
        return begin, self.now


def _ns(seconds: float) -> int:
    return int(max(seconds, 0.0) * _NANO)
