"""One command's worth of cells: preflight, run, report."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from skillarena.orchestration.cells import Preflight
from skillarena.orchestration.console import (
    EXIT_BUDGET,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
    EXIT_MISTAKE,
    EXIT_OK,
    console_for_results,
    logging_to,
    plain,
)
from skillarena.orchestration.driver import SweepResult, run_sweep
from skillarena.orchestration.preflight import check_shared, preflight_all
from skillarena.orchestration.progress import Progress
from skillarena.orchestration.settings import Settings
from skillarena.orchestration.stop_request import StopRequest
from skillarena.orchestration.sweep_file import write_sweep
from skillarena.orchestration.tables import notes_on, results_tables
from skillarena.orchestration.tracking_store import redacted, tracking_uri


def run_cells(all_settings: Sequence[Settings]) -> int:
    """Preflight all cells, play them in one sweep and print the results.

    Args:
        all_settings: one for each cell; ``run``, ``cluster``, ``tracking`` and ``output_dir`` must agree.

    Returns:
        The exit code (see ``console.py``).

    Raises:
        SkillArenaError: nothing can run.
    """
    check_shared(all_settings)
    settings = all_settings[0]
    console = Console(stderr=True, highlight=False)
    with logging_to(console):
        cells, broken = preflight_all(all_settings, Preflight())
    sweep_name = sweep_file = None
    if len(all_settings) > 1:
        sweep_name = hashlib.sha256("\n".join(sorted(cell.id for cell in cells)).encode()).hexdigest()[:12]
        sweep_file = write_sweep(Path(settings.output_dir), sweep_name, cells)
    stop = StopRequest()
    with logging_to(console), stop.listening():
        result = run_sweep(cells, Progress(console, settings.run.progress_every_s), stop, sweep_name)
    return _report(result, settings, broken, sweep_file)


def _report(result: SweepResult, settings: Settings, broken: bool, sweep_file: Path | None) -> int:
    """Print the table and where everything is; returns the exit code."""
    out = console_for_results()
    for table in results_tables(result.cells):
        out.print(table)
    for note in notes_on(result.cells):
        out.print(note, markup=False, soft_wrap=True)
    for cell in result.cells:
        out.print(f"{cell.cell.name}: {os.path.relpath(cell.cell.directory)}", markup=False, soft_wrap=True)
    for cell in result.cells:
        if cell.memory is not None:
            out.print(f"learned: {os.path.relpath(cell.memory)} ({cell.cell.name})", markup=False, soft_wrap=True)
    if result.played:
        models = "".join(f", {name} started {times}x" for name, times in sorted(result.started.items()))
        reused = (
            ", the others reused" if any(row.selection_reused for cell in result.cells for row in cell.rows) else ""
        )
        print(f"selections: {result.selections_computed} computed{reused}{models}", file=sys.stderr)
    if settings.tracking.enabled:
        uri = redacted(tracking_uri(settings.tracking, settings.output_dir))
        out.print(f"MLflow: mlflow ui --backend-store-uri {uri}", markup=False, soft_wrap=True)
    if result.tracking_problem:
        behind = os.path.relpath(sweep_file or result.cells[0].cell.directory)
        print(
            f"warning: MLflow is behind ({result.tracking_problem}); later: skillarena sync {behind}", file=sys.stderr
        )
    for cell in result.cells:
        lost = [row.error for row in cell.rows if row.error]
        if lost:
            count = "1 episode has" if len(lost) == 1 else f"{len(lost)} episodes have"
            reason = lost[0].strip().splitlines()[0]
            print(f"{cell.cell.name}: {count} no result; the first: {plain(reason)}", file=sys.stderr)
            print(f"  all reasons: {cell.cell.directory / 'episodes.jsonl'} (error)", file=sys.stderr)
    for message, names in _by_error(result).items():
        print(f"error: {plain(message)}", file=sys.stderr)
        if len(result.cells) > 1:
            print(f"  in: {', '.join(names)}", file=sys.stderr)
    if result.halted:
        print(f"stopped: {plain(result.halted)}; the same command continues with a new budget", file=sys.stderr)
        return EXIT_BUDGET
    if result.interrupted:
        print("stopped; the same command continues where this one ended", file=sys.stderr)
        return EXIT_INTERRUPTED
    if all(cell.error for cell in result.cells):
        return EXIT_MISTAKE
    complete = all(cell.summary.complete for cell in result.cells)
    return EXIT_OK if complete and not broken else EXIT_INCOMPLETE


def _by_error(result: SweepResult) -> dict[str, list[str]]:
    """Names of the cells that cannot go on, by the reason."""
    found: dict[str, list[str]] = {}
    for cell in result.cells:
        if cell.error:
            found.setdefault(cell.error, []).append(cell.cell.name)
    return found
