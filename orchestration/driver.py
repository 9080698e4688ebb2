"""The one driver of a sweep: hands (cell, task) units of all cells to the workers and records what comes back."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from skillarena.orchestration.cell_state import CellState
from skillarena.orchestration.cells import Cell, cache_folder, sections
from skillarena.orchestration.cluster import cores, local_cluster, rollout_workers
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.pools import Landing, Pool
from skillarena.orchestration.rows import lost_row, row_of
from skillarena.orchestration.schedule import Ready, Schedule, Unit
from skillarena.orchestration.selection_store import SelectionStore
from skillarena.orchestration.stop_request import StopRequest
from skillarena.orchestration.summary import Summary
from skillarena.orchestration.tracking import Mirror
from skillarena.orchestration.trajectory import Trajectory
from skillarena.orchestration.workers import (
    Answer,
    EpisodeJob,
    Failure,
    RolloutWorker,
    SelectionJob,
    SelectionWorker,
)
from skillarena.selectors.interface import Selection

log = logging.getLogger(__name__)

_TICK_S = 0.5
_SELECTIONS_IN_FLIGHT = 2  # for each selection worker: one running, one waiting, so none idles
_SELECTIONS_AHEAD = 2  # ready units kept for each rollout slot


class Observer(Protocol):
    """Sees progress; ``progress.py`` draws it."""

    def start(self, cells: Sequence[CellState]) -> None:
        """All cells with what earlier runs finished."""

    def tick(self, selecting: int, playing: int) -> None:
        """Called at least twice a second with the selections and episodes under way."""

    def stop(self) -> None:
        """Nothing more will come."""


@dataclass(frozen=True)
class CellResult:
    """What a sweep returns for a cell."""

    cell: Cell
    summary: Summary
    error: str
    rows: tuple[EpisodeRow, ...] = field(repr=False, default=())


@dataclass(frozen=True)
class SweepResult:
    """What a sweep returns."""

    cells: tuple[CellResult, ...]
    tracking_problem: str
    """Why MLflow is behind the ledgers; empty when it is not."""
    interrupted: bool
    """Stopped by the user; the same command continues."""


def run_sweep(
    cells: Sequence[Cell], observer: Observer, stop: StopRequest, sweep_name: str | None = None
) -> SweepResult:
    """Run all episodes of all cells that have no final row yet.

    Args:
        cells: preflighted cells; the first one's ``run``, ``cluster`` and ``tracking`` settings hold for all.
        observer: draws progress.
        stop: ends the sweep early; finished episodes are kept.
        sweep_name: name of the parent run in MLflow; None for a single cell.

    Raises:
        SkillArenaError: a ledger cannot be opened or written, or Ray does not start.
    """
    with ExitStack() as stack:
        states = [CellState(cell, stack.enter_context(_ledger(cell))) for cell in cells]
        for state in states:
            state.count_resumed()
        mirror = _mirror(cells[0].settings, sweep_name, states)
        behind = ""
        try:
            _play(Sweep(states, mirror), observer, stop)
        finally:
            for state in states:
                state.end(mirror)
            behind = "" if mirror is None or mirror.stop() else mirror.problem
        results = [CellResult(s.cell, s.summary, s.error, tuple(s.ledger.rows.values())) for s in states]
    return SweepResult(tuple(results), behind, interrupted=stop.made and any(state.open for state in states))


def _play(sweep: Sweep, observer: Observer, stop: StopRequest) -> None:
    """Play all open units; on return no worker runs any more."""
    observer.start(list(sweep.states.values()))
    try:
        if sweep.schedule.open:
            with local_cluster(sweep.settings.cluster, sweep.workers):
                sweep.run(observer, stop)
                if stop.made:
                    log.warning("stopping; finished episodes are kept")
    except KeyboardInterrupt:  # while Ray was starting
        stop.made = True
    finally:
        observer.stop()


class Sweep:
    """The loop over one schedule, one selection pool and one rollout pool."""

    def __init__(self, states: Sequence[CellState], mirror: Mirror | None) -> None:
        self.states = {state.cell.id: state for state in states}
        self._mirror = mirror
        self.settings = states[0].cell.settings
        run = self.settings.run
        self._cache_dir = cache_folder(self.settings)
        self._store = SelectionStore(self._cache_dir)
        self.schedule = Schedule(_units(states), run.max_attempts, run.retry_wait_s, time.monotonic)
        self._to_compute: deque[Unit] = deque()  # selections that are in no store, next ones first
        self._wasted: Counter[str] = Counter()  # tokens of attempts that broke off, by episode id
        self._warned: set[str] = set()
        self.workers = rollout_workers(self.settings.cluster, self.schedule.open)

    def run(self, observer: Observer, stop: StopRequest) -> None:
        """Until no unit is open or the user wants to stop."""
        import ray

        cluster, run = self.settings.cluster, self.settings.run
        arguments = (str(self._cache_dir),)
        self._selecting = Pool(
            SelectionWorker,
            "select",
            arguments,
            size=cluster.selection_workers,
            in_flight=_SELECTIONS_IN_FLIGHT,
            threads=1,  # models are not thread-safe, and one selection's cost must not mix with another's
            env={"OMP_NUM_THREADS": str(max(1, cores() // cluster.selection_workers))},  # models on CPUs
        )
        self._playing = Pool(
            RolloutWorker,
            "play",
            arguments,
            size=self.workers,
            in_flight=cluster.episodes_per_worker,
            threads=cluster.episodes_per_worker,
            env={"CUDA_VISIBLE_DEVICES": ""},
        )
        while self.schedule.open and not stop.made:
            self._feed()
            references = self._selecting.references + self._playing.references
            if references:
                done, _ = ray.wait(references, num_returns=1, timeout=_TICK_S)
                done, _ = ray.wait(references, num_returns=len(references), timeout=0) if done else (done, [])
            else:  # every open unit waits for its next attempt
                time.sleep(_TICK_S)
                done = []
            selecting = set(self._selecting.references)
            selected = [self._selecting.land(reference) for reference in done if reference in selecting]
            played = [self._playing.land(reference) for reference in done if reference not in selecting]
            for landing in selected:
                self._selection_landed(landing)
            for landing in played:
                self._episode_landed(landing)
            self._replace_overdue(run.selection_timeout_s, run.episode_timeout_s)
            observer.tick(len(self._selecting.references), len(self._playing.references))

    def _feed(self) -> None:
        ahead = self.workers * self.settings.cluster.episodes_per_worker * _SELECTIONS_AHEAD
        while self.schedule.ready < ahead and len(self._to_compute) < ahead:
            unit = self.schedule.next_to_select()
            if unit is None:
                break
            stored = self._store.get(unit.selection_key)
            if stored is not None:
                self.schedule.selected(unit.selection_key, stored, stored=True)
            else:
                self._to_compute.append(unit)
        while self._selecting.free and self._to_compute:
            unit = self._to_compute.popleft()
            self._selecting.submit(_selection_job(unit), unit)
        while self._playing.free:
            ready = self.schedule.next_ready()
            if ready is None:
                break
            self._playing.submit(_episode_job(ready), ready)

    def _selection_landed(self, landing: Landing) -> None:
        unit: Unit = landing.tag
        result = self._result_of(landing)
        if isinstance(result, Selection):
            self._store.put(unit.selection_key, result)
            self.schedule.selected(unit.selection_key, result, stored=False)
        elif result.permanent:
            for refused in self.schedule.selection_refused(unit.selection_key):
                self._fail_cell(refused.cell, result.message)
        else:
            for closed in self.schedule.selection_failed(unit.selection_key):
                self._give_up(closed, f"selection: {result.message}")

    def _episode_landed(self, landing: Landing) -> None:
        ready: Ready = landing.tag
        result = self._result_of(landing)
        episode = ready.unit.episode_id
        if isinstance(result, Trajectory):
            attempts = self.schedule.attempts(ready.unit) + 1
            row = row_of(ready, result, attempts=attempts, wasted_tokens=self._wasted.pop(episode, 0))
            self._record(ready.unit, row, result.to_dict())
            self.schedule.finished(ready.unit)
            return
        self._wasted[episode] += result.wasted_tokens
        if result.worker_lost:
            self._requeue(self._playing.kill(landing.worker, "an environment call never returned"))
        if result.permanent:
            self._fail_cell(ready.unit.cell, result.message)
        self._lose(ready, result.message)

    def _result_of(self, landing: Landing) -> Any:
        """A ``Selection``, ``Trajectory`` or ``Failure``; warnings of the worker are shown once each."""
        if landing.lost:
            return Failure(landing.lost, permanent=False)
        answer: Answer = landing.result
        for warning in answer.warnings:
            if warning not in self._warned:
                self._warned.add(warning)
                log.warning("%s", warning)
        return answer.result

    def _lose(self, ready: Ready, reason: str) -> None:
        if not self.schedule.failed(ready):
            self._give_up(ready.unit, reason)
        elif self.states[ready.unit.cell.id].error == "":
            log.warning("%s, task %s: attempt lost: %s", ready.unit.cell.name, ready.unit.task.name, reason)

    def _give_up(self, unit: Unit, reason: str) -> None:
        log.warning("%s, task %s: given up: %s", unit.cell.name, unit.task.name, reason)
        attempts, wasted = self.schedule.attempts(unit), self._wasted.pop(unit.episode_id, 0)
        self._record(unit, lost_row(unit, attempts, reason, wasted), None)

    def _requeue(self, bystanders: Iterable[Ready]) -> None:
        for ready in bystanders:
            self.schedule.failed(ready, at_fault=False)

    def _replace_overdue(self, selection_limit_s: float, episode_limit_s: float) -> None:
        for flight in self._playing.overdue(episode_limit_s):
            reason = f"no end after {episode_limit_s:g} s"
            for ready in self._playing.kill(flight.worker, reason):
                self._lose(ready, reason) if ready is flight.tag else self._requeue([ready])
        for flight in self._selecting.overdue(selection_limit_s):
            reason = f"no selection after {selection_limit_s:g} s"
            for unit in self._selecting.kill(flight.worker, reason):
                if unit is flight.tag:
                    self._selection_landed(Landing(unit, flight.worker, lost=reason))
                else:  # it only waited behind the other
                    self._to_compute.appendleft(unit)

    def _fail_cell(self, failed: Cell, message: str) -> None:
        stop_all = self.settings.run.on_cell_error == "stop"
        for state in self.states.values() if stop_all else [self.states[failed.id]]:
            state.error = state.error or (message if state.cell is failed else "stopped: another cell failed")
            self.schedule.drop_cell(state.cell)

    def _record(self, unit: Unit, row: EpisodeRow, trajectory: dict[str, Any] | None) -> None:
        state = self.states[unit.cell.id]
        replaced = state.ledger.rows.get(row.episode_id)
        state.totals.add(state.ledger.append(row, trajectory))
        if replaced is not None:
            state.totals.add(replaced, sign=-1)
        state.open -= 1
        if not state.open:
            state.end(self._mirror)


def _units(states: Sequence[CellState]) -> list[Unit]:
    """Unfinished episodes, cell after cell."""
    units = [Unit(state.cell, task, state.cell.episode_id(task)) for state in states for task in state.cell.tasks]
    ledgers = {state.cell.id: state.ledger for state in states}
    return [unit for unit in units if not ledgers[unit.cell.id].finished(unit.episode_id)]


def _ledger(cell: Cell) -> Ledger:
    absolute = {"output_dir": str(Path(cell.settings.output_dir).absolute())}
    about = {
        "cell": {"id": cell.id, "name": cell.name, "axes": cell.axes, "simulated": cell.simulated},
        "settings": cell.settings.model_dump(mode="json") | absolute,
        "left_out_of_library": cell.left_out,
    }
    return Ledger(cell.directory, cell.identity, about, cell.tasks)


def _mirror(settings: Any, sweep_name: str | None, states: Sequence[CellState]) -> Mirror | None:
    if not settings.tracking.enabled:
        return None
    mirror = Mirror(settings.tracking, settings.output_dir, sweep_name)
    mirror.start({Path(state.cell.directory): state.ledger.rows for state in states})
    return mirror


def _selection_job(unit: Unit) -> SelectionJob:
    chosen = sections(unit.cell.settings)
    needed = {part: chosen[part] for part in ("library", "embedder", "reranker", "parser", "selector")}
    return SelectionJob(needed, unit.cell.identity["library"]["fingerprint"], unit.task)


def _episode_job(ready: Ready) -> EpisodeJob:
    settings = ready.unit.cell.settings
    return EpisodeJob(
        benchmark=settings.benchmark,
        backbone=settings.backbone,
        agent=settings.agent,
        task=ready.unit.task,
        selection=ready.selection,
        episode_id=ready.unit.episode_id,
        seed=settings.seed,
    )
