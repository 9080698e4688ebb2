"""The loop of a sweep: hands (cell, task) units of all cells to the workers and records what comes back."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from skillarena.conf.errors import DataError, SkillArenaError
from skillarena.orchestration.budget import Budget, Caps
from skillarena.orchestration.cell_state import CellState
from skillarena.orchestration.cells import Cell, cache_folder
from skillarena.orchestration.crew import Crew
from skillarena.orchestration.driver_watch import watched
from skillarena.orchestration.jobs import LearningJob, SelectionJob, episode_job
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.pools import Landing, Pool, Worker
from skillarena.orchestration.rows import lost_row, row_of, spending_of
from skillarena.orchestration.schedule import Ready, Schedule, Unit
from skillarena.orchestration.selection_store import SelectionStore
from skillarena.orchestration.stall_dump import write_dump
from skillarena.orchestration.stop_request import StopRequest
from skillarena.orchestration.tracking import Mirror
from skillarena.orchestration.watchdog import Stall
from skillarena.orchestration.workers import Answer, Failure, Played
from skillarena.selectors.interface import Selection

log = logging.getLogger(__name__)

_TICK_S = 0.5
_LOOK_EVERY_S = 0.25  # as often as the governor hears of what is spent
_LAST_ACCOUNT_S = 2.0  # for what the calls that ended last have taken
_SELECTIONS_AHEAD = 2  # ready units kept for each rollout slot


class Observer(Protocol):
    """Sees progress; ``progress.py`` draws it."""

    def start(self, cells: Sequence[CellState]) -> None:
        """All cells with what earlier runs finished."""

    def tick(self, selecting: int, playing: int, starting: Sequence[str]) -> None:
        """Called at least twice a second with the selections and episodes under way and the servers not up yet."""

    def stop(self) -> None:
        """Nothing more will come."""


class Sweep:
    """One schedule, played by one crew.

    Args:
        states: the cells with their open ledgers.
        mirror: MLflow's writer; None when tracking is off.
    """

    def __init__(self, states: Sequence[CellState], mirror: Mirror | None) -> None:
        self.states = {state.cell.id: state for state in states}
        self._mirror = mirror
        self._learning = [state for state in states if state.learning is not None]
        self.settings = states[0].cell.settings
        run = self.settings.run
        self._store = SelectionStore(cache_folder(self.settings))
        units = [unit for state in states for unit in state.units()]
        self.schedule = Schedule(units, run.max_attempts, run.retry_wait_s, time.monotonic)
        self._to_compute: deque[Unit] = deque()  # selections that are in no store, next ones first
        self._wasted: Counter[str] = Counter()  # tokens of attempts that broke off, by episode id
        self._warned: set[str] = set()
        self._failed_merges: Counter[str] = Counter()  # by cell id
        self._up: set[str] = set()  # ids of cells whose backbone answered when it was last asked
        self._starting: list[str] = []  # backbones that did not
        self._looked_at = -_LOOK_EVERY_S
        self._budget = Budget(Caps(run.max_tokens, run.max_cost))
        for state in states:
            if not state.cell.simulated:
                for row in state.ledger.rows.values():
                    self._budget.learn(spending_of(row))
        self.halted = ""
        """Why no further episode was started although some are left; empty when none is left or the user stopped."""
        self.selections_computed = 0
        """Selections that were in no store."""

    @property
    def open_cells(self) -> list[Cell]:
        """Cells with something to play or to learn."""
        return [state.cell for state in self.states.values() if state.left]

    @property
    def open_episodes(self) -> int:
        """Episodes without a final row."""
        return sum(state.open for state in self.states.values())

    def run(self, crew: Crew, observer: Observer, stop: StopRequest) -> None:
        """Until no unit is open, the budget is spent or the user wants to stop."""
        self._crew = crew
        with watched(self._stalls / "driver.txt", self.settings.run.stall_timeout_s) as self._beat:
            self._loop(observer, stop)
        if self.halted:
            self._budget.account(crew.governor.spending(wait_s=_LAST_ACCOUNT_S))
            self.halted = self._budget.explain()

    def _loop(self, observer: Observer, stop: StopRequest) -> None:
        crew = self._crew
        while (self.schedule.open or self._learners) and not stop.made and not (self.halted and not crew.playing.busy):
            self._look_around()
            if not self.halted:
                self._feed()
            selections, episodes = crew.landings(_TICK_S)
            for landing in selections:
                self._back_from_selecting(landing)
            for landing in episodes:
                self._episode_landed(landing)
            observer.tick(crew.selecting.busy, crew.playing.busy, self._starting)

    @property
    def _learners(self) -> list[CellState]:
        """Cells whose selector has something left to learn."""
        return [s for s in self._learning if s.learning is not None and not s.learning.done and not s.error]

    def _look_around(self) -> None:
        """Everything that changes slowly: many episodes may end within one look."""
        now = time.monotonic()
        if now - self._looked_at < _LOOK_EVERY_S:
            return
        self._looked_at = now
        self._beat()
        crew = self._crew
        self._look_at_backbones()
        self._budget.account(crew.governor.spending())
        self._replace_stalled()
        crew.check_placed()

    def _look_at_backbones(self) -> None:
        """Note whose backbone answers and drop the cells whose cannot."""
        starting: dict[str, None] = {}
        self._up.clear()
        for state in self.states.values():
            if state.open and not state.error:
                try:
                    if self._crew.playable(state.cell):
                        self._up.add(state.cell.id)
                    else:
                        starting[state.cell.axes["backbone"]] = None
                except SkillArenaError as error:
                    self._fail_cell(state.cell, str(error))
        self._starting = list(starting)

    def _playable(self, cell: Cell) -> bool:
        return cell.id in self._up

    def _feed(self) -> None:
        crew = self._crew
        for state in self._learners:
            self._merge_lessons(state)
        ahead = crew.episodes_at_once * _SELECTIONS_AHEAD
        while self.schedule.ready(self._playable) < ahead and len(self._to_compute) < ahead:
            unit = self.schedule.next_to_select()
            if unit is None:
                break
            stored = self._store.get(unit.selection_key)
            if stored is not None:
                self.schedule.selected(unit.selection_key, stored, stored=True)
            else:
                self._to_compute.append(unit)
        while crew.selecting.free and self._to_compute and self._budget.may_start(crew.playing.busy):
            unit = self._to_compute.popleft()
            crew.selecting.submit(SelectionJob(crew.method(unit), unit.task), unit)
        while crew.playing.free:
            if not self._budget.may_start(crew.playing.busy):
                if not crew.playing.busy:
                    self.halted = self._budget.explain()
                break
            ready = self.schedule.next_ready(self._playable)
            if ready is None:
                break
            crew.playing.submit(episode_job(ready, crew.seat(ready.unit)), ready)

    def _merge_lessons(self, state: CellState) -> None:
        """Have the lessons of a batch that is over merged, once a worker is free."""
        learning = state.learning
        if learning is None or learning.merging or not learning.batch_is_over or not self._crew.selecting.free:
            return
        try:
            lessons = learning.lessons
        except DataError as error:
            self._fail_cell(state.cell, str(error))
            return
        learning.merging = True
        unit = Unit(state.cell, learning.batch[0], state.cell.episode_id(learning.batch[0]), learning.memory)
        self._crew.selecting.submit(LearningJob(self._crew.method(unit), lessons), state)

    def _merge_landed(self, state: CellState, landing: Landing) -> None:
        result = self._result_of(landing)
        assert state.learning is not None
        if isinstance(result, bytes):
            state.learning.update(result)
            self.schedule.add(state.units())
            return
        state.learning.merging = False  # and so it is tried again
        if result.budget_spent:
            self.halted = result.message
            return
        self._failed_merges[state.cell.id] += 1
        if result.permanent or self._failed_merges[state.cell.id] >= self.settings.run.max_attempts:
            self._fail_cell(state.cell, f"learning from a batch of episodes failed: {result.message}")

    def _back_from_selecting(self, landing: Landing) -> None:
        if isinstance(landing.tag, CellState):
            self._merge_landed(landing.tag, landing)
        else:
            self._selection_landed(landing)

    def _selection_landed(self, landing: Landing) -> None:
        unit: Unit = landing.tag
        result = self._result_of(landing)
        if isinstance(result, Failure) and result.budget_spent:
            self.halted = result.message  # its units stay open
        elif isinstance(result, Selection):
            self.selections_computed += 1
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
        if isinstance(result, Played):
            attempts = self.schedule.attempts(ready.unit) + 1
            wasted = self._wasted.pop(episode, 0)
            trajectory = result.trajectory
            row = row_of(ready, trajectory, attempts=attempts, wasted_tokens=wasted, node=landing.worker.node)
            learning = self.states[ready.unit.cell.id].learning
            if learning is not None:
                learning.keep(result.lesson)
            kept = ready.selection if ready.unit.cell.settings.run.keep_selections else None
            self._record(ready.unit, row, trajectory.to_dict(), kept)
            self.states[ready.unit.cell.id].lost_in_a_row = 0
            self.schedule.finished(ready.unit)
            if not ready.unit.cell.simulated:  # whose tokens nobody pays
                self._budget.ended(spending_of(row))
            return
        if result.budget_spent:
            self.halted = result.message  # the unit stays open
            return
        self._wasted[episode] += result.wasted_tokens
        if result.worker_lost:
            self._requeue(self._crew.playing.kill(landing.worker, "an environment call never returned"))
        if result.permanent:
            self._fail_cell(ready.unit.cell, result.message)
        self._lose(ready, result.message)

    def _result_of(self, landing: Landing) -> Any:
        """A ``Selection``, memory, ``Played`` or ``Failure``; warnings of the worker are shown once each."""
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
        self._record(unit, lost_row(unit, attempts, reason, wasted))
        state = self.states[unit.cell.id]
        state.lost_in_a_row += 1
        if state.lost_in_a_row == self.settings.run.max_lost_in_a_row:
            self._fail_cell(unit.cell, f"{state.lost_in_a_row} episodes in a row were given up; the last one: {reason}")
        if state.learning is not None:
            self._fail_cell(unit.cell, f"task {unit.task.name} was lost, and what comes next builds on it: {reason}")

    def _requeue(self, bystanders: Iterable[Ready]) -> None:
        for ready in bystanders:
            self.schedule.failed(ready, at_fault=False)

    def _replace_stalled(self) -> None:
        """Replace workers that hang; the calls that they hang in count as an attempt."""
        crew, run = self._crew, self.settings.run
        limits = ((crew.playing, "end", run.episode_timeout_s), (crew.selecting, "selection", run.selection_timeout_s))
        for pool, what, limit_s in limits:
            late: dict[Worker, list[Any]] = {}
            for flight in pool.overdue(limit_s):
                late.setdefault(flight.worker, []).append(flight.tag)
            for worker, tags in late.items():
                self._replace(pool, worker, Stall(worker.actor, f"no {what} after {limit_s:g} s", None), tags)
        for stall in crew.stalls():
            pool = crew.playing if crew.playing.worker_of(stall.actor) else crew.selecting
            found = pool.worker_of(stall.actor)
            if found is None:
                write_dump(self._stalls, stall, crew.name_of(stall.actor), self._facts())
                crew.restart(stall)
            elif stall.stuck is None:
                self._replace(pool, found, stall, pool.tags(found))
            elif stuck := [tag for tag in pool.tags(found) if tag.unit.episode_id in stall.stuck]:
                self._replace(pool, found, stall, stuck)

    def _replace(self, pool: Pool, worker: Worker, stall: Stall, stuck: Sequence[Any]) -> None:
        under_way = [f"under way in it: {_name_of(tag)}{' (stuck)' * (tag in stuck)}" for tag in pool.tags(worker)]
        dump = write_dump(self._stalls, stall, pool.name, [*self._facts(), *under_way])
        reason = f"{stall.reason}; where it hung is in {dump}" if dump else stall.reason
        for tag in pool.kill(worker, stall.reason):
            if isinstance(tag, Ready):
                self._lose(tag, reason) if tag in stuck else self._requeue([tag])
            elif tag in stuck or isinstance(tag, CellState):
                self._back_from_selecting(Landing(tag, worker, lost=reason))
            else:
                self._to_compute.appendleft(tag)

    @property
    def _stalls(self) -> Path:
        return Path(self.settings.output_dir).absolute() / "stalls"

    def _facts(self) -> list[str]:
        crew, schedule = self._crew, self.schedule
        return [
            f"open episodes: {schedule.open}, waiting for a slot: {schedule.ready(self._playable)}",
            f"under way: {crew.playing.busy} episodes, {crew.selecting.busy} selections",
            f"backbones not up: {', '.join(self._starting) or 'none'}",
        ]

    def _fail_cell(self, failed: Cell, message: str) -> None:
        stop_all = self.settings.run.on_cell_error == "stop"
        for state in self.states.values() if stop_all else [self.states[failed.id]]:
            state.error = state.error or (message if state.cell is failed else "stopped: another cell failed")
            self.schedule.drop_cell(state.cell)

    def _record(
        self,
        unit: Unit,
        row: EpisodeRow,
        trajectory: dict[str, Any] | None = None,
        selection: Selection | None = None,
    ) -> None:
        state = self.states[unit.cell.id]
        replaced = state.ledger.rows.get(row.episode_id)
        state.totals.add(state.ledger.append(row, trajectory, selection))
        if replaced is not None:
            state.totals.add(replaced, sign=-1)
        state.open -= 1
        if not state.open:
            state.end(self._mirror)


def _name_of(tag: Ready | Unit | CellState) -> str:
    if isinstance(tag, CellState):
        return f"learning of {tag.cell.name}"
    unit = tag.unit if isinstance(tag, Ready) else tag
    return f"{unit.cell.name}, task {unit.task.name}, episode {unit.episode_id}"
