"""`skillarena show`: episodes of a folder, and one of them with every turn."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from skillarena.conf.errors import ConfigError, nearest
from skillarena.orchestration.console import console_for_results, plain, plain_json
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.report.archive import Archive, ArchivedCell, load, reachable, read_cell_config
from skillarena.orchestration.report.case_study import check_figure_file, write_case_study
from skillarena.orchestration.report.episode import Episode, find_episode
from skillarena.orchestration.selection_store import selection_to_json
from skillarena.orchestration.settings import label

_MOST_PROBLEMS = 5


def show(
    wanted: str,
    paths: Sequence[Path],
    *,
    outcome: str | None,
    task_type: str | None,
    as_json: bool,
    figure: Path | None,
) -> int:
    """Print an episode, or what a folder holds; returns the exit code.

    Args:
        wanted: an episode (see ``find_episode``), or a folder.
        paths: where to look for an episode's id.
        outcome: of a cell's list, only episodes that ended so.
        task_type: of a cell's list, only episodes of this type of task.
        as_json: print JSON instead.
        figure: draw the episode's selection into this SVG, PNG or HTML file as well.

    Raises:
        SkillArenaError: typed by what is wrong.
    """
    if reachable(Path(wanted)):
        if figure:
            raise ConfigError("--figure draws the selection of one episode, not of a folder", "name an episode")
        archive = load([Path(wanted), *paths])
        _list(archive, outcome, task_type, as_json)
        return 0
    if outcome or task_type:
        raise ConfigError(
            "--outcome and --task-type choose from a cell's list", "name a cell's folder, or leave them out"
        )
    if figure:
        check_figure_file(figure)
    episode = find_episode(wanted, paths or [Path("outputs")])
    if figure:
        _draw(episode, figure)
    if as_json:
        _print_json(_whole(episode))
        return 0
    from skillarena.orchestration.report.episode_text import episode_blocks

    console = console_for_results()
    for block in episode_blocks(episode.cell, episode.row, episode.trajectory(), episode.selection()):
        console.print(block)
    return 0


def _draw(episode: Episode, figure: Path) -> None:
    selection = episode.selection()
    if episode.row.error:
        raise ConfigError(
            f"episode {episode.row.episode_id[:12]} was lost and has no selection: {episode.row.error}",
            "run the cell's command again",
        )
    if selection is None:
        raise ConfigError(
            f"the selection of episode {episode.row.episode_id[:12]} was not kept, so there is nothing to draw",
            "run the cell with run.keep_selections=true before its episodes are played (for one that is finished, into"
            " another output_dir), or draw a new selection with `skillarena select TASK --figure FILE`",
        )
    trajectory = episode.trajectory()
    goal = trajectory.goal if trajectory else episode.row.task_name
    write_case_study(selection, goal, label(read_cell_config(episode.cell_dir)["settings"]["selector"]), figure)


def _whole(episode: Episode) -> dict[str, Any]:
    trajectory, selection = episode.trajectory(), episode.selection()
    return {
        "cell": episode.cell,
        "episode": asdict(episode.row),
        "trajectory": trajectory.to_dict() if trajectory else None,
        "selection": orjson.Fragment(selection_to_json(selection)) if selection else None,
    }


def _list(archive: Archive, outcome: str | None, task_type: str | None, as_json: bool) -> None:
    from skillarena.orchestration.report.episode_text import cells_table, episodes_table

    for problem in archive.problems[:_MOST_PROBLEMS]:
        print(f"left out: {plain(problem)}", file=sys.stderr)
    if len(archive.problems) > _MOST_PROBLEMS:
        print(f"left out: {len(archive.problems) - _MOST_PROBLEMS} more", file=sys.stderr)
    console = console_for_results()
    if len(archive.cells) == 1:
        cell = archive.cells[0]
        rows = _chosen(cell, outcome, task_type)
        if as_json:
            _print_json([{"number": number} | asdict(row) for number, row in rows.items()])
        else:
            console.print(episodes_table(cell, rows))
        return
    if outcome or task_type:
        raise ConfigError(
            f"--outcome and --task-type choose from one cell's list, not from {len(archive.cells)} cells", "name one"
        )
    if as_json:
        _print_json([{**_about(cell), "tasks": len(cell.tasks), "episodes": len(cell.rows)} for cell in archive.cells])
    else:
        console.print(cells_table(archive.cells))


def _about(cell: ArchivedCell) -> dict[str, Any]:
    return {
        "id": cell.id,
        "name": cell.name,
        "axes": cell.axes,
        "simulated": cell.simulated,
        "folder": str(cell.directory),
    }


def _chosen(cell: ArchivedCell, outcome: str | None, task_type: str | None) -> dict[int, EpisodeRow]:
    """Rows by the number of their task, those of an outcome and a type only."""
    rows = {number: cell.rows[task.id] for number, task in enumerate(cell.tasks, 1) if task.id in cell.rows}
    _check("--outcome", outcome, {row.outcome for row in rows.values()})
    _check("--task-type", task_type, {row.task_type for row in rows.values()})
    return {
        number: row
        for number, row in rows.items()
        if outcome in (None, row.outcome) and task_type in (None, row.task_type)
    }


def _check(option: str, value: str | None, present: set[str]) -> None:
    known = sorted(present)
    if value is not None and value not in present:
        raise ConfigError(
            f"{option} {value}: no episode has it{nearest(value, known)}", f"there are {', '.join(known)}"
        )


def _print_json(content: Any) -> None:
    sys.stdout.write(plain_json(orjson.dumps(content).decode()) + "\n")
