"""Episodes of uneven length, and the arithmetic of playing many of them at once. No I/O."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What is played."""

    games: int
    """In each cell."""
    seeds: int
    """Cells, one for each."""
    at_once: int
    """Episodes side by side."""
    latency_s: float
    """Of the endpoint."""
    shortest: int = 5
    longest: int = 30
    """Turns of an episode."""

    @property
    def episodes(self) -> int:
        """All of them."""
        return self.games * self.seeds


@dataclass(frozen=True)
class Episode:
    """When one was played; seconds on one clock."""

    start: float
    """Of its reset."""
    end: float
    turns: int
    env_s: float
    """In the environment, waits for its turn included."""


def per_hour(episodes: Sequence[Episode]) -> float:
    """Episodes an hour, from the first reset to the last end."""
    return 3600 * len(episodes) / span(episodes)


def span(episodes: Sequence[Episode]) -> float:
    """Seconds from the first reset to the last end."""
    return max(episode.end for episode in episodes) - min(episode.start for episode in episodes)


def tail(episodes: Sequence[Episode], at_once: int) -> float:
    """Seconds at the end in which fewer than ``at_once`` played."""
    ends = sorted(episode.end for episode in episodes)
    return ends[-1] - ends[len(ends) - at_once]


def ideal(episodes: Sequence[Episode], at_once: int, turn_s: float, reset_s: float) -> list[Episode]:
    """The same episodes in the same order when nothing is ever lost: each slot takes the next one at once.

    Args:
        episodes: those played.
        at_once: slots.
        turn_s: seconds of a turn, latency and environment.
        reset_s: seconds of a reset.
    """
    slots = [0.0] * at_once
    played = []
    for episode in sorted(episodes, key=lambda one: one.start):
        start = heapq.heappop(slots)
        end = start + reset_s + episode.turns * turn_s
        heapq.heappush(slots, end)
        played.append(Episode(start, end, episode.turns, 0.0))
    return played


def without_tail(episodes: Sequence[Episode], at_once: int, turn_s: float, reset_s: float) -> float:
    """Seconds that all slots together need when all are busy to the end."""
    return sum(reset_s + episode.turns * turn_s for episode in episodes) / at_once
