"""Tables as CSV files: one line an entry, for spreadsheets and programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from skillarena.orchestration.console import plain
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable

if TYPE_CHECKING:
    from skillarena.orchestration.report.comparisons import Comparison

Field = str | float | int | bool | None

_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
"""What a formula begins with, in both widths."""
_ENTRY = (
    "mean",
    "low",
    "high",
    "scored",
    "expected",
    "complete",
    "simulated",
    "rank",
    "published",
    "difference",
    "source",
    "uncertain",
)


def table_csv(table: ReportTable) -> str:
    """A table, one line an entry.

    Columns are the table's labels, ``column`` (its key), ``heading``, ``unit``, ``better`` and what ``Entry`` says,
    ``differs`` last; what is not known is empty. Numbers have all their digits, and truth is ``true`` or ``false``.
    """
    header = (*table.label_headings, "column", "heading", "unit", "better", *_ENTRY, "differs")
    lines = (
        _line(row.labels, column, entry)
        for row in table.rows
        for column, entry in zip(table.columns, row.entries, strict=True)
    )
    return _csv(header, lines)


def _line(labels: Sequence[str], column: Column, entry: Entry) -> list[Field]:
    about = [column.key, " ".join(column.heading), column.unit, column.better]
    return [*labels, *about, *(getattr(entry, name) for name in _ENTRY), " ".join(entry.differs)]


def comparisons_csv(comparisons: Sequence[Comparison]) -> str:
    """Comparisons, one line each; ids of tasks are separated by blanks."""
    from skillarena.orchestration.report.comparisons import Comparison

    names = [field.name for field in fields(Comparison) if field.name != "setting"]
    lines = (
        [
            one.setting.backbone,
            one.setting.benchmark,
            one.setting.split,
            *(_plain(getattr(one, name)) for name in names),
        ]
        for one in comparisons
    )
    return _csv(("backbone", "benchmark", "split", *names), lines)


def _plain(value: Field | tuple[str, ...]) -> Field:
    return " ".join(value) if isinstance(value, tuple) else value


def _csv(header: Sequence[str], lines: Iterable[Sequence[Field]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_safe(value) for value in line] for line in lines)
    return text.getvalue()


def _safe(value: Field) -> str | float | int:
    """A spreadsheet runs text that begins like a formula; a quotation mark before it keeps it text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    line = plain(value).replace("\t", " ").replace("\n", " ")
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line
