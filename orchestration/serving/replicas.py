"""Which replica of a model server answers which episode: bookkeeping only."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

LEASE_S = 1800.0
"""Seconds after its last call until an episode that was never released stops counting as load."""


class State(Enum):
    """What is known of a replica."""

    STARTING = "starting"
    UP = "up"
    SUSPECT = "suspect"
    """A caller could not use it; it gets no episode until it shows that it is well."""
    DOWN = "down"


@dataclass(slots=True)
class Replica:
    """One of the equal servers of a model."""

    number: int
    state: State = State.STARTING
    url: str = ""
    """Before ``/chat/completions``; empty until the first start."""
    starts: int = 0
    """How often it has come up; all but the first are restarts."""
    reason: str = ""
    """Why it is down."""


@dataclass(slots=True)
class _Lease:
    replica: int
    used: float


class Replicas:
    """The replicas of all model servers, and the episodes that they answer.

    An episode stays with its replica, whose prefix cache holds its conversation, until that replica fails. New
    episodes, and those of a failed replica, go to the one with the fewest episodes.

    Args:
        clock: seconds from any zero point.
        lease_s: see ``LEASE_S``.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic, lease_s: float = LEASE_S) -> None:
        self._clock = clock
        self._lease_s = lease_s
        self._replicas: dict[str, dict[int, Replica]] = {}
        self._leases: dict[str, dict[str, _Lease]] = {}

    def of(self, server: str) -> list[Replica]:
        """All replicas of a server that have ever reported."""
        return list(self._replicas.get(server, {}).values())

    def starting(self, server: str, number: int) -> int:
        """A replica begins to start; returns how often it has been up before."""
        replica = self._replica(server, number)
        replica.state = State.STARTING
        return replica.starts

    def up(self, server: str, number: int, url: str) -> None:
        """A replica has started and proved to be well."""
        replica = self._replica(server, number)
        replica.state, replica.url, replica.reason = State.UP, url, ""
        replica.starts += 1

    def alive(self, server: str, number: int, url: str) -> None:
        """A replica says that it still is where it was; news only if these books were lost meanwhile."""
        if self._replica(server, number).url != url:
            self.up(server, number, url)

    def down(self, server: str, number: int, reason: str) -> None:
        """A replica has failed or could not start."""
        replica = self._replica(server, number)
        replica.state, replica.reason = State.DOWN, reason

    def suspect(self, server: str, url: str) -> None:
        """A caller could not use the replica at ``url``; ignored when it is not there any more."""
        self._move(server, url, State.UP, State.SUSPECT)

    def clear(self, server: str, url: str) -> None:
        """The suspected replica at ``url`` has shown that it is well."""
        self._move(server, url, State.SUSPECT, State.UP)

    @property
    def suspects(self) -> list[tuple[str, str]]:
        """Server and URL of every suspected replica."""
        return [
            (server, replica.url)
            for server, replicas in self._replicas.items()
            for replica in replicas.values()
            if replica.state is State.SUSPECT
        ]

    def assign(self, server: str, episode_id: str) -> Replica | None:
        """The replica for an episode's next call; None while none is up."""
        up = {replica.number: replica for replica in self.of(server) if replica.state is State.UP}
        leases = self._leases.setdefault(server, {})
        lease = leases.get(episode_id)
        if lease is not None and lease.replica in up:
            lease.used = self._clock()
            return up[lease.replica]
        leases.pop(episode_id, None)
        if not up:
            return None
        self._forget_idle(server)
        load = self.load(server)
        least = min(up, key=lambda number: (load[number], number))
        leases[episode_id] = _Lease(least, self._clock())
        return up[least]

    def release(self, server: str, episode_id: str) -> None:
        """An episode is over."""
        self._leases.get(server, {}).pop(episode_id, None)

    def load(self, server: str) -> Counter[int]:
        """Episodes by replica."""
        return Counter(lease.replica for lease in self._leases.get(server, {}).values())

    def _forget_idle(self, server: str) -> None:
        oldest = self._clock() - self._lease_s
        leases = self._leases[server]
        for episode_id in [episode_id for episode_id, lease in leases.items() if lease.used < oldest]:
            del leases[episode_id]

    def _replica(self, server: str, number: int) -> Replica:
        return self._replicas.setdefault(server, {}).setdefault(number, Replica(number))

    def _move(self, server: str, url: str, before: State, after: State) -> None:
        for replica in self.of(server):
            if replica.url == url and replica.state is before:
                replica.state = after
