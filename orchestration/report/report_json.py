"""The report as plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import orjson

from skillarena.orchestration.report.lines import Line
from skillarena.orchestration.report.table_model import ReportTable, TableRow

if TYPE_CHECKING:
    from skillarena.orchestration.report.report import Report


def report_dict(report: Report) -> dict[str, Any]:
    """Plain data for JSON.

    Keys:
        title: of the report.
        sweep: what was read (``Content``).
        simulated: at least one cell is simulated.
        problems, differences: sentences.
        tables: by name: ``title``, ``label_headings``, ``columns`` (``Column``), ``rows`` (``labels`` and ``entries``:
            ``Entry`` with ``complete`` and ``difference``) and ``notes``.
        comparisons: a list of ``Comparison``.
        lines: every method in every setting: ``method``, ``selector``, ``setting``, ``sizes``, ``simulated``,
            ``scored`` and ``expected`` tasks, ``cells`` (their ids) and ``estimates`` (``mean``, ``low`` and ``high``
            by measure, in the measure's own unit: success from 0 to 1).
    """
    return {
        "title": report.title,
        "sweep": asdict(report.sweep),
        "simulated": report.simulated,
        "problems": list(report.problems),
        "differences": list(report.differences),
        "tables": {table.name: _table(table) for table in report.tables},
        "comparisons": [asdict(comparison) for comparison in report.comparisons],
        "lines": [_line(line) for line in report.lines],
    }


def report_json(report: Report) -> bytes:
    """``report_dict`` on one line, with sorted keys."""
    return orjson.dumps(report_dict(report), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)


def _table(table: ReportTable) -> dict[str, Any]:
    return {
        "title": table.title,
        "label_headings": table.label_headings,
        "columns": [asdict(column) for column in table.columns],
        "rows": [_row(row) for row in table.rows],
        "notes": table.notes,
    }


def _row(row: TableRow) -> dict[str, Any]:
    entries = [{**asdict(entry), "complete": entry.complete, "difference": entry.difference} for entry in row.entries]
    return {"labels": row.labels, "entries": entries}


def _line(line: Line) -> dict[str, Any]:
    return {
        "method": line.method,
        "selector": line.selector,
        "setting": asdict(line.setting),
        "sizes": line.sizes,
        "simulated": line.simulated,
        "scored": int(line.scored.sum()),
        "expected": len(line.tasks),
        "cells": [cell.id for cell in line.cells],
        "estimates": {name: asdict(estimate) for name, estimate in line.estimates.items()},
    }
