"""The model servers of one sweep, as the driver sees them: started once, shared by all cells, ended with it."""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.assembly import build, target
from skillarena.orchestration.serving.placement import wait_for_room
from skillarena.orchestration.serving.replicas import Replica, State
from skillarena.orchestration.serving.router import Endpoints, Registry, Router
from skillarena.orchestration.serving.vllm_server import VLLMServer
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.orchestration.settings import ClusterSettings, digest

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

log = logging.getLogger(__name__)

_RESTARTS = 3  # of each replica
_LOOK_EVERY_S = 1.0
_CALL_TIMEOUT_S = 60.0
_STOP_TIMEOUT_S = 30.0
_ROUTER_CALLS_AT_ONCE = 16
_SLACK_S = 120.0  # for what a start takes beside its own limit: Ray's restart, converting a model


class NeedsServers(Protocol):
    """A backbone whose model this command serves; known by ``server_spec``."""

    replicas: int
    start_timeout_s: float

    def server_spec(self) -> ServerSpec:
        """What its calls name the servers by. Without I/O."""

    def pinned_spec(self) -> ServerSpec:
        """What is started: the same, with the model's present content."""


@dataclass
class _Running:
    """One replica's actor at work."""

    actor: ActorHandle[Any]
    serving: ObjectRef[Any]
    """The call that lasts as long as the replica."""
    fault: BackboneError | None = None
    """Why it has ended for good."""


@dataclass(frozen=True)
class _Group:
    """Replicas that were started together."""

    placement: PlacementGroup
    placed: ObjectRef[Any]
    """Done once there is room for all."""
    bundles: list[dict[str, float]]
    replicas: list[_Running] = field(default_factory=list)

    @property
    def is_placed(self) -> bool:
        """Whether there was room."""
        import ray

        return bool(ray.wait([self.placed], timeout=0)[0])


class Fleet:
    """Starts what backbones need, tells when it is up, and ends it.

    Args:
        cluster: ``address`` (null: servers listen on loopback only) and ``placement_timeout_s``.
        log_dir: folder for the servers' logs, on each node.
    """

    def __init__(self, cluster: ClusterSettings, log_dir: Path) -> None:
        self._cluster = cluster
        self._log_dir = log_dir
        self._key = secrets.token_urlsafe(32)
        self._router: ActorHandle[Any] | None = None
        self._names: dict[str, str] = {}  # server name by digest of the section; empty for backbones without servers
        self._servers: dict[str, _Server] = {}
        self.started: Counter[str] = Counter()
        """Replicas started, by server name; restarts are not in it."""

    def ensure(self, section: Mapping[str, Any]) -> None:
        """Start the servers of a backbone section, unless they run or it needs none; does not wait for them.

        Raises:
            SkillArenaError: the section's class refuses it, or its model is missing.
        """
        if digest(section) in self._names:
            return
        backbone = served(section)
        self._names[digest(section)] = name = backbone.server_spec().name if backbone else ""
        if backbone is None:
            return
        if self._router is None:
            self._router = _start_router(self._key)
        if name not in self._servers:
            self._servers[name] = _Server(name, self._router, self._cluster.placement_timeout_s)
        missing = backbone.replicas - self.started[name]
        if missing > 0:
            self._servers[name].start(
                backbone.pinned_spec(),
                missing,
                loopback=self._cluster.address is None,
                key=self._key,
                log_dir=str(self._log_dir),
                start_timeout_s=backbone.start_timeout_s,
            )
            self.started[name] += missing

    def ready(self, section: Mapping[str, Any]) -> bool:
        """Whether the backbone can be called: at least one replica of its server is up. Cheap.

        Raises:
                BackboneError: no replica can start, or all have died too often.
        """
        name = self._names[digest(section)]
        return not name or self._servers[name].ready()

    def wait_for_room(self, stopped: Callable[[], bool]) -> None:
        """Until all replicas have their place. Raises ``ConfigError``."""
        for server in self._servers.values():
            server.wait_for_room(stopped)

    @property
    def endpoints(self) -> Endpoints | None:
        """What workers find replicas with; None when no backbone needs servers."""
        return Endpoints(self._router) if self._router is not None else None

    @property
    def restarts(self) -> Counter[str]:
        """Times that a replica came up again after it had died, by server name."""
        return Counter({name: server.restarts for name, server in self._servers.items() if server.restarts})

    def describe(self) -> list[str]:
        """A line for each server: its name, its replicas and what each takes."""
        return [f"{name}: {server.describe()}" for name, server in self._servers.items()]

    def stop(self) -> None:
        """End all servers; takes at most about half a minute."""
        import ray

        stopping = [reference for server in self._servers.values() for reference in server.stop()]
        if stopping:
            ray.wait(stopping, num_returns=len(stopping), timeout=_STOP_TIMEOUT_S)
        for server in self._servers.values():
            server.discard()
        if self._router is not None:
            ray.kill(self._router)
        self._servers.clear()
        self._names.clear()
        self._router = None


class _Server:
    """All replicas of one spec."""

    def __init__(self, name: str, router: ActorHandle[Any], placement_timeout_s: float) -> None:
        self._name = name
        self._router: Any = router
        self._placement_timeout_s = placement_timeout_s
        self._groups: list[_Group] = []
        self._looked_at = -_LOOK_EVERY_S
        self._is_up = False
        self._was_up_at = time.monotonic()
        self._longest_pause_s = 0.0
        self.restarts = 0

    def start(self, spec: ServerSpec, count: int, **how: Any) -> None:
        """Start further replicas, spread over the nodes where possible."""
        import ray
        from ray.util.placement_group import placement_group
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        remote: Any = ray.remote(VLLMServer)
        bundles = [spec.bundle] * count
        placement = placement_group(bundles, strategy="SPREAD")
        group = _Group(placement, placement.ready(), bundles)
        self._groups.append(group)
        self._longest_pause_s = how["start_timeout_s"] + self._placement_timeout_s + _SLACK_S
        log.info("%s: starting %d replica(s); the log is in %s", self._name, count, how["log_dir"])
        for index in range(count):
            number = len(self._replicas)
            room = PlacementGroupSchedulingStrategy(placement, placement_group_bundle_index=index)
            actor = remote.options(
                num_cpus=spec.bundle["CPU"],
                num_gpus=spec.bundle.get("GPU", 0),
                max_concurrency=2,  # `serve` lasts, `stop` comes in between
                max_restarts=_RESTARTS,
                scheduling_strategy=room,
            ).remote(spec, number, **how)
            serving = actor.serve.options(max_task_retries=-1).remote(Registry(self._router, self._name, number))
            group.replicas.append(_Running(actor, serving))

    def ready(self) -> bool:
        """See ``Fleet.ready``; asks at most once a second."""
        if time.monotonic() - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = time.monotonic()
            self._is_up = self._look()
        return self._is_up

    def describe(self) -> str:
        """Replicas and what each takes."""
        bundle = self._groups[0].bundles[0]
        return f"{len(self._replicas)} x ({' + '.join(f'{amount:g} {kind}' for kind, amount in bundle.items())})"

    def stop(self) -> list[ObjectRef[Any]]:
        """Ask all replicas to end; those that found no room have not begun."""
        begun = [running for group in self._groups if group.is_placed for running in group.replicas]
        return [running.actor.stop.remote(_STOP_TIMEOUT_S) for running in begun]

    def discard(self) -> None:
        """Kill what is left and free its room."""
        import ray
        from ray.util.placement_group import remove_placement_group

        for group in self._groups:
            for running in group.replicas:
                ray.kill(running.actor)
            remove_placement_group(group.placement)

    @property
    def _replicas(self) -> list[_Running]:
        """By number."""
        return [running for group in self._groups for running in group.replicas]

    def _look(self) -> bool:
        known = self._ask_router()
        self.restarts = sum(max(0, replica.starts - 1) for replica in known.values())
        self._note_ends(known)
        faults = [running.fault for running in self._replicas if running.fault]
        if len(faults) == len(self._replicas):
            raise faults[0]
        if any(replica.state in (State.UP, State.SUSPECT) for replica in known.values()):
            self._was_up_at = time.monotonic()
            return True
        if time.monotonic() - self._was_up_at > self._longest_pause_s:
            raise BackboneError(
                f"no replica of the model server {self._name} has been up for {self._longest_pause_s:g} s",
                "see `ray status` for lost nodes, or raise backbone.start_timeout_s",
            )
        return False

    def wait_for_room(self, stopped: Callable[[], bool]) -> None:
        """See ``Fleet.wait_for_room``."""
        for group in self._groups:
            what = f"the model server {self._name}"
            wait_for_room(group.placement, group.bundles, what, timeout_s=self._placement_timeout_s, stopped=stopped)

    def _ask_router(self) -> dict[int, Replica]:
        import ray
        from ray.exceptions import RayError

        try:
            known: Any = ray.get(self._router.replicas.remote(self._name), timeout=_CALL_TIMEOUT_S)
        except RayError as error:
            raise BackboneError(f"the router of the model servers is gone ({_first_line(error)})") from error
        return {replica.number: replica for replica in known}

    def _note_ends(self, known: Mapping[int, Replica]) -> None:
        """Find replicas that have ended for good: they could not start, or have died too often."""
        import ray
        from ray.exceptions import RayError

        for number, running in enumerate(self._replicas):
            if running.fault or not ray.wait([running.serving], timeout=0)[0]:
                continue
            try:
                running.fault = ray.get(running.serving, timeout=_CALL_TIMEOUT_S)
            except RayError as error:
                reason = known[number].reason if number in known else ""
                running.fault = BackboneError(
                    f"the model server {self._name} died {_RESTARTS + 1} times; last: {reason or _first_line(error)}",
                    "see its logs in the servers folder of the output folder",
                )
            log.warning("replica %d of %s is given up: %s", number, self._name, running.fault)


def served(section: Mapping[str, Any]) -> NeedsServers | None:
    """The backbone of a section, if its model is to be served by this command. Raises ``ConfigError``."""
    if not hasattr(target(section, "backbone"), "server_spec"):
        return None
    return cast("NeedsServers", build(section, "backbone"))


def cpus_of_servers(section: Mapping[str, Any]) -> int:
    """CPUs that all replicas of a backbone section take together; 0 for one without servers."""
    backbone = served(section)
    return int(backbone.replicas * backbone.server_spec().bundle["CPU"]) if backbone else 0


def _start_router(key: str) -> ActorHandle[Any]:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    remote: Any = ray.remote(Router)
    router: ActorHandle[Any] = remote.options(
        num_cpus=0,
        max_concurrency=_ROUTER_CALLS_AT_ONCE,
        max_restarts=-1,  # servers repeat where they are, so that a new router knows it soon
        max_task_retries=-1,
        scheduling_strategy=here,
    ).remote(key)
    return router


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
