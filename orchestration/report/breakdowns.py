"""Results by type of task and by number of candidates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from skillarena.orchestration.report.grid import Grid, ranked, reading_order
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow

_Place = tuple[str, str]

_BY_K = {
    "reward": ("reward", "higher", 2, "points"),
    "success": ("success %", "higher", 1, "%"),
    "env_steps": ("steps", "lower", 2, "steps"),
    "total_tokens": ("tokens", "lower", 0, "tokens"),
    "skills_selected": ("skills", "", 3, "skills"),
}


def by_task_type(grid: Grid, lines: Sequence[Line]) -> ReportTable:
    """Rows of backbone and method, columns of benchmark, split and type of task.

    Reward everywhere, and success where it says something else.
    """
    places = sorted({(line.setting.benchmark, line.setting.split) for line in lines})
    types = {place: _types(grid, place) for place in places}
    measures = {place: _measures(place, lines) for place in places}
    columns = [
        _type_column(place, kind, measure, several=len(measures[place]) > 1)
        for place in places
        for measure in measures[place]
        for kind in types[place]
    ]
    found = {(line.setting, line.method): line for line in lines}
    methods = {line.method: line.selector for line in sorted(lines, key=reading_order)}
    rows = []
    for backbone in sorted({line.setting.backbone for line in lines}):
        for method in methods:
            entries = [
                Entry(None) if line is None else grid.part(line, measure, kind)
                for place in places
                for line in [found.get((Setting(backbone, *place), method))]
                for measure in measures[place]
                for kind in types[place]
            ]
            rows.append(TableRow((backbone, method), tuple(entries)))
    whole = ranked(rows, columns, [methods[row.labels[1]] for row in rows])
    notes = (
        "Mean reward by type of task, 0 to 100 points; success in per cent of tasks where reward has steps in between.",
        "Types have few tasks each: a difference here is a hint, not a result.",
    )
    return ReportTable("by_task_type", "Results by type of task", ("backbone", "method"), tuple(columns), whole, notes)


def _types(grid: Grid, place: _Place) -> list[str]:
    return sorted(
        {
            kind
            for setting, tasks in grid.tasks.items()
            if (setting.benchmark, setting.split) == place
            for kind in tasks.values()
        }
    )


def _measures(place: _Place, lines: Sequence[Line]) -> tuple[str, ...]:
    """Success too, unless every reward is nothing or everything."""
    here = [line for line in lines if (line.setting.benchmark, line.setting.split) == place]
    same = all(np.array_equal(line.values["reward"], 100.0 * line.values["success"], equal_nan=True) for line in here)
    return ("reward",) if same else ("reward", "success")


def _type_column(place: _Place, kind: str, measure: str, *, several: bool) -> Column:
    split = f"{place[1]}, {measure}" if several else place[1]
    unit = "points" if measure == "reward" else "%"
    return Column(f"{place[0]}.{place[1]}.{kind}.{measure}", (place[0], split, kind), "higher", 1, unit)


def k_curve(grid: Grid, lines: Sequence[Line]) -> ReportTable:
    """Rows of a method with several K in one setting; no rows when there is none."""
    curves: dict[tuple[Setting, str], list[Line]] = {}
    for line in sorted(lines, key=reading_order):
        if _k(line) is not None:
            curves.setdefault((line.setting, _without_k(line.method)), []).append(line)
    columns = tuple(
        Column(measure, (heading,), better, digits, unit) for measure, (heading, better, digits, unit) in _BY_K.items()
    )
    rows = tuple(
        TableRow(
            (setting.backbone, f"{setting.benchmark}/{setting.split}", method, str(_k(line))),
            tuple(grid.entry(line, measure) for measure in _BY_K),
        )
        for (setting, method), points in sorted(curves.items(), key=lambda item: item[0])
        if len({_k(line) for line in points}) > 1
        for line in sorted(points, key=lambda line: _k(line) or 0)
    )
    notes = ("K: candidates from coarse recall among which a method chooses.",) if rows else ()
    return ReportTable("k_curve", "Results by K", ("backbone", "setting", "method", "K"), columns, rows, notes)


def _k(line: Line) -> int | None:
    """None for a method without candidates, and for one that calls something else ``k``."""
    k = line.cells[0].identity["selector"].get("k")
    return k if isinstance(k, int) else None


def _without_k(method: str) -> str:
    return re.sub(r" k=\d+", "", method, count=1)
