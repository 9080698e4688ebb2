"""Embedder and reranker processes: one for each distinct configuration, started when it is first needed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.assembly import is_hosted
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.cluster import cores, secrets_to_send
from skillarena.orchestration.serving.model_host import ModelHost
from skillarena.orchestration.settings import ClusterSettings, digest, label
from skillarena.orchestration.signs_of_life import watchable

if TYPE_CHECKING:
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

log = logging.getLogger(__name__)

PARTS = ("embedder", "reranker")

_CALLS_AT_ONCE = 64  # callers that may wait together for one batch
_RESTARTS = 3


class Hosts:
    """The model processes of a sweep; they end with the handles kept here.

    Args:
        cluster: GPUs and CPUs of each process.
        room: the group that ``bundles`` were reserved in.
    """

    def __init__(self, cluster: ClusterSettings, room: PlacementGroup) -> None:
        self._cluster = cluster
        self._room = room
        self._actors: dict[str, ActorHandle[Any]] = {}
        self.started: Counter[str] = Counter()
        """Processes started, by part and name; restarts after a crash are Ray's and not counted."""

    def of(self, cell: Cell) -> dict[str, ActorHandle[Any]]:
        """The processes a cell's selector needs, by section; those not there yet are started."""
        sections = {part: getattr(cell.settings, part) for part in hosted_parts(cell)}
        return {part: self._ensure(part, section) for part, section in sections.items()}

    @property
    def actors(self) -> list[ActorHandle[Any]]:
        """All that were started."""
        return list(self._actors.values())

    def _ensure(self, part: str, section: dict[str, Any]) -> ActorHandle[Any]:
        key = f"{part}:{digest(section)}"
        if key not in self._actors:
            self._actors[key] = self._start(part, section)
            self.started[f"{part} {label(section)}"] += 1
            log.info("%s %s gets a process of its own", part, label(section))
        return self._actors[key]

    def _start(self, part: str, section: dict[str, Any]) -> ActorHandle[Any]:
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        bundle = _bundle(self._cluster, part)
        gpus = bundle.get("GPU", 0.0)
        threads = self._cluster.model_cpus or cores()  # on our own Ray the CPUs of the bundle are nominal
        env = {"OMP_NUM_THREADS": str(threads)} | ({} if gpus else {"CUDA_VISIBLE_DEVICES": ""})
        host = watchable(ModelHost)
        actor: ActorHandle[Any] = host.options(
            num_cpus=bundle["CPU"],
            num_gpus=gpus,
            max_concurrency=_CALLS_AT_ONCE,
            max_restarts=_RESTARTS,
            max_task_retries=0,
            runtime_env={"env_vars": env},
            scheduling_strategy=PlacementGroupSchedulingStrategy(self._room),
        ).remote(part, section, secrets_to_send(self._cluster, [section]))
        return actor


def bundles(cells: Sequence[Cell]) -> list[dict[str, float]]:
    """What all model processes of these cells take, one bundle each, whether they will be needed or not."""
    distinct = {f"{part}:{digest(getattr(cell.settings, part))}": part for cell in cells for part in hosted_parts(cell)}
    return [_bundle(cells[0].settings.cluster, part) for part in distinct.values()]


def _bundle(cluster: ClusterSettings, part: str) -> dict[str, float]:
    cpus = 1 if cluster.address is None else cluster.model_cpus or 1
    gpus = float(getattr(cluster, f"{part}_gpus"))
    return {"CPU": float(cpus)} | ({"GPU": gpus} if gpus else {})


def hosted_parts(cell: Cell) -> list[str]:
    """Sections of a cell whose models live in processes of their own."""
    used = [part for part in PARTS if part in cell.identity]
    composite = any(not is_hosted(getattr(cell.settings, part), part) for part in used)
    needed = {*used, *(["embedder"] if composite else [])}
    return [part for part in PARTS if part in needed and is_hosted(getattr(cell.settings, part), part)]
