"""Cells as their folders hold them: everything a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from skillarena.conf.errors import DataError
from skillarena.orchestration.ledger import EpisodeRow, read_config, read_rows
from skillarena.orchestration.sweep_file import read_sweep


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

    @property
    def resamples(self) -> int:
        """Bootstrap resamples the run was configured with."""
        return int(self.settings["run"]["bootstrap_resamples"])


@dataclass(frozen=True)
class Archive:
    """What a report is about."""

    cells: tuple[ArchivedCell, ...]
    problems: tuple[str, ...] = ()
    """What could not be read and is therefore not in ``cells``, one sentence each."""


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


def _folders(path: Path) -> list[Path]:
    if path.is_file():
        return read_sweep(path)
    if (path / "config.json").exists():
        return [path]
    below = sorted(config.parent for config in (*path.glob("*/config.json"), *path.glob("cells/*/config.json")))
    return below or [path]


def read_cell(directory: Path) -> ArchivedCell:
    """One cell. Raises ``DataError`` when its configuration is missing or broken."""
    plain = read_config(directory)
    try:
        config = _Config.model_validate(plain)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{directory / 'config.json'}: not a cell's configuration ({where}: {first['msg']})",
            "give the folder of a cell, or remove this one",
        ) from error
    rows = {row.task_id: row for row in read_rows(directory).rows}
    return ArchivedCell(
        directory=directory,
        id=config.cell.id,
        name=config.cell.name,
        axes=plain["cell"]["axes"],
        identity=plain["identity"],
        settings=plain["settings"],
        simulated=config.cell.simulated,
        tasks=config.tasks,
        rows={task.id: rows[task.id] for task in config.tasks if task.id in rows},
        library_size=config.cell.library_size,
    )


class _Axes(BaseModel):
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
    bootstrap_resamples: int


class _Settings(_Parts):
    run: _Run


class _Config(BaseModel):
    """What readers of ``config.json`` rely on; it holds more."""

    cell: _Cell
    identity: _Parts
    settings: _Settings
    tasks: tuple[ArchivedTask, ...]


def load(paths: Sequence[Path]) -> Archive:
    """All cells below ``paths``; broken ones, and copies of others, become ``problems``.

    Raises:
        DataError: there is no readable cell at all.
    """
    cells: dict[str, ArchivedCell] = {}
    problems: list[str] = []
    for folder in dict.fromkeys(folder.resolve() for folder in cell_folders(paths)):
        try:
            cell = read_cell(folder)
        except DataError as error:
            problems.append(error.message.replace(str(folder), folder.name))
            continue
        other = cells.setdefault(cell.id, cell)
        if other is not cell:
            kept, left_out = (other, cell) if len(other.rows) >= len(cell.rows) else (cell, other)
            cells[cell.id] = kept
            names = (left_out.directory.name, kept.directory.name)
            counts = f"{len(left_out.rows)} and {len(kept.rows)} episodes"
            problems.append(f"{names[0]} and {names[1]} are the same cell, with {counts}; the second is shown")
    if not cells:
        raise DataError(
            "there is no cell to report on: " + ("; ".join(problems[:3]) or "no path was given"),
            "give an output folder of `skillarena run`, for example outputs, a cell's folder, or a file of its sweeps",
        )
    return Archive(tuple(sorted(cells.values(), key=lambda cell: (cell.name, cell.id))), tuple(problems))
