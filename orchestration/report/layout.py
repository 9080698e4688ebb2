"""What all written formats share: how entries read, and how wide tables are cut into parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow

MISSING = "—"
"""In place of a number that the archive does not have."""
UNKNOWN = "n/a"
"""In place of a number that the episodes do not say."""
SIMULATED = "†"
"""Behind a simulated number in a table that holds others too."""
WITH_INTERVALS = ("reward", "success", "env_steps", "total_tokens")
"""Columns, by their whole key, that are printed with their 95 % interval: those of tables that name a line's setting
in its row, where there is room."""


@dataclass(frozen=True, slots=True)
class EntryText:
    """An entry in words; every part may be empty but the first."""

    value: str
    interval: str = ""
    """For example ``[57.9, 73.6]``."""
    coverage: str = ""
    """For example ``46/194``, where a task of the setting has no score."""
    published: str = ""
    """For example ``84.65``."""
    difference: str = ""
    """Own minus published, with its sign."""
    mark: str = ""
    """``†`` for a simulated entry among others."""


def entry_text(entry: Entry, column: Column, table: ReportTable) -> EntryText:
    """An entry as every format prints it."""
    partial = entry.expected > 0 and not entry.complete
    doubt = "?" if entry.uncertain else ""
    ends = () if entry.low is None or entry.high is None else (entry.low, entry.high)
    interval = ", ".join(number(end, column.digits) for end in ends)
    return EntryText(
        value=_value(entry, column),
        interval=f"[{interval}]" if interval and column.key in WITH_INTERVALS else "",
        coverage=f"{entry.scored}/{entry.expected}" if partial and entry.mean is not None else "",
        published="" if entry.published is None else number(entry.published, column.digits) + doubt,
        difference="" if entry.difference is None else signed(entry.difference, column.digits),
        mark=SIMULATED if entry.simulated and entry.mean is not None and not table.all_simulated else "",
    )


def _value(entry: Entry, column: Column) -> str:
    if entry.mean is not None:
        return number(entry.mean, column.digits)
    if entry.expected == 0:
        return MISSING
    return UNKNOWN if entry.scored else f"0/{entry.expected}"


def number(value: float, digits: int) -> str:
    """With thousands apart, and no minus before a zero."""
    return f"{round(value, digits) + 0.0:,.{digits}f}"


def signed(value: float, digits: int) -> str:
    """With its sign, and none before a zero."""
    rounded = round(value, digits) + 0.0
    return f"{rounded:+,.{digits}f}" if rounded else number(0.0, digits)


def notes_of(table: ReportTable) -> tuple[str, ...]:
    """A table's notes, and what the signs in it mean."""
    entries = [entry for row in table.rows for entry in row.entries]
    notes = list(table.notes)
    if any(entry.expected == 0 for entry in entries):
        notes.append(f"{MISSING}: not run.")
    if any(entry.expected > 0 and not entry.complete for entry in entries):
        unranked = " and is not ranked" if any(column.better for column in table.columns) else ""
        notes.append(f"n/m: only n of the m tasks have a scored episode; the mean is over these{unranked}.")
    if table.simulated and not table.all_simulated:
        notes.append(f"{SIMULATED}: simulated, no language model; never comparable with published values.")
    return tuple(notes)


def parts(table: ReportTable, most: int) -> list[ReportTable]:
    """The table cut into tables of at most ``most`` columns of numbers; columns of one group stay together if they can.

    Args:
        table: what to cut.
        most: at least 1.
    """
    groups = [list(group) for _, group in groupby(range(len(table.columns)), lambda i: table.columns[i].heading[:-1])]
    cut: list[list[int]] = []
    for group in groups:
        pieces = [group[start : start + most] for start in range(0, len(group), most)]
        for piece in pieces:
            if cut and len(pieces) == 1 and len(cut[-1]) + len(piece) <= most:
                cut[-1] += piece
            else:
                cut.append(list(piece))
    return [with_columns(table, chosen) for chosen in cut]


def with_columns(table: ReportTable, chosen: Sequence[int]) -> ReportTable:
    """The table with some of its columns."""
    rows = tuple(TableRow(row.labels, tuple(row.entries[i] for i in chosen)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in chosen), rows=rows)


def labels_once(rows: Sequence[TableRow]) -> list[tuple[str, ...]]:
    """Each row's labels, empty where they and all before them are those of the row above; never all empty."""
    shown: list[tuple[str, ...]] = []
    above: tuple[str, ...] = ()
    for row in rows:
        same = 0
        while same < len(row.labels) - 1 and row.labels[: same + 1] == above[: same + 1]:
            same += 1
        shown.append(("",) * same + row.labels[same:])
        above = row.labels
    return shown
