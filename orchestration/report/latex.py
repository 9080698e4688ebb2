r"""Tables as LaTeX, for ``\input`` in a paper with the packages adjustbox, booktabs, makecell and multirow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from skillarena.orchestration.console import plain
from skillarena.orchestration.report.layout import MISSING, SIMULATED, entry_text, labels_once, notes_of, parts
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow

_ACROSS = 8  # columns of numbers that a page holds
_DOWN = 40  # rows that a page holds
_NUMBER = re.compile(r"^Table \d+: ")  # LaTeX counts by itself


def latex(table: ReportTable) -> str:
    """One table; a wide or long one as several. Each is made smaller where a page is too narrow for it."""
    cut = [
        replace(part, rows=part.rows[start : start + _DOWN])
        for part in parts(table, _ACROSS)
        for start in range(0, len(part.rows), _DOWN)
    ]
    text = [
        "% Needs \\usepackage{adjustbox,booktabs,makecell,multirow}.",
        *(_part(part, table, number, len(cut)) for number, part in enumerate(cut, start=1)),
    ]
    return "\n".join(text) + "\n"


def _part(part: ReportTable, table: ReportTable, number: int, of: int) -> str:
    again = f" ({number} of {of})" if of > 1 else ""
    label = f"tab:{re.sub(r'[^a-z0-9]+', '-', table.name)}" + (f"-{number}" if of > 1 else "")
    form = "l" * len(part.label_headings) + "r" * len(part.columns)
    notes = "\\par\\smallskip\\footnotesize\\raggedright " + " ".join(map(escape, notes_of(table)))
    return "\n".join(
        [
            "\\begin{table}[tbp]",
            "\\centering\\small",
            f"\\caption{{{escape(_NUMBER.sub('', table.heading) + again)}}}\\label{{{label}}}",
            "\\begin{adjustbox}{max width=\\textwidth,max totalheight=0.8\\textheight}",
            f"\\begin{{tabular}}{{{form}}}",
            *_head(part),
            *_rows(part, table),
            "\\bottomrule",
            "\\end{tabular}",
            "\\end{adjustbox}",
            *([notes] if number == of else []),
            "\\end{table}",
        ]
    )


def _head(part: ReportTable) -> list[str]:
    """Rules and headings, from the outermost group inwards."""
    left = len(part.label_headings)
    depth = max(len(column.heading) for column in part.columns)
    lines = ["\\toprule"]
    for level in range(depth - 1):
        cells, rules, at = [""] * left, [], left + 1
        for words, group in groupby(part.columns, key=lambda column: column.heading[: level + 1]):
            wide = len(list(group))
            cells.append(f"\\multicolumn{{{wide}}}{{c}}{{{escape(words[-1])}}}")
            rules.append(f"\\cmidrule(lr){{{at}-{at + wide - 1}}}")
            at += wide
        lines += [_line(cells), "".join(rules)]
    last = [column.heading[-1] for column in part.columns]
    return [*lines, _line([*map(escape, part.label_headings), *map(escape, last)]), "\\midrule"]


def _rows(part: ReportTable, table: ReportTable) -> list[str]:
    lines: list[str] = []
    for _, group in groupby(part.rows, key=lambda row: row.labels[0]):
        rows = list(group)
        if lines:
            lines.append("\\midrule")
        for labels, row in zip(_labels(rows), rows, strict=True):
            entries = zip(row.entries, part.columns, strict=True)
            lines.append(_line([*labels, *(_entry(entry, column, table) for entry, column in entries)]))
    return lines


def _labels(rows: Sequence[TableRow]) -> list[list[str]]:
    shown = [[escape(label) for label in labels] for labels in labels_once(rows)]
    if len(rows) > 1:
        shown[0][0] = f"\\multirow{{{len(rows)}}}{{*}}{{{shown[0][0]}}}"
    return shown


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _entry(entry: Entry, column: Column, table: ReportTable) -> str:
    text = entry_text(entry, column, table)
    value = escape(text.value)
    shown = {1: f"\\textbf{{{value}}}", 2: f"\\underline{{{value}}}"}.get(entry.rank, value) + escape(text.mark)
    second = " ".join([escape(text.interval), f"({escape(text.coverage)})" if text.coverage else ""]).strip()
    third = f"paper {escape(text.published)}" if text.published else ""
    third += f" ({_signed(text.difference)})" if text.difference else ""
    small = [f"{{\\scriptsize {line}}}" for line in (second, third) if line]
    lines = "\\\\".join([shown, *small])
    return f"\\makecell[tr]{{{lines}}}" if small else shown


def _signed(difference: str) -> str:
    return escape(difference).replace("-", "$-$")


_CHARACTERS = {
    "\\": "\\textbackslash{}",
    "{": "\\{",
    "}": "\\}",
    "$": "\\$",
    "&": "\\&",
    "#": "\\#",
    "%": "\\%",
    "_": "\\_",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    '"': "''",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    MISSING: "---",
    SIMULATED: "\\textdagger{}",
}


def escape(text: str) -> str:
    r"""Text on one line without commands; letters that a usual font lacks are named by their number.

    Brackets and asterisks are wrapped, as both mean something behind ``\\``.
    """
    return "".join(map(_character, " ".join(plain(text).split())))


def _character(character: str) -> str:
    known = _CHARACTERS.get(character)
    if known is not None:
        return known
    usual = character.isascii() or (character < "\u0100" and character.isalpha())
    return character if usual else f"U+{ord(character):04X}"
