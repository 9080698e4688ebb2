"""All processes of one sweep: model servers, model processes, selection workers and rollout workers."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.budget import Caps
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.cluster import cores, living_nodes, secrets_to_send
from skillarena.orchestration.jobs import Method, Seat, method_of
from skillarena.orchestration.pools import Landing, Place, Pool
from skillarena.orchestration.schedule import Unit
from skillarena.orchestration.serving.fleet import Fleet, cpus_of_servers
from skillarena.orchestration.serving.governor import GovernorActor
from skillarena.orchestration.serving.hosts import Hosts, bundles
from skillarena.orchestration.serving.model_host import ModelHost
from skillarena.orchestration.serving.placement import wait_for_room
from skillarena.orchestration.session_desk import SessionDesk
from skillarena.orchestration.settings import digest
from skillarena.orchestration.signs_of_life import watchable
from skillarena.orchestration.watchdog import Stall, Watchdog
from skillarena.orchestration.workers import RolloutWorker, SelectionWorker

if TYPE_CHECKING:
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

_DESK_RESTARTS = 100  # each loses the episodes under way, whose attempts are counted
_SELECTIONS_IN_FLIGHT = 2  # for each selection worker: one running, one waiting, so none idles


class Crew:
    """Starts what the open cells need, once for all of them.

    Args:
        cells: those with episodes to play; the first one's ``cluster`` settings hold for all.
        rollout_workers: number of rollout processes.
        stopped: whether the user wants to stop, which ends all waiting.

    Raises:
        ConfigError: there is no room for the models or the selection workers.
    """

    def __init__(self, cells: Sequence[Cell], rollout_workers: int, stopped: Callable[[], bool]) -> None:
        settings = cells[0].settings
        cluster = settings.cluster
        self.episodes_at_once = rollout_workers * cluster.episodes_per_worker
        self.governor = GovernorActor(Caps(settings.run.max_tokens, settings.run.max_cost))
        self.fleet = Fleet(cluster, Path(settings.output_dir).absolute() / "servers")
        self._backbones = {digest(cell.settings.backbone): cell.settings.backbone for cell in cells}
        for section in self._backbones.values():
            self.fleet.ensure(section)
        # Before the rollout workers, which would take all the CPUs there are.
        self.fleet.wait_for_room(stopped)
        room = _room_for_selection(cells, stopped)
        self.hosts = Hosts(cluster, room)
        asking = ("backbone", "parser", "llm")
        secrets = secrets_to_send(cluster, [getattr(cell.settings, part) for cell in cells for part in asking])
        self._desk_arguments = (settings.cache_dir, secrets)
        self._desk: ActorHandle[Any] | None = None
        self._start_timeout_s = settings.run.selection_timeout_s
        self._watchdog = Watchdog(settings.run.stall_timeout_s)
        self.selecting = Pool(
            SelectionWorker,
            "work",
            (settings.cache_dir, secrets, self.governor.handle),
            size=cluster.selection_workers,
            in_flight=_SELECTIONS_IN_FLIGHT,
            place=Place(
                threads=1, env={"CUDA_VISIBLE_DEVICES": ""}, room=room
            ),  # one's cost must not mix with another's
            placement_timeout_s=cluster.placement_timeout_s,
        )
        self.playing = Pool(
            RolloutWorker,
            "play",
            (settings.cache_dir, secrets, self.governor.handle, self.fleet.endpoints),
            size=rollout_workers,
            in_flight=cluster.episodes_per_worker,
            place=Place(threads=cluster.episodes_per_worker, env={"CUDA_VISIBLE_DEVICES": ""}),
            minimum=cluster.min_rollout_workers,
            placement_timeout_s=cluster.placement_timeout_s,
        )

    def playable(self, cell: Cell) -> bool:
        """Whether the cell's backbone answers by now. Raises ``SkillArenaError`` when its servers cannot start."""
        return self.fleet.ready(cell.settings.backbone)

    def method(self, unit: Unit) -> Method:
        """The unit's selector, with the processes that hold its models."""
        return method_of(unit, self.hosts.of(unit.cell))

    def seat(self, unit: Unit) -> Seat | None:
        """Where the session of a unit's episode is to live; None when its selector takes no part in episodes."""
        if not unit.cell.live:
            return None
        if self._desk is None:
            self._desk = _start_desk(self._desk_arguments)
        return Seat(self._desk, self.governor.handle, self.method(unit), self._start_timeout_s)

    @property
    def started(self) -> Counter[str]:
        """Model servers and model processes started, by name."""
        servers = Counter({f"server {name}": times for name, times in self.fleet.started.items()})
        return servers + self.hosts.started

    def landings(self, timeout_s: float) -> tuple[Iterator[Landing], Iterator[Landing]]:
        """Wait until something comes back, at most ``timeout_s`` seconds; returns selections and episodes apart."""
        import ray

        references = self.selecting.references + self.playing.references
        if not references:  # every open unit waits for its next attempt
            time.sleep(timeout_s)
            return iter(()), iter(())
        done, _ = ray.wait(references, num_returns=1, timeout=timeout_s)
        if done:
            done, _ = ray.wait(references, num_returns=len(references), timeout=0)
        return self.selecting.land_all(done), self.playing.land_all(done)

    def check_placed(self) -> None:
        """Raises ``ConfigError`` when the rollout workers have found no room in time."""
        self.playing.check_placed()

    def stalls(self) -> list[Stall]:
        """Processes of selections, episodes, models and sessions that do not answer or do not move on; cheap."""
        desk = [] if self._desk is None else [self._desk]
        return self._watchdog.look([*self.selecting.actors, *self.playing.actors, *self.hosts.actors, *desk])

    def name_of(self, actor: ActorHandle[Any]) -> str:
        """The class of a process that is in no pool."""
        return ModelHost.__name__ if actor in self.hosts.actors else SessionDesk.__name__

    def restart(self, stall: Stall) -> None:
        """End a process that is in no pool; Ray starts it again, and those that wait for it get an error."""
        import ray

        ray.kill(stall.actor, no_restart=False)

    def stop(self) -> None:
        """End the servers; the rest ends with Ray."""
        self.fleet.stop()


def _start_desk(arguments: tuple[Any, ...]) -> ActorHandle[Any]:
    desk = watchable(SessionDesk)
    # Its work is light and waited for by episodes that hold a CPU, so it must never wait for one itself.
    options = {"num_cpus": 0, "max_restarts": _DESK_RESTARTS, "max_task_retries": 0}
    actor: ActorHandle[Any] = desk.options(**options, runtime_env={"env_vars": {"CUDA_VISIBLE_DEVICES": ""}}).remote(
        *arguments
    )
    return actor


def rollout_workers(cells: Sequence[Cell], episodes: int) -> int:
    """Number of rollout processes: as configured, else one for each free core, never more than there are episodes.

    Args:
        cells: those with episodes to play.
        episodes: how many.
    """
    cluster = cells[0].settings.cluster
    free = cores() if cluster.address is None else int(_cluster_cpus()) - _other_cpus(cells)
    return max(1, min(cluster.rollout_workers or free, episodes))


def room(cells: Sequence[Cell], episodes: int) -> int:
    """CPUs that a Ray of our own must offer so that all processes of these cells are placed at once."""
    cluster = cells[0].settings.cluster
    workers = max(1, min(cluster.rollout_workers or cores(), episodes))
    return workers + _other_cpus(cells)


def _other_cpus(cells: Sequence[Cell]) -> int:
    """CPUs of everything but the rollout workers."""
    servers = {digest(cell.settings.backbone): cpus_of_servers(cell.settings.backbone) for cell in cells}
    return sum(servers.values()) + int(sum(bundle["CPU"] for bundle in _bundles_for_selection(cells)))


def _bundles_for_selection(cells: Sequence[Cell]) -> list[dict[str, float]]:
    return [{"CPU": 1.0}] * cells[0].settings.cluster.selection_workers + bundles(cells)


def _room_for_selection(cells: Sequence[Cell], stopped: Callable[[], bool]) -> PlacementGroup:
    """A place for the selection workers and the model processes, close together."""
    from ray.util.placement_group import placement_group

    asked = _bundles_for_selection(cells)
    group: PlacementGroup = placement_group(asked, strategy="PACK")
    timeout_s = cells[0].settings.cluster.placement_timeout_s
    wait_for_room(group, asked, "the selection workers and their models", timeout_s=timeout_s, stopped=stopped)
    return group


def _cluster_cpus() -> float:
    return sum(node.get("CPU", 0.0) for node in living_nodes().values())
