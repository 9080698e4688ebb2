"""One episode out of many: found by its id or its task, and read without reading the others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from skillarena.conf.errors import ConfigError, DataError, nearest
from skillarena.conf.user_path import is_folder
from skillarena.orchestration.ledger import EpisodeRow, damaged_line, read_line, read_rows
from skillarena.orchestration.report.archive import cell_folders, read_cell, read_cell_config
from skillarena.orchestration.selection_store import selection_from_json
from skillarena.orchestration.trajectory import Trajectory
from skillarena.selectors.interface import Selection

_FEWEST_DIGITS = 4
_MOST_LISTED = 10


@dataclass(frozen=True)
class Episode:
    """One finished episode and the cell it belongs to."""

    cell_dir: Path
    row: EpisodeRow

    @property
    def cell(self) -> dict[str, Any]:
        """What the cell's configuration says of the cell: id, name, axes, simulated. Raises ``DataError``."""
        cell: dict[str, Any] = read_cell_config(self.cell_dir)["cell"]
        return cell

    def trajectory(self) -> Trajectory | None:
        """What happened; None when nothing was played. Raises ``DataError`` when its line is damaged."""
        if self.row.trajectory_offset < 0:
            return None
        path, offset = self.cell_dir / "trajectories.jsonl", self.row.trajectory_offset
        plain = self._line(path, offset)
        try:
            return Trajectory.from_dict(plain)
        except DataError as error:
            raise DataError(f"{path}, byte {offset}: {error.message}", error.fix) from error

    def selection(self) -> Selection | None:
        """The selection it was played with; None when it was not kept. Raises ``DataError`` for a damaged line."""
        if self.row.selection_offset < 0:
            return None
        path, offset = self.cell_dir / "selections.jsonl", self.row.selection_offset
        plain = self._line(path, offset)
        try:
            return selection_from_json(orjson.dumps(plain.get("selection")))
        except DataError as error:
            raise damaged_line(path, offset, error.message) from error

    def _line(self, path: Path, offset: int) -> dict[str, Any]:
        plain = read_line(path, offset)
        if plain.get("episode_id") != self.row.episode_id:
            raise damaged_line(path, offset, "not the line of this episode")
        return plain


def find_episode(wanted: str, paths: Sequence[Path]) -> Episode:
    """The episode that a word on the command line stands for.

    Args:
        wanted: the beginning of an episode's id, at least 4 digits, or ``FOLDER:TASK``, where TASK is a task's name or
            its number in the list of the folder's episodes.
        paths: where to look for an id (see ``cell_folders``).

    Raises:
        ConfigError: nothing, or more than one episode, is meant.
        DataError: a cell's folder is damaged.
    """
    for colon in (match.start() for match in re.finditer(":", wanted)):
        if is_folder(Path(wanted[:colon])):
            return _by_task(Path(wanted[:colon]), wanted[colon + 1 :])
    if re.fullmatch(r"[0-9a-fA-F]+", wanted) and len(wanted) >= _FEWEST_DIGITS:
        return _by_id(wanted.lower(), paths)
    raise ConfigError(
        f"{wanted}: neither a folder nor the beginning of an episode's id",
        f"give at least {_FEWEST_DIGITS} of an id's hex digits, CELL_FOLDER:TASK, or a folder to see what is in it",
    )


def _by_id(beginning: str, paths: Sequence[Path]) -> Episode:
    folders = cell_folders(paths)
    found = [
        Episode(folder, row)
        for folder in folders
        for row in read_rows(folder, beginning).rows
        if row.episode_id.startswith(beginning)
    ]
    if len(found) > 1:
        raise _ambiguous(beginning, found)
    if not found:
        places = ", ".join(map(str, paths))
        cells = sum((folder / "config.json").exists() for folder in folders)
        raise ConfigError(
            f"no episode's id begins with {beginning} ({cells} cells in {places})",
            f"`skillarena show {paths[0] if paths else 'FOLDER'}` shows what is there; name other folders after the id",
        )
    return found[0]


def _by_task(folder: Path, wanted: str) -> Episode:
    found, names = [], []
    for cell_dir in cell_folders([folder]):
        cell = read_cell(cell_dir)
        for number, task in enumerate(cell.tasks, start=1):
            names.append(task.name)
            if wanted in (task.name, str(number)):
                if task.id not in cell.rows:
                    raise ConfigError(
                        f"task {task.name} has no finished episode in {cell_dir}", "run the cell's command again"
                    )
                found.append(Episode(cell_dir, cell.rows[task.id]))
    if len(found) > 1:
        raise _ambiguous(wanted, found)
    if not found:
        raise ConfigError(
            f"{folder}: no task {wanted!r}{nearest(wanted, names)}",
            f"`skillarena show {folder}` lists names and numbers",
        )
    return found[0]


def _ambiguous(wanted: str, found: Sequence[Episode]) -> ConfigError:
    listed = [f"{episode.row.episode_id}  {episode.row.task_name}  {episode.cell_dir}" for episode in found]
    more = [f"and {len(found) - _MOST_LISTED} more"] if len(found) > _MOST_LISTED else []
    return ConfigError(
        f"{wanted} stands for {len(found)} episodes:\n  " + "\n  ".join([*listed[:_MOST_LISTED], *more]),
        "give more of the id, or name the folder of one cell after it",
    )
