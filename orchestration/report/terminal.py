"""Tables of a report for the terminal. Numbers are never cut: a table that is too wide is printed in parts."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.console import plain
from skillarena.orchestration.report.layout import entry_text, labels_once, parts
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable

_LABEL = 28  # characters at most that a narrow terminal leaves a label before it folds
_STYLES = {1: "bold", 2: "underline"}


def terminal_tables(table: ReportTable, width: int) -> list[Table]:
    """The table without its heading, in as many parts as the width asks for.

    Args:
        table: what to print.
        width: characters of a line.
    """
    room = width - sum(_label_width(table, i, width) + 2 for i in range(len(table.label_headings)))
    most = len(table.columns)
    while most > 1 and any(_numbers_width(part, table) > room for part in parts(table, most)):
        most -= 1
    return [_rich(part, table, width) for part in parts(table, most)]


def _label_width(table: ReportTable, place: int, width: int) -> int:
    longest = max(
        len(plain(label)) for label in (table.label_headings[place], *(row.labels[place] for row in table.rows))
    )
    return min(longest, max(_LABEL, width // 3))


def _numbers_width(part: ReportTable, table: ReportTable) -> int:
    return sum(2 + _column_width(part, place, table) for place in range(len(part.columns)))


def _column_width(part: ReportTable, place: int, table: ReportTable) -> int:
    column = part.columns[place]
    texts = (_heading(column), *(_text(row.entries[place], column, table).plain for row in part.rows))
    return max(len(line) for text in texts for line in text.split("\n"))


def _rich(part: ReportTable, table: ReportTable, width: int) -> Table:
    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(part.label_headings):
        shown.add_column(Text(plain(heading)), overflow="fold", max_width=_label_width(table, place, width))
    for column in part.columns:
        shown.add_column(Text(_heading(column)), justify="right", no_wrap=True)
    for labels, row in zip(labels_once(part.rows), part.rows, strict=True):
        entries = zip(row.entries, part.columns, strict=True)
        shown.add_row(*_texts(labels), *(_text(entry, column, table) for entry, column in entries))
    return shown


def _texts(labels: Sequence[str]) -> list[Text]:
    return [Text(plain(label)) for label in labels]


def _heading(column: Column) -> str:
    return "\n".join(plain(word) for word in column.heading)


def _text(entry: Entry, column: Column, table: ReportTable) -> Text:
    words = entry_text(entry, column, table)
    text = Text(words.value, style=_STYLES.get(entry.rank, "")) + Text(words.mark)
    if words.coverage:
        text += Text(f" {words.coverage}", style="yellow")
    if words.published:
        text += Text(f"\npaper {words.published}" + (f" ({words.difference})" if words.difference else ""), style="dim")
    return text
