"""Finds workers that do not answer and episodes that do not move on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.signs_of_life import WATCH_GROUP, Pulse, pulse

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

_LONGEST_PERIOD_S = 30.0
_GET_TIMEOUT_S = 10.0  # the answer is there already; only its transfer is waited for


@dataclass
class _Watched:
    """One actor."""

    heard_at: float
    """When its last answer came, or when it was first seen. Monotonic seconds."""
    asked: ObjectRef[Any] | None = None
    asked_at: float = 0.0
    pulse: Pulse | None = None
    """Its last answer."""


@dataclass(frozen=True)
class Stall:
    """A worker that does not answer, or some of whose episodes do not move on."""

    actor: ActorHandle[Any]
    reason: str
    pulse: Pulse | None
    """Its last answer."""
    stuck: frozenset[str] | None = None
    """Ids of the episodes that do not move on; None when it is the whole worker."""


class Watchdog:
    """Asks actors for a sign of life, a few times within the limit.

    Args:
        limit_s: seconds without an answer of a worker, or without a finished turn of an episode, that are too many.
        clock: monotonic seconds.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = limit_s
        self._period_s = min(limit_s / 5, _LONGEST_PERIOD_S)
        self._clock = clock
        self._watched: dict[ActorHandle[Any], _Watched] = {}

    def look(self, actors: Iterable[ActorHandle[Any]]) -> list[Stall]:
        """Take in answers and ask anew; cheap, as it never waits.

        Args:
            actors: those that have started; they need the concurrency group ``WATCH_GROUP``.

        Returns:
            Those that stall, each once: it is watched anew from now on.
        """
        now = self._clock()
        known = self._watched
        self._watched = {actor: known.get(actor) or _Watched(heard_at=now) for actor in actors}
        stalls = [stall for actor, watched in self._watched.items() if (stall := self._look_at(actor, watched, now))]
        for stall in stalls:
            del self._watched[stall.actor]
        return stalls

    def _look_at(self, actor: ActorHandle[Any], watched: _Watched, now: float) -> Stall | None:
        fresh = self._hear(watched, now)
        if watched.asked is not None and now - watched.heard_at > self._limit_s:
            return Stall(actor, f"no sign of life for {now - watched.heard_at:.0f} s", watched.pulse)
        if watched.asked is None and now - watched.asked_at >= self._period_s:
            watched.asked, watched.asked_at = ask(actor, pulse), now
        stuck = [sign for sign in fresh.episodes if sign.quiet_s > self._limit_s] if fresh else []
        if not stuck:
            return None
        longest = max(sign.quiet_s for sign in stuck)
        return Stall(actor, f"no turn for {longest:.0f} s", fresh, frozenset(sign.episode_id for sign in stuck))

    def _hear(self, watched: _Watched, now: float) -> Pulse | None:
        """The answer, if it has come since the last look."""
        import ray
        from ray.exceptions import RayError

        if watched.asked is None or not ray.wait([watched.asked], timeout=0)[0]:
            return None
        try:
            answer: Pulse | None = ray.get(watched.asked, timeout=_GET_TIMEOUT_S)
        except RayError:  # that a worker is dead is found by its calls
            answer = None
        watched.asked, watched.heard_at, watched.pulse = None, now, answer
        return answer


def ask(actor: ActorHandle[Any], function: Callable[[object], Any]) -> ObjectRef[Any]:
    """Have an actor run a function in the thread that answers for it."""
    call: Any = actor.__ray_call__
    reference: ObjectRef[Any] = call.options(concurrency_group=WATCH_GROUP).remote(function)
    return reference
