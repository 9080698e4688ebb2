"""Trajectories in a page: which ones, and packed so that the browser unpacks only the task that is looked at."""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass, field
from typing import Any

import orjson

from skillarena.conf.errors import DataError
from skillarena.orchestration.report.lines import Setting
from skillarena.orchestration.report.page.index import PageIndex, TaskGroup
from skillarena.orchestration.trajectory import Trajectory, Turn

TURN = (
    *("reply", "thought", "action", "observation", "tool", "advice"),  # numbers of texts, -1 for none
    *("score", "prompt", "cached", "completion", "llm_seconds", "env_seconds", "tool_seconds"),
    *("valid", "normalised", "cut"),
    "skills_read",
)
"""What a packed turn holds, in this order."""

_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Packed:
    """Trajectories as a page holds them."""

    blocks: list[str] = field(repr=False)
    """One a task and setting: base64 of gzip of JSON, ``{"texts": […], "episodes": […]}``."""
    block: list[int] = field(repr=False)
    """Of each episode of the index: the block it is in, or -1."""
    place: list[int] = field(repr=False)
    """Of each episode of the index: its position in the block, or -1."""
    problems: tuple[str, ...]
    """Trajectories that could not be read, one sentence each."""
    recorded: int
    """Episodes of which there is a trajectory."""

    @property
    def kept(self) -> int:
        """Episodes whose trajectory is in a block."""
        return sum(block >= 0 for block in self.block)


def pack(index: PageIndex, megabytes: float) -> Packed:
    """Pack whole tasks, all methods' episodes together, until the next one no longer fits.

    Tasks that some methods solve and others do not come first; among them all settings take turns.

    Args:
        index: what the page lists.
        megabytes: of compressed data (before base64) at most.
    """
    blocks: list[str] = []
    blocks_of, places = [-1] * len(index.episodes), [-1] * len(index.episodes)
    problems: list[str] = []
    recorded = sum(episode.row.trajectory_offset >= 0 for episode in index.episodes)
    room = megabytes * _MEGABYTE
    for group in sorted(index.groups(), key=_turn_of):
        block, unreadable = _block(index, group)
        problems += unreadable
        if not block.numbers:
            continue
        packed = compressed(block.to_json())
        if len(packed) > room:
            break
        room -= len(packed)
        for position, number in enumerate(block.numbers):
            blocks_of[number], places[number] = len(blocks), position
        blocks.append(base64.b64encode(packed).decode("ascii"))
    return Packed(blocks, blocks_of, places, tuple(problems), recorded)


def compressed(data: bytes) -> bytes:
    """As gzip, without a time in it."""
    return gzip.compress(data, compresslevel=6, mtime=0)


def _turn_of(group: TaskGroup) -> tuple[bool, int, Setting]:
    return (not group.disagreement, group.place, group.setting)


class _Block:
    """Episodes of one task. Each text is kept once: methods read the same observations and mostly think the same."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        """Of the episodes, in the index."""
        self._episodes: list[dict[str, Any]] = []
        self._texts: dict[str, int] = {}

    def add(self, number: int, trajectory: Trajectory) -> None:
        """Take in an episode of the index."""
        self.numbers.append(number)
        self._episodes.append(
            {
                "goal": self._text(trajectory.goal),
                "first": self._text(trajectory.first_observation),
                "skills": trajectory.skills,
                "turns": [self._turn(turn) for turn in trajectory.turns],
            }
        )

    def to_json(self) -> bytes:
        return orjson.dumps({"texts": list(self._texts), "episodes": self._episodes})

    def _turn(self, turn: Turn) -> list[Any]:
        return [
            self._text(turn.reply),
            self._text(turn.thought),
            self._text(turn.action),
            self._text(turn.observation),
            self._text(turn.tool),
            self._text(turn.advice),
            turn.score,
            turn.usage.prompt_tokens,
            turn.usage.cached_tokens,
            turn.usage.completion_tokens,
            round(turn.llm_seconds, 3),
            round(turn.env_seconds, 3),
            round(turn.tool_seconds, 3),
            int(turn.valid),
            int(turn.normalised),
            int(turn.finish_reason == "length"),
            turn.skills_read,
        ]

    def _text(self, text: str | None) -> int:
        return self._texts.setdefault(text, len(self._texts)) if text else -1


def _block(index: PageIndex, group: TaskGroup) -> tuple[_Block, list[str]]:
    """The group's trajectories, and what is wrong with those that should be there and are not."""
    block = _Block()
    unreadable: list[str] = []
    for number in group.episodes:
        episode = index.episodes[number]
        try:
            trajectory = episode.trajectory()
        except DataError:
            where = f"{episode.cell_dir.name}, {episode.row.task_name}"
            unreadable.append(f"{where}: the trajectory cannot be read; `skillarena show` says why")
        else:
            if trajectory is not None:
                block.add(number, trajectory)
    return block, unreadable
