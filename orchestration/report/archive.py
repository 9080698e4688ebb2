"""Cells as their folders hold them: everything a report is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    config = read_config(directory)
    try:
        cell = config["cell"]
        tasks = tuple(ArchivedTask(task["id"], task["name"], task["type"]) for task in config["tasks"])
        rows = {row.task_id: row for row in read_rows(directory).rows}
        return ArchivedCell(
            directory=directory,
            id=cell["id"],
            name=cell["name"],
            axes=dict(cell["axes"]),
            identity=config["identity"],
            settings=config["settings"],
            simulated=bool(cell["simulated"]),
            tasks=tasks,
            rows={task.id: rows[task.id] for task in tasks if task.id in rows},
        )
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{directory / 'config.json'}: not a cell's configuration ({error!r})",
            "give the folder of a cell, or remove this one",
        ) from error


def load(paths: Sequence[Path]) -> Archive:
    """All cells below ``paths``; broken ones become ``problems``.

    Raises:
        DataError: there is no readable cell at all.
    """
    cells: list[ArchivedCell] = []
    problems: list[str] = []
    for folder in cell_folders(paths):
        try:
            cells.append(read_cell(folder))
        except DataError as error:
            problems.append(error.message)
    if not cells:
        raise DataError(
            "there is no cell to report on: " + ("; ".join(problems[:3]) or "no path was given"),
            "give an output folder of `skillarena run`, for example outputs, a cell's folder, or a file of its sweeps",
        )
    return Archive(tuple(sorted(cells, key=lambda cell: (cell.name, cell.id))), tuple(problems))
