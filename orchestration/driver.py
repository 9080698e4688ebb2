"""The one driver of a sweep: hands (cell, task) units of all cells to the workers and records what comes back."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import orjson

from skillarena.envs.interface import EndReason
from skillarena.orchestration.cells import Cell, cache_folder, sections
from skillarena.orchestration.cluster import local_cluster, rollout_workers
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.pools import Landing, Pool
from skillarena.orchestration.rows import lost_row, row_of
from skillarena.orchestration.schedule import Ready, Schedule, Unit
from skillarena.orchestration.selection_store import SelectionStore
from skillarena.orchestration.summary import Summary, summarise
from skillarena.orchestration.tracking import Mirror
from skillarena.orchestration.trajectory import Trajectory
from skillarena.orchestration.workers import EpisodeJob, Failure, RolloutWorker, SelectionJob, SelectionWorker
from skillarena.selectors.interface import Selection

log = logging.getLogger(__name__)

_TICK_S = 0.5
_SELECTIONS_IN_FLIGHT = 2  # for each selection worker: one running, one waiting, so none idles
_SELECTIONS_AHEAD = 2  # ready units kept for each rollout slot


class Observer(Protocol):
    """Sees progress; ``progress.py`` draws it."""

    def start(self, cells: Sequence[CellState]) -> None:
        """All cells with what earlier runs finished."""

    def tick(self) -> None:
        """Called at least twice a second."""

    def stop(self) -> None:
        """Nothing more will come."""


@dataclass
class Totals:
    """Sums over a cell's rows, kept up to date so that drawing progress costs the same however many rows there are."""

    scored: int = 0
    """Episodes with a reward."""
    reward: float = 0.0
    """Sum of rewards."""
    tokens: int = 0
    """Prompt and completion tokens of the agent."""
    infra_errors: int = 0

    def add(self, row: EpisodeRow, sign: int = 1) -> None:
        """Count a row, or take it out with ``sign=-1``."""
        self.scored += sign * (row.reward is not None)
        self.reward += sign * (row.reward or 0.0)
        self.tokens += sign * row.total_tokens
        self.infra_errors += sign * (row.outcome == EndReason.INFRA_ERROR)


@dataclass
class CellState:
    """A cell while the sweep runs."""

    cell: Cell
    ledger: Ledger
    resumed: int = 0
    """Episodes that earlier runs had finished."""
    open: int = 0
    """Episodes of this run without a final row."""
    totals: Totals = field(default_factory=Totals)
    error: str = ""
    """Why the cell cannot go on; empty otherwise."""
    ended: bool = False

    @property
    def done(self) -> int:
        """Tasks with a final row, infrastructure errors of this run included."""
        return len(self.cell.tasks) - self.open

    @property
    def summary(self) -> Summary:
        """Aggregates of the episodes so far."""
        settings = self.cell.settings.run
        ids = [task.id for task in self.cell.tasks]
        return summarise(list(self.ledger.rows.values()), ids, settings.bootstrap_resamples)


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


def run_sweep(cells: Sequence[Cell], observer: Observer, sweep_name: str | None = None) -> SweepResult:
    """Run all episodes of all cells that have no final row yet.

    Args:
        cells: preflighted cells; the first one's ``run``, ``cluster`` and ``tracking`` settings hold for all.
        observer: draws progress.
        sweep_name: name of the parent run in MLflow; None for a single cell.

    Raises:
        SkillArenaError: a ledger cannot be opened or written, or Ray does not start.
    """
    settings = cells[0].settings
    with ExitStack() as stack:
        states = [CellState(cell, stack.enter_context(_ledger(cell))) for cell in cells]
        for state in states:
            state.resumed = sum(state.ledger.finished(state.cell.episode_id(task)) for task in state.cell.tasks)
            state.open = len(state.cell.tasks) - state.resumed
            for row in state.ledger.rows.values():
                state.totals.add(row)
        mirror = _mirror(settings, sweep_name, states)
        observer.start(states)
        stack.callback(observer.stop)
        sweep = Sweep(states, mirror)
        interrupted = False
        try:
            if sweep.schedule.open:
                stack.enter_context(local_cluster(settings.cluster, sweep.workers))
                sweep.run(observer)
        except KeyboardInterrupt:
            interrupted = True
            log.warning("stopping; finished episodes are kept")
        finally:
            for state in states:
                sweep.end(state)
            behind = "" if mirror is None or mirror.stop() else mirror.problem
        results = [CellResult(s.cell, s.summary, s.error, tuple(s.ledger.rows.values())) for s in states]
    return SweepResult(tuple(results), behind, interrupted)


class Sweep:
    """The loop over one schedule, one selection pool and one rollout pool."""

    def __init__(self, states: Sequence[CellState], mirror: Mirror | None) -> None:
        self.states = {state.cell.id: state for state in states}
        self._mirror = mirror
        self._settings = states[0].cell.settings
        run = self._settings.run
        self._cache_dir = cache_folder(self._settings)
        self._store = SelectionStore(self._cache_dir)
        self.schedule = Schedule(_units(states), run.max_attempts, run.retry_wait_s, time.monotonic)
        self.workers = rollout_workers(self._settings.cluster, self.schedule.open)

    def run(self, observer: Observer) -> None:
        """Until no unit is open."""
        import ray

        cluster, run = self._settings.cluster, self._settings.run
        arguments = (str(self._cache_dir),)
        self._selecting = Pool(
            SelectionWorker, "select", arguments, size=cluster.selection_workers, in_flight=_SELECTIONS_IN_FLIGHT
        )
        self._playing = Pool(
            RolloutWorker,
            "play",
            arguments,
            size=self.workers,
            in_flight=cluster.episodes_per_worker,
            env={"CUDA_VISIBLE_DEVICES": ""},
        )
        while self.schedule.open:
            self._feed()
            references = self._selecting.references + self._playing.references
            if references:
                done, _ = ray.wait(references, num_returns=1, timeout=_TICK_S)
                done, _ = ray.wait(references, num_returns=len(references), timeout=0) if done else (done, [])
            else:  # every open unit waits for its next attempt
                time.sleep(_TICK_S)
                done = []
            for reference in done:
                if reference in self._selecting.references:
                    self._selection_landed(self._selecting.land(reference))
                elif reference in self._playing.references:
                    self._episode_landed(self._playing.land(reference))
            self._replace_overdue(run.selection_timeout_s, run.episode_timeout_s)
            observer.tick()

    def end(self, state: CellState) -> None:
        """Write the cell's summary and let its MLflow run end; safe to repeat."""
        if state.ended:
            return
        state.ended = True
        summary = state.summary
        path = state.cell.directory / "summary.json"
        part = path.with_suffix(".tmp")
        part.write_bytes(orjson.dumps(summary.to_dict(), option=orjson.OPT_INDENT_2))
        part.replace(path)
        if self._mirror is not None:
            status = "FAILED" if state.error else "FINISHED" if summary.complete else "KILLED"
            self._mirror.end_cell(state.cell.directory, summary, status)

    def _feed(self) -> None:
        ahead = self.workers * self._settings.cluster.episodes_per_worker * _SELECTIONS_AHEAD
        while self._selecting.free and self.schedule.ready < ahead:
            unit = self.schedule.next_to_select()
            if unit is None:
                break
            stored = self._store.get(unit.selection_key)
            if stored is not None:
                self.schedule.selected(unit.selection_key, stored, stored=True)
            else:
                self._selecting.submit(_selection_job(unit), unit)
        while self._playing.free:
            ready = self.schedule.next_ready()
            if ready is None:
                break
            self._playing.submit(_episode_job(ready), ready)

    def _selection_landed(self, landing: Landing) -> None:
        unit: Unit = landing.tag
        if isinstance(landing.result, Selection):
            self._store.put(unit.selection_key, landing.result)
            self.schedule.selected(unit.selection_key, landing.result, stored=False)
        elif isinstance(landing.result, Failure) and landing.result.permanent:
            self._fail_cell(unit, landing.result.message)
        else:
            reason = landing.lost or landing.result.message
            for closed in self.schedule.selection_failed(unit.selection_key):
                self._record(closed, lost_row(closed, self.schedule.attempts(closed), f"selection: {reason}"), None)

    def _episode_landed(self, landing: Landing) -> None:
        ready: Ready = landing.tag
        if isinstance(landing.result, Trajectory):
            row = row_of(ready, landing.result, attempts=self.schedule.attempts(ready.unit) + 1)
            self._record(ready.unit, row, landing.result.to_dict())
            self.schedule.finished(ready.unit)
            return
        if isinstance(landing.result, Failure):
            if landing.result.worker_lost:
                self._requeue(self._playing.kill(landing.worker, "an environment call never returned"))
            if landing.result.permanent:
                self._fail_cell(ready.unit, landing.result.message)
        self._lose(ready, landing.lost or landing.result.message)

    def _lose(self, ready: Ready, reason: str) -> None:
        log.warning("%s, task %s: attempt lost: %s", ready.unit.cell.name, ready.unit.task.name, reason)
        if not self.schedule.failed(ready):
            self._record(ready.unit, lost_row(ready.unit, self.schedule.attempts(ready.unit), reason), None)

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
                self._selection_landed(Landing(unit, flight.worker, lost=reason))

    def _fail_cell(self, unit: Unit, message: str) -> None:
        stop_all = self._settings.run.on_cell_error == "stop"
        for state in self.states.values() if stop_all else [self.states[unit.cell.id]]:
            state.error = state.error or (message if state.cell is unit.cell else "stopped: another cell failed")
            self.schedule.drop_cell(state.cell)

    def _record(self, unit: Unit, row: EpisodeRow, trajectory: dict[str, Any] | None) -> None:
        state = self.states[unit.cell.id]
        replaced = state.ledger.rows.get(row.episode_id)
        state.totals.add(state.ledger.append(row, trajectory))
        if replaced is not None:
            state.totals.add(replaced, sign=-1)
        state.open -= 1
        if not state.open:
            self.end(state)


def _units(states: Sequence[CellState]) -> list[Unit]:
    """Unfinished episodes, cell after cell."""
    units = [Unit(state.cell, task, state.cell.episode_id(task)) for state in states for task in state.cell.tasks]
    ledgers = {state.cell.id: state.ledger for state in states}
    return [unit for unit in units if not ledgers[unit.cell.id].finished(unit.episode_id)]


def _ledger(cell: Cell) -> Ledger:
    about = {
        "cell": {"id": cell.id, "name": cell.name, "axes": cell.axes, "simulated": cell.simulated},
        "settings": cell.settings.model_dump(mode="json"),
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
