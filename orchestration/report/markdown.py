"""The report as Markdown, readable as text and on GitHub."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from skillarena.orchestration.console import plain
from skillarena.orchestration.report.layout import SIMULATED, entry_text, labels_once, notes_of, number, parts, signed
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, simulated_heading

if TYPE_CHECKING:
    from skillarena.orchestration.report.comparisons import Comparison
    from skillarena.orchestration.report.report import Report

_ACROSS = 8  # columns of numbers that stand beside each other
_DIGITS = {"success": 1, "reward": 2, "env_steps": 2, "total_tokens": 0}
_NAMES = {"success": "success %", "reward": "reward", "env_steps": "steps", "total_tokens": "tokens"}


def markdown(report: Report) -> str:
    """The whole report."""
    blocks = [f"# {escape(report.title)}", _content(report)]
    blocks += _section("Problems", report.problems)
    for table in report.tables[:3]:
        blocks += _table(table)
    blocks += _section("Where own and published settings differ", report.differences)
    blocks += _comparisons(report.comparisons)
    for table in report.tables[3:]:
        blocks += _table(table)
    return "\n\n".join(blocks) + "\n"


def _content(report: Report) -> str:
    found = report.sweep
    text = f"{found.episodes:,} of {found.tasks:,} episodes in {found.cells} cells."
    if found.infra_errors:
        text += f" {found.infra_errors:,} were lost to infrastructure errors and are in no mean."
    if found.simulated_cells == found.cells:
        return f"**SIMULATED: no language model played; the numbers say nothing about any model.** {text}"
    return text + (f" {found.simulated_cells} cells are **simulated**." if found.simulated_cells else "")


def _section(title: str, sentences: Sequence[str]) -> list[str]:
    return [f"## {title}", _bullets(sentences)] if sentences else []


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {escape(sentence)}" for sentence in sentences)


def _table(table: ReportTable) -> list[str]:
    if not table.rows:
        return []
    blocks = [f"## {escape(table.heading)}"]
    for part in parts(table, _ACROSS):
        headings = [*map(escape, table.label_headings), *(_heading(column) for column in part.columns)]
        rows = [
            [
                *map(escape, labels),
                *(_entry(entry, column, table) for entry, column in zip(row.entries, part.columns, strict=True)),
            ]
            for labels, row in zip(labels_once(part.rows), part.rows, strict=True)
        ]
        blocks.append(_grid(headings, rows, left=len(table.label_headings)))
    return [*blocks, _bullets(notes_of(table))]


def _grid(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> str:
    """Columns of equal width, so that the text itself is a table."""
    widths = [max(3, *(len(cells[i]) for cells in (headings, *rows))) for i in range(len(headings))]
    aligned = [
        "| "
        + " | ".join(_padded(cell, width, i < left) for i, (cell, width) in enumerate(zip(cells, widths, strict=True)))
        + " |"
        for cells in (headings, *rows)
    ]
    rule = (
        "| " + " | ".join("-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)) + " |"
    )
    return "\n".join([aligned[0], rule, *aligned[1:]])


def _padded(cell: str, width: int, left: bool) -> str:
    return cell.ljust(width) if left else cell.rjust(width)


def _heading(column: Column) -> str:
    return "<br>".join(escape(word) for word in column.heading)


def _entry(entry: Entry, column: Column, table: ReportTable) -> str:
    text = entry_text(entry, column, table)
    value = {1: f"**{text.value}**", 2: f"<u>{text.value}</u>"}.get(entry.rank, text.value) + text.mark
    if text.interval:
        value += f" {text.interval}"
    if text.coverage:
        value += f" ({text.coverage})"
    if text.published:
        value += f"<br>paper {text.published}" + (f" ({text.difference})" if text.difference else "")
    return value


def _comparisons(comparisons: Sequence[Comparison]) -> list[str]:
    if not comparisons:
        return []
    whole = all(one.simulated for one in comparisons)
    blocks = [
        f"## {simulated_heading('Methods compared on the same tasks', [one.simulated for one in comparisons])}",
        _bullets(
            (
                "difference: the method minus the baseline over the tasks that both have a score for, with its 95 %"
                " interval.",
                "p: after Holm's correction over all comparisons of one measure here. Success is tested by McNemar's"
                " exact test, all else, and success that is a mean of several runs, by flipping the signs of the paired"
                " differences.",
                "not resolved: chance alone can explain the difference; in brackets, how many tasks would resolve it.",
            )
        ),
    ]
    for (setting, first), group in groupby(comparisons, key=lambda one: (one.setting, one.first)):
        together = list(group)
        where = f"{setting.backbone}, {setting.benchmark}/{setting.split}: against {first}"
        heading = escape(where) if whole else simulated_heading(escape(where), [one.simulated for one in together])
        blocks.append(f"### {heading}")
        blocks.append(_comparison_grid(together))
    return blocks


def _comparison_grid(comparisons: Sequence[Comparison]) -> str:
    headings = ["method", "measure", "tasks", "baseline mean", "method mean", "difference", "p", "result"]
    mixed = not all(one.simulated for one in comparisons)
    rows = []
    above = ""
    for one in comparisons:
        second = "" if one.second == above else escape(one.second) + (SIMULATED if one.simulated and mixed else "")
        above = one.second
        rows.append([second, *_compared(one)])
    return _grid(headings, rows, left=2)


def _compared(one: Comparison) -> list[str]:
    digits = _DIGITS.get(one.measure, 2)
    factor = 100.0 if one.measure == "success" else 1.0
    name = _NAMES.get(one.measure, escape(one.measure))
    if one.difference is None or one.first_mean is None or one.second_mean is None:
        return [name, str(one.tasks), "", "", "", "", "no task in common"]
    difference = signed(factor * one.difference, digits)
    if one.low is not None and one.high is not None:
        difference += f" [{signed(factor * one.low, digits)}, {signed(factor * one.high, digits)}]"
    return [
        name,
        str(one.tasks),
        number(factor * one.first_mean, digits),
        number(factor * one.second_mean, digits),
        difference,
        "" if one.p_holm is None else p_text(one.p_holm),
        verdict(one),
    ]


def p_text(p: float) -> str:
    """Three digits, or that it is smaller."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def verdict(one: Comparison) -> str:
    """What a comparison says, in words."""
    if one.resolved:
        return "resolved"
    return "not resolved" + (f" ({one.tasks_to_resolve:,} tasks)" if one.tasks_to_resolve is not None else "")


_SPECIAL = re.compile(r"[\\`*\[\]|~$]")
_ADDRESS = {"://": ":&#47;&#47;", "@": "&#64;"}
"""What makes a link of bare text, with what reads the same and makes none."""
_BARE_HOST = re.compile(r"(www)\.", re.IGNORECASE)
_EDGE_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


def escape(text: str) -> str:
    """Text that Markdown and HTML take for text, on one line."""
    line = " ".join(plain(text).split())
    line = _EDGE_UNDERSCORE.sub(r"\\_", _SPECIAL.sub(r"\\\g<0>", line))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for sign, harmless in _ADDRESS.items():
        line = line.replace(sign, harmless)
    line = _BARE_HOST.sub(r"\1&#46;", line)
    return re.sub(r"^([#+-]|\d+[.)])", r"\\\1", line)
