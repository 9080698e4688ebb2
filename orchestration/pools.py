"""Pools of Ray actors with a bounded number of calls in flight on each, and replacement of lost ones."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

log = logging.getLogger(__name__)

_GET_TIMEOUT_S = 60.0  # the result is there already; only its transfer is waited for


@dataclass(eq=False)
class Worker:
    """One actor and its load."""

    actor: ActorHandle[Any]
    in_flight: int = 0


@dataclass(frozen=True)
class Flight:
    """A call that has not come back."""

    tag: Any
    """The caller's name for it."""
    worker: Worker
    started: float
    """Monotonic seconds."""


@dataclass(frozen=True)
class Landing:
    """A call that came back, or whose worker is gone."""

    tag: Any
    worker: Worker
    result: Any = None
    lost: str = ""
    """Why there is no result; empty when there is one."""


class Pool:
    """Actors of one class. Calls are pulled by the driver, so nothing piles up in front of a slow worker.

    Args:
        worker: a plain class; every actor is built with ``arguments``.
        method: the one method that is called.
        size: number of actors.
        in_flight: calls handed to each actor at once.
        threads: calls each actor works on at once; more in flight than threads keeps it busy between two calls.
        env: environment variables of the actors' processes.
    """

    def __init__(
        self,
        worker: type,
        method: str,
        arguments: tuple[Any, ...],
        *,
        size: int,
        in_flight: int,
        threads: int,
        env: dict[str, str] | None = None,
    ) -> None:
        import ray

        self._class: Any = ray.remote(worker).options(
            num_cpus=1,
            max_concurrency=threads,
            max_restarts=0,  # the driver replaces workers itself and starts their episodes again, counted
            max_task_retries=0,
            runtime_env={"env_vars": env or {}},
        )
        self._name = worker.__name__
        self._method = method
        self._arguments = arguments
        self._limit = in_flight
        self._workers = [Worker(self._start()) for _ in range(size)]
        self._flights: dict[ObjectRef[Any], Flight] = {}

    def _start(self) -> ActorHandle[Any]:
        actor: ActorHandle[Any] = self._class.remote(*self._arguments)
        return actor

    @property
    def references(self) -> list[ObjectRef[Any]]:
        """Calls under way."""
        return list(self._flights)

    @property
    def free(self) -> int:
        """Calls that can be submitted now."""
        return sum(self._limit - worker.in_flight for worker in self._workers)

    def submit(self, job: Any, tag: Any) -> None:
        """Start a call on the least loaded worker; only while ``free`` is positive."""
        worker = min(self._workers, key=lambda w: w.in_flight)
        reference = getattr(worker.actor, self._method).remote(job)
        worker.in_flight += 1
        self._flights[reference] = Flight(tag, worker, time.monotonic())

    def land(self, reference: ObjectRef[Any]) -> Landing:
        """Take the result of a finished call; a dead worker is replaced at once."""
        import ray
        from ray.exceptions import RayActorError, RayError

        flight = self._flights.pop(reference)
        flight.worker.in_flight -= 1
        try:
            return Landing(flight.tag, flight.worker, ray.get(reference, timeout=_GET_TIMEOUT_S))
        except RayActorError as error:
            self._replace(flight.worker, _cause(error))
            return Landing(flight.tag, flight.worker, lost=f"the worker process died ({_cause(error)})")
        except RayError as error:
            return Landing(flight.tag, flight.worker, lost=f"{type(error).__name__}: {_cause(error)}")

    def overdue(self, limit_s: float) -> list[Flight]:
        """Calls under way for longer than ``limit_s`` seconds."""
        now = time.monotonic()
        return [flight for flight in self._flights.values() if now - flight.started > limit_s]

    def kill(self, worker: Worker, cause: str) -> list[Any]:
        """Replace a worker that hangs; returns the tags of all calls that were under way on it."""
        import ray

        ray.kill(worker.actor)
        gone = [reference for reference, flight in self._flights.items() if flight.worker is worker]
        tags = [self._flights.pop(reference).tag for reference in gone]
        self._replace(worker, cause)
        return tags

    def _replace(self, worker: Worker, cause: str) -> None:
        if worker in self._workers:
            log.warning("a %s was lost (%s); a new one takes its place", self._name, cause)
            self._workers[self._workers.index(worker)] = Worker(self._start())


def _cause(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
