"""Tables and comparisons as a page shows them: every number already a text, every heading with what it spans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from skillarena.orchestration.report.comparisons import COMPARED, Comparison
from skillarena.orchestration.report.grid import scale
from skillarena.orchestration.report.layout import number, signed
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable

_DIGITS = {"success": 1, "reward": 1, "env_steps": 1, "total_tokens": 0}
_HEADINGS = {
    "success": "success, % points",
    "reward": "reward, points",
    "env_steps": "env steps",
    "total_tokens": "total tokens",
}
_LOWER_IS_BETTER = ("env_steps", "total_tokens")


@dataclass(frozen=True, slots=True)
class Heading:
    """One cell of a table's head."""

    text: str
    columns: int
    rows: int
    leaf: bool
    """It heads one column, by which rows can be sorted."""
    label: bool = False
    """It heads names, not numbers."""


@dataclass(frozen=True, slots=True)
class Number:
    """One entry."""

    text: str
    value: float | None
    """What rows are sorted by; None where there is no number."""
    interval: str = ""
    coverage: str = ""
    """Scored of expected tasks, where some are missing."""
    rank: int = 0
    simulated: bool = False
    """To be marked, as others of the table are not simulated."""
    published: str = ""
    difference: str = ""
    """Own minus published value; empty where they cannot be compared."""
    doubts: str = ""
    """Why they cannot be compared, or why the published value may be wrong."""


@dataclass(frozen=True, slots=True)
class Row:
    """Its last label heads it."""

    labels: tuple[str, ...]
    numbers: tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its rows in groups of one first label."""

    name: str
    title: str
    heads: tuple[tuple[Heading, ...], ...]
    groups: tuple[tuple[str, tuple[Row, ...]], ...]
    labels: int
    """Label columns; the first label of several is not among them, it heads the group."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One measure of two methods."""

    text: str
    """The difference."""
    value: float | None
    interval: str = ""
    p: str = ""
    better: str = ""
    """``better`` or ``worse`` than the baseline where that is resolved; else empty."""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the page."""

    words: str
    fragment: str


@dataclass(frozen=True, slots=True)
class Versus:
    """A method against the baseline of its setting."""

    method: str
    tasks: int
    links: tuple[Link, ...]
    """To the tasks on which the two disagree; one a size where a method is the mean of several."""
    only_first: int
    only_second: int
    verdicts: tuple[Verdict, ...]
    simulated: bool
    """To be marked, as others of the setting are not simulated."""


@dataclass(frozen=True, slots=True)
class SettingComparisons:
    """All methods of one setting against its baseline."""

    name: str
    baseline: str
    simulated: str
    """``simulated`` or ``some simulated``; empty where a language model is behind all of it."""
    headings: tuple[str, ...]
    rows: tuple[Versus, ...]


def setting_name(setting: Setting) -> str:
    """As links and menus of the page call a setting."""
    return f"{setting.backbone}/{setting.benchmark}/{setting.split}"


def table_view(table: ReportTable) -> Table:
    """A table of the report as the page shows it."""
    grouped = len(table.label_headings) > 1
    known = [entry.simulated for row in table.rows for entry in row.entries if entry.expected]
    mixed = any(known) and not all(known)
    rows = [
        (row.labels[0] if grouped else "", Row(row.labels[grouped:], _numbers(table.columns, row.entries, mixed)))
        for row in table.rows
    ]
    return Table(
        name=table.name,
        title=f"{table.title} ({'some ' if mixed else ''}simulated)" if any(known) else table.title,
        heads=_heads(table.label_headings[grouped:], table.columns),
        groups=tuple((name, tuple(row for _, row in members)) for name, members in groupby(rows, lambda row: row[0])),
        labels=len(table.label_headings) - grouped,
        notes=table.notes,
    )


def _heads(labels: Sequence[str], columns: Sequence[Column]) -> tuple[tuple[Heading, ...], ...]:
    """Lines of the head: neighbours under the same words share a cell."""
    depth = max((len(column.heading) for column in columns), default=1)
    paths = [("",) * (depth - len(column.heading)) + column.heading for column in columns]
    lines: list[tuple[Heading, ...]] = []
    for level in range(depth):
        leaf = level == depth - 1
        keys = [(*path[: level + 1], place if leaf else 0) for place, path in enumerate(paths)]
        spans = [(key[level], len(list(same))) for key, same in groupby(keys)]
        cells = [Heading(str(words), columns, 1, leaf) for words, columns in spans]
        beside = [Heading(label, 1, depth, True, True) for label in labels] if level == 0 else []
        lines.append((*beside, *cells))
    return tuple(lines)


def _numbers(columns: Sequence[Column], entries: Sequence[Entry], mixed: bool) -> tuple[Number, ...]:
    return tuple(_number(column.digits, entry, mixed) for column, entry in zip(columns, entries, strict=True))


def _number(digits: int, entry: Entry, mixed: bool) -> Number:
    published, difference = entry.published, entry.difference
    ends = () if entry.low is None or entry.high is None else (entry.low, entry.high)
    doubts = (*entry.differs, *([f"published value: {entry.uncertain}"] if entry.uncertain else []))
    return Number(
        text="missing" if not entry.expected else "\u2013" if entry.mean is None else number(entry.mean, digits),
        value=entry.mean,
        interval=f"[{', '.join(number(end, digits) for end in ends)}]" if ends and ends[0] < ends[1] else "",
        coverage="" if entry.complete or not entry.expected else f"{entry.scored}/{entry.expected}",
        rank=entry.rank,
        simulated=mixed and entry.simulated,
        published="" if published is None or entry.simulated else number(published, digits),
        difference="" if difference is None else signed(difference, digits),
        doubts="; ".join(doubts),
    )


def comparison_views(comparisons: Sequence[Comparison], lines: Sequence[Line]) -> list[SettingComparisons]:
    """Comparisons by setting.

    Args:
        comparisons: of the report, in its order.
        lines: of the report.
    """
    played = _played(lines)
    found = []
    for setting, of_setting in groupby(comparisons, lambda one: one.setting):
        together = list(of_setting)
        simulated = [one.simulated for one in together]
        extent = "" if not any(simulated) else "simulated" if all(simulated) else "some simulated"
        by_method = [list(members) for _, members in groupby(together, lambda one: (one.first, one.second))]
        found.append(
            SettingComparisons(
                name=setting_name(setting),
                baseline=together[0].first,
                simulated=extent,
                headings=tuple(_HEADINGS[measure] for measure in COMPARED),
                rows=tuple(_versus(members, played, mixed=not all(simulated)) for members in by_method),
            )
        )
    return found


def _played(lines: Sequence[Line]) -> dict[tuple[Setting, str], tuple[str, ...]]:
    """Labels of the lines whose episodes stand behind a line: itself, or those that it is the mean of."""
    label = {(line.setting, cell.id): line.method for line in lines if not line.sizes for cell in line.cells}
    return {
        (line.setting, line.method): tuple(dict.fromkeys(label[line.setting, cell.id] for cell in line.cells))
        for line in lines
    }


def _versus(
    members: Sequence[Comparison], played: dict[tuple[Setting, str], tuple[str, ...]], *, mixed: bool
) -> Versus:
    by_measure = {one.measure: one for one in members}
    success = by_measure["success"]
    first, *_ = played[success.setting, success.first]
    links = []
    for second in played[success.setting, success.second]:
        about = {"setting": setting_name(success.setting), "method": first, "with": second, "outcome": "differ"}
        links.append(Link("show tasks" if second == success.second else second, f"#{urlencode(about)}"))
    return Versus(
        method=success.second,
        tasks=success.tasks,
        links=tuple(links),
        only_first=len(success.only_first),
        only_second=len(success.only_second),
        verdicts=tuple(_verdict(by_measure[measure]) for measure in COMPARED),
        simulated=mixed and success.simulated,
    )


def _verdict(one: Comparison) -> Verdict:
    if one.difference is None:
        return Verdict("\u2013", None, words="no task in common")
    factor, digits = scale(one.measure), _DIGITS[one.measure]
    ends = [signed(factor * end, digits) for end in (one.low, one.high) if end is not None]
    gain = -one.difference if one.measure in _LOWER_IS_BETTER else one.difference
    return Verdict(
        text=signed(factor * one.difference, digits),
        value=one.difference,
        interval=f"[{', '.join(ends)}]" if ends else "",
        p="" if one.p is None else f"p {_p(one.p)}, Holm {_p(one.p_holm)}",
        better=("better" if gain > 0 else "worse") if one.resolved else "",
        words=_words(one),
    )


def _words(one: Comparison) -> str:
    if one.resolved:
        return "resolved"
    if one.tasks_to_resolve is None:
        return "not resolved"
    return f"not resolved; about {one.tasks_to_resolve:,} tasks would"


def _p(value: float | None) -> str:
    if value is None:
        return "\u2013"
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
