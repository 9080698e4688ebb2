"""Pools of Ray actors with a bounded number of calls in flight on each, and replacement of lost ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillarena.conf.errors import ConfigError, EnvError
from skillarena.orchestration.cluster import check_own_node, living_nodes
from skillarena.orchestration.serving.placement import unplaceable
from skillarena.orchestration.signs_of_life import watchable

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

log = logging.getLogger(__name__)

_GET_TIMEOUT_S = 60.0  # the result is there already; only its transfer is waited for
_ASK_EVERY_S = 5.0
_FAILED_STARTS = 3  # in a row; one more would fail too


@dataclass(eq=False)
class Worker:
    """One actor and its load."""

    actor: ActorHandle[Any]
    node: str = ""
    """Ray's id of the node it runs on; empty until it has started."""
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


@dataclass(frozen=True)
class Place:
    """What each actor of a pool gets."""

    threads: int
    """Calls each actor works on at once."""
    env: dict[str, str] = field(default_factory=dict)
    """Environment variables of its process."""
    room: PlacementGroup | None = None
    """Where the actors run; None spreads them over all nodes."""
    cpus: float = 1


class Pool:
    """Actors of one class. Calls are pulled by the driver, so nothing piles up in front of a slow worker.

    Only actors that have started take calls, so a pool may be larger than the cluster is at first.

    Args:
        worker: a plain class; every actor is built with ``arguments``.
        method: the one method that is called.
        arguments: for the constructor.
        size: number of actors.
        in_flight: calls handed to each actor at once; more than ``place.threads`` keeps it busy between two calls.
        place: resources of each actor.
        minimum: actors that must have started before the first call.
        placement_timeout_s: seconds until the first ``minimum`` actors must have started.
    """

    def __init__(
        self,
        worker: type,
        method: str,
        arguments: tuple[Any, ...],
        *,
        size: int,
        in_flight: int,
        place: Place,
        minimum: int = 1,
        placement_timeout_s: float,
    ) -> None:

        self._class: Any = watchable(worker).options(
            num_cpus=place.cpus,
            max_concurrency=place.threads,
            max_restarts=0,  # the driver replaces workers itself and starts their episodes again, counted
            max_task_retries=0,
            runtime_env={"env_vars": place.env},
            scheduling_strategy=_strategy(place.room),
        )
        self.name = worker.__name__
        self._method = method
        self._arguments = arguments
        self._limit = in_flight
        self._cpus = place.cpus
        self._workers: list[Worker] = []
        self._flights: dict[ObjectRef[Any], Flight] = {}
        self._starting: dict[ObjectRef[Any], Worker] = {}
        self._failed_starts = 0
        self._missing = min(minimum, size)
        self._patience_s = placement_timeout_s
        self._waiting_since = self._asked_at = time.monotonic()
        for _ in range(size):
            self._start()

    def _start(self) -> None:
        worker = Worker(self._class.remote(*self._arguments))
        self._starting[worker.actor.__ray_call__.remote(_node_of)] = worker

    @property
    def references(self) -> list[ObjectRef[Any]]:
        """Calls under way, and actors on their way up."""
        return [*self._flights, *self._starting]

    @property
    def busy(self) -> int:
        """Calls under way."""
        return len(self._flights)

    @property
    def free(self) -> int:
        """Calls that can be submitted now."""
        if self._missing > 0:
            return 0
        return sum(self._limit - worker.in_flight for worker in self._workers)

    def submit(self, job: Any, tag: Any) -> None:
        """Start a call on the least loaded worker; only while ``free`` is positive."""
        worker = min(self._workers, key=lambda w: w.in_flight)
        reference = getattr(worker.actor, self._method).remote(job)
        worker.in_flight += 1
        self._flights[reference] = Flight(tag, worker, time.monotonic())

    def land_all(self, references: Iterable[ObjectRef[Any]]) -> Iterator[Landing]:
        """``land`` of each, one by one: what the caller does about one may take others of this pool away."""
        return filter(None, map(self.land, references))

    def land(self, reference: ObjectRef[Any]) -> Landing | None:
        """Take what a finished reference of this pool stands for; None for one of another pool or a started actor.

        A dead worker is replaced at once.

        Raises:
            EnvError: actors of this class cannot start.
        """
        if reference in self._starting:
            self._started(reference)
            return None
        if reference not in self._flights:
            return None
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

    def _started(self, reference: ObjectRef[Any]) -> None:
        import ray
        from ray.exceptions import RayError

        worker = self._starting.pop(reference)
        try:
            worker.node = ray.get(reference, timeout=_GET_TIMEOUT_S)
        except RayError as error:
            self._failed_starts += 1
            if self._failed_starts >= _FAILED_STARTS:
                raise EnvError(f"no {self.name} can start: {_cause(error)}", "see Ray's logs of that node") from error
            log.warning("a %s did not start (%s); another one is tried", self.name, _cause(error))
            self._start()
            return
        self._failed_starts = 0
        self._missing -= 1
        self._workers.append(worker)

    def check_placed(self) -> None:
        """Time limit for the first actors.

        Raises:
            ConfigError: too few have started within ``placement_timeout_s``; says what is asked and what there is.
            EnvError: none can start any more, as Ray on this machine has died.
        """
        if self._workers and self._missing <= 0:
            self._waiting_since = self._asked_at = time.monotonic()
            return
        if time.monotonic() - self._asked_at > _ASK_EVERY_S:
            self._asked_at = time.monotonic()
            check_own_node()
        if time.monotonic() - self._waiting_since > self._patience_s:
            why = unplaceable([{"CPU": float(self._cpus)}] * max(self._missing, 1), list(living_nodes().values()))
            which = "another" if self._workers else "a"
            raise ConfigError(
                f"no room for {which} {self.name} within {self._patience_s:g} s: {why}",
                "add nodes, free resources, or lower cluster.min_rollout_workers",
            )

    @property
    def actors(self) -> list[ActorHandle[Any]]:
        """All that have started."""
        return [worker.actor for worker in self._workers]

    def worker_of(self, actor: ActorHandle[Any]) -> Worker | None:
        """The worker that an actor is; None for one of another pool or one that has been replaced."""
        return next((worker for worker in self._workers if worker.actor is actor), None)

    def tags(self, worker: Worker) -> list[Any]:
        """Of all calls under way on a worker."""
        return [flight.tag for flight in self._flights.values() if flight.worker is worker]

    def overdue(self, limit_s: float) -> list[Flight]:
        """Calls under way for longer than ``limit_s`` seconds."""
        now = time.monotonic()
        return [flight for flight in self._flights.values() if now - flight.started > limit_s]

    def kill(self, worker: Worker, cause: str) -> list[Any]:
        """Replace a worker that hangs; returns the tags of all calls that were under way on it."""
        gone = [reference for reference, flight in self._flights.items() if flight.worker is worker]
        tags = [self._flights.pop(reference).tag for reference in gone]
        self._replace(worker, cause)
        return tags

    def _replace(self, worker: Worker, cause: str) -> None:
        import ray

        if worker in self._workers:
            ray.kill(worker.actor)  # one that is only cut off would keep its CPU
            log.warning("a %s was lost (%s); a new one takes its place", self.name, cause)
            self._workers.remove(worker)
            self._start()


def _strategy(room: PlacementGroup | None) -> Any:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    return "SPREAD" if room is None else PlacementGroupSchedulingStrategy(room)


def _node_of(_worker: object) -> str:
    """Runs inside an actor: the id of its node."""
    import ray

    return str(ray.get_runtime_context().get_node_id())


def _cause(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:300]
