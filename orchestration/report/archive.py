"""Cells as their folders hold them: everything a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from skillarena.conf.errors import DataError
from skillarena.envs.interface import EndReason
from skillarena.orchestration.ledger import EpisodeRow, read_config, read_rows
from skillarena.orchestration.sweep_file import read_sweep

_MARKS = ("config.json", "episodes.jsonl")
"""A folder with either is meant to be a cell; one without its configuration is refused by whoever reads it."""


@dataclass(frozen=True, slots=True)
class ArchivedTask:
    """A task as the cell's configuration names it."""

    id: str
    name: str
    type: str


@dataclass(frozen=True)
class ArchivedCell:
    """One cell's configuration and finished episodes."""

    directory: Path
    id: str
    name: str
    axes: dict[str, str]
    """What tables group by (``Cell.axes``)."""
    identity: dict[str, Any] = field(repr=False)
    """Everything its results can depend on (``Settings.identity``)."""
    settings: dict[str, Any] = field(repr=False)
    """The resolved configuration."""
    simulated: bool
    """No language model is behind the backbone, or behind the selector that asks one."""
    tasks: tuple[ArchivedTask, ...] = field(repr=False)
    rows: dict[str, EpisodeRow] = field(repr=False)
    """Last row by task id, in task order; tasks without a row are absent."""
    library_size: int | None = None
    """Skills in the library; None where the folder does not say."""
    damaged_lines: int = 0
    """Lines of its ledger that are no rows; their episodes count as unfinished."""
    foreign_rows: int = 0
    """Rows of tasks that its configuration does not name; they count nowhere."""

    @property
    def scored(self) -> int:
        """Finished episodes, infrastructure errors left out."""
        return sum(row.outcome != EndReason.INFRA_ERROR for row in self.rows.values())

    @property
    def resamples(self) -> int:
        """Bootstrap resamples the run was configured with."""
        return int(self.settings["run"]["bootstrap_resamples"])


@dataclass(frozen=True)
class Archive:
    """What a report is about."""

    cells: tuple[ArchivedCell, ...]
    problems: tuple[str, ...] = ()
    """What is not in ``cells``, as it could not be read or should not count, one sentence each."""


def cell_folders(paths: Sequence[Path]) -> list[Path]:
    """Cell folders that ``paths`` stand for.

    Args:
        paths: cells' folders, folders of cells, output folders (with ``cells`` in them) or sweep files. A path that
            is none of these stays, to be refused by whoever reads it.
    """
    found: dict[Path, None] = {}
    for path in paths:
        found |= dict.fromkeys(_folders(path))
    return list(found)


def reachable(path: Path) -> bool:
    """Something is there; false also where a word is no path at all, for example as it is too long."""
    try:
        return path.exists()
    except OSError:
        return False


def _folders(path: Path) -> list[Path]:
    if not reachable(path):
        return [path]
    if path.is_file():
        return read_sweep(path)
    if (path / "config.json").exists():
        return [path]
    files = (file for place in ("*", "cells/*") for name in _MARKS for file in path.glob(f"{place}/{name}"))
    return sorted({file.parent for file in files}) or [path]


def read_cell(directory: Path) -> ArchivedCell:
    """One cell. Raises ``DataError`` when its configuration is missing or broken, or its ledger cannot be read."""
    plain = read_config(directory)
    config = _checked(plain, directory)
    content = read_rows(directory)
    rows = {row.task_id: row for row in content.rows}
    known = {task.id: rows[task.id] for task in config.tasks if task.id in rows}
    return ArchivedCell(
        directory=directory,
        id=config.cell.id,
        name=config.cell.name,
        axes=config.cell.axes.model_dump(),
        identity=plain["identity"],
        settings=plain["settings"],
        simulated=config.cell.simulated,
        tasks=config.tasks,
        rows=known,
        library_size=config.cell.library_size,
        damaged_lines=content.damaged_lines,
        foreign_rows=len(rows) - len(known),
    )


def read_cell_config(directory: Path) -> dict[str, Any]:
    """``config.json`` of a cell, with everything in it that readers rely on. Raises ``DataError``."""
    plain = read_config(directory)
    _checked(plain, directory)
    return plain


def _checked(plain: dict[str, Any], directory: Path) -> _Config:
    try:
        return _Config.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{directory / 'config.json'}: not a cell's configuration ({where}: {first['msg']})",
            "give the folder of a cell, or remove this one",
        ) from error


class _Axes(BaseModel, extra="allow"):
    __pydantic_extra__: dict[str, str]
    benchmark: str
    split: str
    selector: str
    backbone: str


class _Cell(BaseModel):
    id: str
    name: str
    axes: _Axes
    simulated: bool
    library_size: int | None = None


class _Parts(BaseModel):
    benchmark: dict[str, Any]
    selector: dict[str, Any]
    backbone: dict[str, Any]


class _Run(BaseModel):
    bootstrap_resamples: int = Field(ge=100, le=1_000_000)


class _Settings(_Parts):
    run: _Run
    seed: int = 0


class _Config(BaseModel):
    """What readers of ``config.json`` rely on; it holds more."""

    cell: _Cell
    identity: _Parts
    settings: _Settings
    tasks: tuple[ArchivedTask, ...] = Field(min_length=1)


def load(paths: Sequence[Path]) -> Archive:
    """All cells below ``paths``; broken ones, and copies of others, become ``problems``.

    Raises:
        DataError: there is no readable cell at all.
    """
    copies: dict[str, list[ArchivedCell]] = {}
    problems: list[str] = []
    for folder in dict.fromkeys(folder.resolve() for folder in cell_folders(paths)):
        try:
            cell = read_cell(folder)
        except DataError as error:
            problems.append(error.message.replace(str(folder), folder.name))
        else:
            copies.setdefault(cell.id, []).append(cell)
    if not copies:
        example = " or ".join(_outputs_below(paths)[:3]) or "for example outputs"
        raise DataError(
            "there is no cell to report on: " + ("; ".join(problems[:3]) or "no path was given"),
            f"give an output folder of `skillarena run` ({example}), a cell's folder, or a file of its sweeps",
        )
    cells = [max(same, key=_fullness) for same in copies.values()]
    for shown in cells:
        problems += _left_out(shown, copies[shown.id])
        problems += _damage(shown)
    return Archive(tuple(sorted(cells, key=lambda cell: (cell.name, cell.id))), tuple(problems))


def load_played(paths: Sequence[Path]) -> Archive:
    """What ``load`` finds, without the cells that have no episode; how many these are is one of ``problems``.

    A cell that never began is no method that others are compared with. Where none began, all stay.

    Raises:
        DataError: there is no readable cell at all.
    """
    archive = load(paths)
    played = tuple(cell for cell in archive.cells if cell.rows)
    empty = len(archive.cells) - len(played)
    if not played or not empty:
        return archive
    verbs = "has no episode and is" if empty == 1 else "have no episode and are"
    said = f"{empty} of {len(archive.cells)} cells {verbs} left out of tables and comparisons"
    return replace(archive, cells=played, problems=(*archive.problems, said))


def _outputs_below(paths: Sequence[Path]) -> list[str]:
    found: list[str] = []
    for path in paths:
        with suppress(OSError):  # a word that can be no path
            found += [str(cells.parent) for cells in sorted(path.glob("*/cells"))]
    return found


def _fullness(cell: ArchivedCell) -> tuple[int, int, float, str]:
    """What decides between copies of a cell, in whatever order they are found."""
    latest = max((row.finished_at for row in cell.rows.values()), default=0.0)
    return cell.scored, len(cell.rows), latest, str(cell.directory)


def _left_out(shown: ArchivedCell, copies: Sequence[ArchivedCell]) -> list[str]:
    return [
        f"{copy.directory.name} and {shown.directory.name} are the same cell, with {copy.scored} and {shown.scored}"
        " episodes; the second is shown"
        for copy in sorted(copies, key=_fullness)
        if copy is not shown
    ]


def _damage(cell: ArchivedCell) -> list[str]:
    """What its ledger holds and no table counts."""
    found = []
    if cell.damaged_lines:
        found.append(
            f"{cell.directory.name}/episodes.jsonl: {cell.damaged_lines} lines are no rows; their episodes count as"
            " unfinished"
        )
    if cell.foreign_rows:
        found.append(
            f"{cell.directory.name}/episodes.jsonl: {cell.foreign_rows} rows are of tasks that the cell does not have;"
            " they count nowhere"
        )
    return found
