"""Every line with everything that is known about it, and what selecting takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from skillarena.envs.interface import EndReason
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.report.grid import Grid, reading_order
from skillarena.orchestration.report.lines import Line
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow
from skillarena.selectors.interface import MARKS

_Measures = dict[str, tuple[str, str, int, str]]
"""Group, heading, digits and unit by measure."""

_COSTS: _Measures = {
    "selection_seconds": ("selecting", "seconds", 3, "s"),
    "pairs_scored": ("selecting", "pairs scored", 1, "pairs"),
    "pairs_cached": ("selecting", "pairs cached", 1, "pairs"),
    "selector_tokens": ("selecting", "LLM tokens", 0, "tokens"),
    "offline_tokens": ("selecting", "offline tokens", 0, "tokens"),
    "skill_lookups": ("in the episode", "look-ups", 2, "calls"),
    "skills_added": ("in the episode", "skills added", 2, "skills"),
    "lookup_seconds": ("in the episode", "seconds", 3, "s"),
}
_ALL: _Measures = {
    "reward": ("result", "reward", 2, "points"),
    "success": ("result", "success %", 1, "%"),
    "env_steps": ("result", "steps", 2, "steps"),
    "llm_turns": ("result", "turns", 2, "turns"),
    "invalid_actions": ("result", "invalid", 2, "actions"),
    "prompt_tokens": ("tokens", "prompt", 0, "tokens"),
    "cached_tokens": ("tokens", "cached", 0, "tokens"),
    "completion_tokens": ("tokens", "completion", 0, "tokens"),
    "reasoning_tokens": ("tokens", "reasoning", 0, "tokens"),
    "total_tokens": ("tokens", "total", 0, "tokens"),
    "wasted_tokens": ("tokens", "wasted", 0, "tokens"),
    "cost": ("tokens", "cost", 4, "money"),
    "skills_selected": ("selecting", "skills", 3, "skills"),
    **_COSTS,
    "wall_seconds": ("in the episode", "all seconds", 2, "s"),
}
_IF_ANY = (
    "reasoning_tokens",
    "wasted_tokens",
    "cost",
    "selector_tokens",
    "offline_tokens",
    "skill_lookups",
    "skills_added",
    "lookup_seconds",
)
"""Measures that are left out where no line has any of it."""
_LABELS = ("backbone", "setting", "method")


def selection_costs(grid: Grid, lines: Sequence[Line]) -> ReportTable:
    """What selecting took, means over episodes."""
    notes = (
        "Means over episodes; seconds are those of the computation, whenever it happened.",
        "What an earlier run left in the caches takes a later one no time: compare seconds and pairs on equal caches.",
        "LLM tokens are those of the selector's online calls; offline tokens belong to the library, not to a task.",
    )
    rows = tuple(
        TableRow(_labels(line), tuple(grid.entry(line, measure) for measure in _COSTS)) for line in _ordered(lines)
    )
    columns = tuple(_column(measure, _COSTS) for measure in _COSTS)
    return ReportTable("selection_costs", "What selecting skills takes", _LABELS, columns, rows, notes)


def cells_table(grid: Grid, lines: Sequence[Line]) -> ReportTable:
    """Every line with every measure, its coverage, what was lost, and what was unusual."""
    ordered = _ordered(lines)
    measures = [name for name in _ALL if name not in _IF_ANY or any(_mean(line, name) for line in ordered)]
    marks = [_marks(line) for line in ordered]
    names = sorted(set().union(*marks))
    columns = (
        *(_column(measure, _ALL) for measure in measures),
        Column("episodes.scored", ("episodes", "scored"), "", 0, "tasks"),
        Column("episodes.expected", ("episodes", "expected"), "", 0, "tasks"),
        Column("episodes.infra_errors", ("episodes", "infra errors"), "", 0, "episodes"),
        Column("episodes.cells", ("episodes", "cells"), "", 0, "cells"),
        *(Column(f"marks.{name}", ("marked episodes", name), "", 0, "episodes") for name in names),
    )
    rows = tuple(
        TableRow(
            _labels(line),
            (
                *(grid.entry(line, measure) for measure in measures),
                *_counts(grid, line),
                *(_count(grid, line, found[name]) for name in names),
            ),
        )
        for line, found in zip(ordered, marks, strict=True)
    )
    notes = (
        "Means over the tasks that every cell of a line has scored; infrastructure errors are in no mean.",
        *(f"{name}: {MARKS[name]}." for name in names if name in MARKS),
        *(
            ("tokens_estimated: tokens follow from text length where the server reports none.",)
            * ("tokens_estimated" in names)
        ),
    )
    return ReportTable("cells", "Everything, line by line", _LABELS, columns, rows, notes)


def _ordered(lines: Sequence[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line.setting, reading_order(line)))


def _labels(line: Line) -> tuple[str, ...]:
    return (line.setting.backbone, f"{line.setting.benchmark}/{line.setting.split}", line.method)


def _column(measure: str, measures: _Measures) -> Column:
    group, heading, digits, unit = measures[measure]
    return Column(measure, (group, heading), "", digits, unit)


def _mean(line: Line, measure: str) -> float:
    estimate = line.estimates.get(measure)
    return 0.0 if estimate is None else estimate.mean


def _rows(line: Line) -> list[EpisodeRow]:
    return [row for cell in line.cells for row in cell.rows.values()]


def _marks(line: Line) -> Counter[str]:
    scored = [row for row in _rows(line) if row.outcome != EndReason.INFRA_ERROR]
    return Counter(mark for row in scored for mark in row.marks) + Counter(
        {"tokens_estimated": sum(row.tokens_estimated for row in scored)}
    )


def _counts(grid: Grid, line: Line) -> list[Entry]:
    lost = sum(row.outcome == EndReason.INFRA_ERROR for row in _rows(line))
    scored, expected = int(line.scored.sum()), len(grid.tasks[line.setting])
    return [_count(grid, line, number) for number in (scored, expected, lost, len(line.cells))]


def _count(grid: Grid, line: Line, number: int) -> Entry:
    scored, expected = int(line.scored.sum()), len(grid.tasks[line.setting])
    return Entry(float(number), scored=scored, expected=expected, simulated=line.simulated)
