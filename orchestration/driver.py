"""A sweep from its cells to its results: ledgers, MLflow, Ray, and the loop in between."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillarena.orchestration.cell_state import CellState
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.cluster import connected
from skillarena.orchestration.crew import Crew, rollout_workers, room
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.open_files import allow_open_files
from skillarena.orchestration.stop_request import StopRequest
from skillarena.orchestration.summary import Summary
from skillarena.orchestration.sweep import Observer, Sweep
from skillarena.orchestration.tracking import Mirror

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CellResult:
    """What a sweep returns for a cell."""

    cell: Cell
    summary: Summary
    error: str
    rows: tuple[EpisodeRow, ...] = field(repr=False, default=())
    memory: Path | None = None
    """File of what the cell's selector has learned; None for one that does not learn."""


@dataclass(frozen=True)
class SweepResult:
    """What a sweep returns."""

    cells: tuple[CellResult, ...]
    tracking_problem: str
    """Why MLflow is behind the ledgers; empty when it is not."""
    interrupted: bool
    """Stopped by the user; the same command continues."""
    halted: str
    """Why the run ended before its end without the user asking: its budget; empty otherwise."""
    played: bool
    """There was something left to play."""
    started: Counter[str] = field(default_factory=Counter)
    """Model servers and model processes started, by name."""
    selections_computed: int = 0
    """Selections that no earlier cell or run had computed."""


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
        SkillArenaError: a ledger cannot be opened or written, Ray does not start, or too few files may be open.
    """
    allow_open_files(len(cells))
    with ExitStack() as stack:
        states = [CellState(cell, stack.enter_context(_ledger(cell))) for cell in cells]
        for state in states:
            state.count_resumed()
        mirror = _mirror(cells[0].settings, sweep_name, states)
        behind = ""
        sweep = Sweep(states, mirror)
        played = bool(sweep.open_cells)
        started: Counter[str] = Counter()
        try:
            started = _play(sweep, observer, stop)
        finally:
            for state in states:
                state.end(mirror)
            behind = "" if mirror is None or mirror.stop(report=not stop.made) else mirror.problem
        results = [_result(state) for state in states]
    return SweepResult(
        tuple(results),
        behind,
        interrupted=stop.made and any(state.open for state in states),
        halted=sweep.halted if any(state.open for state in states) else "",
        played=played,
        started=started,
        selections_computed=sweep.selections_computed,
    )


def _play(sweep: Sweep, observer: Observer, stop: StopRequest) -> Counter[str]:
    """Play all open units; on return no worker runs any more. Returns the model processes started."""
    observer.start(list(sweep.states.values()))
    started: Counter[str] = Counter()
    cells = sweep.open_cells
    try:
        if cells:
            settings = sweep.settings
            with connected(settings.cluster, room(cells, sweep.open_episodes)):
                crew = Crew(cells, rollout_workers(cells, sweep.open_episodes), lambda: stop.made)
                try:
                    sweep.run(crew, observer, stop)
                finally:
                    started = crew.started
                    crew.stop()
                if stop.made:
                    log.warning("stopping; finished episodes are kept")
    except KeyboardInterrupt:  # while Ray was starting
        stop.made = True
    finally:
        observer.stop()
    return started


def _result(state: CellState) -> CellResult:
    memory = state.learning.final if state.learning is not None else None
    return CellResult(state.cell, state.summary, state.error, tuple(state.ledger.rows.values()), memory)


def _ledger(cell: Cell) -> Ledger:
    absolute = {"output_dir": str(Path(cell.settings.output_dir).absolute())}
    about = {
        "cell": {
            "id": cell.id,
            "name": cell.name,
            "axes": cell.axes,
            "simulated": cell.simulated,
            "library_size": cell.library_size,
        },
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
