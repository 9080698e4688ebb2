"""What a worker process says about itself while its calls are under way.

Runs inside Ray's workers, in a thread of its own, so that a worker whose calls hang can still answer.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

WATCH_GROUP = "watch"
"""Ray's concurrency group with the thread that answers for a worker."""


@dataclass(frozen=True)
class EpisodeSign:
    """One episode under way."""

    episode_id: str
    turns: int
    """Finished so far."""
    quiet_s: float
    """Seconds since the last one ended, or since the episode began."""


@dataclass(frozen=True)
class Pulse:
    """A process's answer."""

    node: str
    """Ray's id of its node."""
    pid: int
    episodes: tuple[EpisodeSign, ...] = ()


class Signs:
    """Episodes under way in this process.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._turns: dict[str, tuple[int, float]] = {}  # finished turns and the time of the last one, by episode id

    @contextmanager
    def of(self, episode_id: str) -> Iterator[Callable[[], None]]:
        """An episode is under way; gives what to call after each of its turns."""
        with self._lock:
            self._turns[episode_id] = (0, self._clock())
        try:
            yield lambda: self._beat(episode_id)
        finally:
            with self._lock:
                self._turns.pop(episode_id, None)

    def episodes(self) -> tuple[EpisodeSign, ...]:
        """All of them as they are now."""
        now = self._clock()
        with self._lock:
            return tuple(EpisodeSign(name, turns, now - since) for name, (turns, since) in self._turns.items())

    def _beat(self, episode_id: str) -> None:
        with self._lock:
            self._turns[episode_id] = (self._turns[episode_id][0] + 1, self._clock())


def watchable(actor_class: type) -> Any:
    """An actor class of Ray whose actors have a thread that answers for them."""
    import ray

    decorate: Any = ray.remote
    return decorate(concurrency_groups={WATCH_GROUP: 1})(actor_class)


def pulse(worker: object) -> Pulse:
    """Runs inside an actor of any class; one with episodes keeps them in an attribute ``signs``."""
    import ray

    signs: Signs | None = getattr(worker, "signs", None)
    node = str(ray.get_runtime_context().get_node_id())
    return Pulse(node, os.getpid(), signs.episodes() if signs is not None else ())


def stacks(_worker: object) -> str:
    """Runs inside an actor: where each thread of its process is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
    )


def process_state(pid: int) -> str:
    """What the system knows of a process on this machine that does not answer: its state and what each thread waits in.

    Linux only; elsewhere, and for a process that has ended, it says that nothing is known.
    """
    import psutil

    try:
        process = psutil.Process(pid)
        threads = [f"  {thread.id}: {_wait_channel(pid, thread.id)}" for thread in process.threads()]
        return "\n".join([f"process {pid} is {process.status()}; its threads wait in:", *threads])
    except (psutil.Error, OSError) as error:
        return f"process {pid}: nothing is known ({type(error).__name__})"


def _wait_channel(pid: int, thread: int) -> str:
    try:
        with open(f"/proc/{pid}/task/{thread}/wchan", encoding="ascii") as file:  # noqa: PTH123 (a kernel's file)
            return file.read() or "?"
    except OSError:
        return "?"
