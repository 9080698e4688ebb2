"""From lines to entries: coverage, published values and ranks, the same in every table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skillarena.orchestration.report.archive import ArchivedCell
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.report.published import (
    PublishedNumber,
    backbone_models,
    differences,
    method_differences,
    published,
)
from skillarena.orchestration.report.table_model import Column, Entry, TableRow

ABLATIONS = ("without_parsing", "without_edges", "without_split")
"""Of ``skillreranker``."""
UPPER_BOUND = "oracle"
"""Chooses by labels of the task's type, which no method has: shown, never ranked."""

_ORDER = (
    "none",
    "random",
    "vector",
    "vanilla",
    "llm_selector",
    "skillrouter",
    "skillrouter_encoder",
    "graph_of_skills",
    "graph_of_skills_llm",
    "graph_of_skills_released",
    "skilldag",
    "skilldag_frozen",
    "spem",
    "spem_frozen",
    "skillreranker",
    *ABLATIONS,
)
_MACHINE = "Seconds depend on the machines."


def scale(measure: str) -> float:
    """What tables multiply a measure with: success is shown in per cent."""
    return 100.0 if measure == "success" else 1.0


def without_halves(lines: Sequence[Line]) -> list[Line]:
    """The lines without those of one size that the mean of both sizes stands for."""
    halves = {(line.setting, cell.id) for line in lines if line.sizes for cell in line.cells}
    return [line for line in lines if line.sizes or any((line.setting, cell.id) not in halves for cell in line.cells)]


def reading_order(line: Line) -> tuple[int, list[str]]:
    """Sorts methods: simple ones, baselines, SkillReranker and its ablations, a user's own, the upper bound.

    Numbers in labels count as such, so ``k=5`` comes before ``k=10``.
    """
    last = len(_ORDER) + (line.selector == UPPER_BOUND)
    words = [word.zfill(9) if word.isdigit() else word for word in re.split(r"(\d+)", line.method)]
    return (_ORDER.index(line.selector) if line.selector in _ORDER else last, words)


class Grid:
    """Entries for lines, and for lines that ought to be there.

    Args:
        lines: all lines of the report; what a setting's tasks are follows from them.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        tasks: dict[Setting, dict[str, str]] = {}
        cells: dict[str, list[ArchivedCell]] = {}
        for line in lines:
            tasks.setdefault(line.setting, {}).update({task.id: task.type for task in line.tasks})
            cells.setdefault(line.setting.backbone, []).extend(line.cells)
        self.tasks = tasks
        """Type by id of every task that any line of a setting has."""
        self._cells = cells

    def entry(self, line: Line, measure: str) -> Entry:
        """The mean of a measure over a line's tasks."""
        estimate, factor = line.estimates.get(measure), scale(measure)
        bare = Entry(
            mean=None if estimate is None else factor * estimate.mean,
            low=None if estimate is None or estimate.low is None else factor * estimate.low,
            high=None if estimate is None or estimate.high is None else factor * estimate.high,
            scored=int(line.scored.sum()),
            expected=len(self.tasks[line.setting]),
            simulated=line.simulated,
        )
        number = None if line.simulated else _published(line.setting, line.cells, line.selector, measure)
        if number is None:
            return bare
        machine = (_MACHINE,) if measure.endswith("_seconds") else ()
        return _beside(bare, number, (*differences(line, number), *machine))

    def missing(self, setting: Setting, elsewhere: Line, measure: str) -> Entry:
        """In place of a line that the archive does not have; the method's line in another setting says what it is."""
        number = _published(setting, self._cells[setting.backbone], elsewhere.selector, measure)
        if number is None or method_differences(elsewhere, number):
            return Entry(None)
        return _beside(Entry(None), number, ())

    def part(self, line: Line, measure: str, task_type: str) -> Entry:
        """The mean over a line's tasks of one type; without interval, as they are few."""
        chosen = np.array([task.type == task_type for task in line.tasks], dtype=bool)
        values: NDArray[np.float64] = line.values[measure][chosen & line.scored]
        return Entry(
            mean=scale(measure) * float(values.mean()) if len(values) else None,
            scored=len(values),
            expected=sum(other == task_type for other in self.tasks[line.setting].values()),
            simulated=line.simulated,
        )


def _published(setting: Setting, cells: Sequence[ArchivedCell], selector: str, measure: str) -> PublishedNumber | None:
    """The first paper's number, where the cells' backbone has one model."""
    models = backbone_models(cells)
    return next(iter(published(setting, models, selector, measure)), None) if len(models) < 2 else None


def _beside(entry: Entry, number: PublishedNumber, differs: tuple[str, ...]) -> Entry:
    return replace(entry, published=number.value, differs=differs, source=number.source, uncertain=number.uncertain)


def ranked(rows: Sequence[TableRow], columns: Sequence[Column], selectors: Sequence[str]) -> tuple[TableRow, ...]:
    """The rows with the best and the second of each column marked, within rows of one first label.

    Only entries in which every task of the setting is scored are ranked: one that lacks tasks may owe its value to
    what it lacks. The upper bound is not ranked, nor is a simulated entry beside a real one. What is printed alike
    ranks alike, and where all are alike there is no best.

    Args:
        rows: of the table.
        columns: of the table.
        selectors: of each row.
    """
    entries = [list(row.entries) for row in rows]
    for group in sorted({row.labels[0] for row in rows}):
        members = [
            place for place, row in enumerate(rows) if row.labels[0] == group and selectors[place] != UPPER_BOUND
        ]
        for number, column in enumerate(columns):
            if column.better:
                for place, rank in _ranks({place: entries[place][number] for place in members}, column).items():
                    entries[place][number] = replace(entries[place][number], rank=rank)
    return tuple(replace(row, entries=tuple(new)) for row, new in zip(rows, entries, strict=True))


def _ranks(entries: dict[int, Entry], column: Column) -> dict[int, int]:
    whole = {place: entry for place, entry in entries.items() if entry.complete and entry.mean is not None}
    real = {place: entry for place, entry in whole.items() if not entry.simulated}
    printed = {
        place: round(entry.mean, column.digits) for place, entry in (real or whole).items() if entry.mean is not None
    }
    order = sorted(set(printed.values()), reverse=column.better == "higher")[:2]
    if len(order) < 2:
        return {}
    return {place: 1 + order.index(value) for place, value in printed.items() if value in order}
