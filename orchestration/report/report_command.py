"""`skillarena report`: from folders of cells to files, and to what the terminal shows of them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.console import EXIT_INCOMPLETE, EXIT_OK, console_for_results, plain, plain_json
from skillarena.orchestration.report.archive import load_played
from skillarena.orchestration.report.layout import notes_of
from skillarena.orchestration.report.lines import Line
from skillarena.orchestration.report.report import Report, build_report
from skillarena.orchestration.report.report_files import write_report
from skillarena.orchestration.report.report_json import report_json
from skillarena.orchestration.report.terminal import terminal_tables

_LISTED = 10  # lines of what is missing, at most
_PATIENCE = 2.0  # seconds after which the command says what it is doing


def report(
    paths: Sequence[Path],
    *,
    out: Path | None,
    baseline: str | None,
    as_json: bool,
    mlflow: Sequence[str] = (),
    uri: str | None = None,
) -> int:
    """Build the report of all cells below ``paths`` and write it.

    Args:
        paths: output folders, cells' folders or sweep files.
        out: folder to write to; None for ``report`` in the first path's output folder, or here when there is no path.
        baseline: the method that all others are compared with; None for the usual one.
        as_json: print the report as JSON and nothing else; files are written only where ``out`` names a folder.
        mlflow: names of sweeps, experiments or cells in MLflow, whose cells are downloaded and added.
        uri: of the MLflow store.

    Returns:
        The exit code: 1 when cells or episodes are missing.

    Raises:
        SkillArenaError: there is no cell, or no such baseline, or the folder cannot be written, or ``uri`` is of no
            use.
    """
    if not paths and not mlflow:
        raise ConfigError(
            "nothing to report on", "name output folders, cells' folders or sweep files, or a sweep with --mlflow"
        )
    if uri is not None and not mlflow:
        raise ConfigError(
            "--uri is the address of MLflow, and nothing is read from there", "name a sweep with --mlflow"
        )
    say = _Progress()
    with TemporaryDirectory(prefix="skillarena-cells-") as fetched:
        archive = load_played([*paths, *_fetched(mlflow, uri, Path(fetched))])
        say(f"tables and comparisons of {len(archive.cells)} cells")
        found = build_report(archive, baseline)
        folder = out or (default_folder(paths[0]) if paths else Path("report"))
        files = [] if as_json and out is None else write_report(found, archive, folder, say)
    if as_json:
        sys.stdout.write(plain_json(report_json(found).decode()))
    else:
        _print(found, files, folder)
    complete = found.sweep.episodes == found.sweep.tasks
    return EXIT_OK if complete and not archive.problems else EXIT_INCOMPLETE


def _fetched(names: Sequence[str], uri: str | None, folder: Path) -> list[Path]:
    if not names:
        return []
    from skillarena.orchestration.report.mlflow_archive import fetch

    return [path for number, name in enumerate(names) for path in fetch(name, uri, folder / str(number))]


def default_folder(path: Path) -> Path:
    """Where the report of a path goes: ``report`` beside its ``cells`` or ``sweeps``."""
    for folder in (path, path.parent):
        if folder.absolute().name in ("cells", "sweeps"):
            return folder.parent / "report"
    return path / "report"


class _Progress:
    """Says on standard error what takes long."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def __call__(self, what: str) -> None:
        if time.monotonic() - self._start > _PATIENCE:
            print(f"report: {plain(what)}", file=sys.stderr)


def _print(report: Report, files: Sequence[Path], folder: Path) -> None:
    """Table 1, what is missing, and where the rest is."""
    console = console_for_results()
    table = next((table for table in report.tables if table.rows), None)
    if table is not None:
        _say(console, [table.heading])
        for part in terminal_tables(table, console.width):
            console.print(part)
        _say(console, notes_of(table))
    _say(console, _missing(report))
    _say(console, [f"problem: {problem}" for problem in report.problems])
    kinds = {path.suffix.removeprefix(".") for path in files}
    _say(
        console,
        [f"{os.path.relpath(files[0])}: the whole report ({', '.join(sorted(kinds))} in {os.path.relpath(folder)})"],
    )


def _say(console: Console, sentences: Sequence[str]) -> None:
    for sentence in sentences:
        console.print(plain(sentence), markup=False, soft_wrap=True)


def _missing(report: Report) -> list[str]:
    """Lines without a score for every task, the first few by name."""
    gaps = [line for line in report.lines if not line.complete and not line.sizes]
    sentences = [f"incomplete: {_gap(line)}" for line in gaps[:_LISTED]]
    if len(gaps) > _LISTED:
        sentences.append(f"incomplete: {len(gaps) - _LISTED} more; tables/cells.csv has all")
    return sentences


def _gap(line: Line) -> str:
    setting = line.setting
    where = f"{setting.benchmark}/{setting.split} {line.method} {setting.backbone}"
    return f"{where}: {int(line.scored.sum())} of {len(line.tasks)} tasks scored"
