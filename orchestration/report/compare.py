"""`skillarena compare`: two runs against each other on the same tasks."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.console import EXIT_OK, console_for_results, plain, plain_json
from skillarena.orchestration.report.comparisons import COMPARED, SUCCESS, Comparison, compare_pairs
from skillarena.orchestration.report.grid import scale
from skillarena.orchestration.report.layout import number, signed
from skillarena.orchestration.report.lines import Line
from skillarena.orchestration.report.paired import MCNEMAR
from skillarena.orchestration.report.sides import Matched, Side, differing_settings, match, read_side, task_notes
from skillarena.orchestration.report.table_model import simulated_heading

_UNBOUND = 10_000  # characters, more than any table has
_SHOWN = {
    "success": ("solved %", 1),
    "reward": ("reward", 1),
    "env_steps": ("env steps", 1),
    "total_tokens": ("total tokens", 0),
}
"""Heading and digits by measure."""


@dataclass(frozen=True)
class PairComparison:
    """One pair of methods in all measures."""

    first: Line
    second: Line
    comparisons: tuple[Comparison, ...]
    """One for each of ``COMPARED``."""

    @property
    def settings_that_differ(self) -> list[str]:
        """See ``differing_settings``."""
        return differing_settings(self.first, self.second)

    @property
    def notes(self) -> list[str]:
        """See ``task_notes``."""
        return task_notes(self.first, self.second)

    @property
    def success(self) -> Comparison:
        """The one with the tasks that one side alone solved."""
        return self.comparisons[COMPARED.index(SUCCESS)]


def compare(first: str, second: str, *, as_json: bool) -> int:
    """Compare two runs and print what is known; returns the exit code.

    Args:
        first: ``PATH`` or ``PATH:METHOD`` (see ``read_side``); the differences are the second minus this.
        second: likewise.
        as_json: print plain data instead.

    Raises:
        DataError: a path holds no readable cell.
        ConfigError: a method is unknown, or nothing can be compared.
    """
    sides = read_side(first), read_side(second)
    matched = match(*sides)
    pairs = _compared(matched)
    if as_json:
        whole = orjson.dumps(_payload(sides, matched, pairs), option=orjson.OPT_INDENT_2).decode()
        sys.stdout.write(plain_json(whole) + "\n")
    else:
        _print(sides, matched, pairs)
    return EXIT_OK


def _compared(matched: Matched) -> list[PairComparison]:
    comparisons = compare_pairs(matched.pairs)
    count = len(COMPARED)
    return [
        PairComparison(first, second, comparisons[number * count : (number + 1) * count])
        for number, (first, second) in enumerate(matched.pairs)
    ]


def _payload(sides: tuple[Side, Side], matched: Matched, pairs: list[PairComparison]) -> dict[str, Any]:
    return {
        "first": sides[0].given,
        "second": sides[1].given,
        "simulated": any(pair.success.simulated for pair in pairs),
        "pairs": [
            {
                "settings_that_differ": pair.settings_that_differ,
                "notes": pair.notes,
                "task_names": _task_names(pair),
                "comparisons": [asdict(comparison) for comparison in pair.comparisons],
            }
            for pair in pairs
        ],
        "without_partner": matched.without_partner,
        "problems": _problems(sides),
    }


def _task_names(pair: PairComparison) -> dict[str, str]:
    """Of tasks that one side alone solved, by id."""
    names = {task.id: task.name for task in pair.first.tasks}
    return {task: names[task] for task in (*pair.success.only_first, *pair.success.only_second)}


def _problems(sides: tuple[Side, Side]) -> list[str]:
    return [f"{side}: {problem}" for side, of in zip("AB", sides, strict=True) for problem in of.problems]


def _print(sides: tuple[Side, Side], matched: Matched, pairs: list[PairComparison]) -> None:
    console = console_for_results()
    console.print(*[_text(f"{name}: {side.given}") for name, side in zip("AB", sides, strict=True)], sep="\n")
    for block in _effects(pairs, console.width):
        console.print(block)
    disagreements = _disagreements(pairs[0]) if len(pairs) == 1 else []
    for line in (*disagreements, *_remarks(sides, matched, pairs)):
        console.print(_text(line), soft_wrap=True)


def _effects(pairs: list[PairComparison], width: int) -> list[RenderableType]:
    """One row for each pair and measure; where that is too wide, one heading and number below the other."""
    simulated = [comparison.simulated for pair in pairs for comparison in pair.comparisons]
    title = _text(simulated_heading("B against A on the same tasks", simulated))
    several = len(pairs) > 1
    headings = ["measure", "tasks", "A", "B", "B - A [95 %]", "p", *(["p (Holm)"] if several else []), "finding"]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    stanzas: list[RenderableType] = []
    if several:
        table.add_column("compared", overflow="fold")
    for heading in headings:
        words = heading in ("measure", "finding")
        table.add_column(heading, justify="left" if words else "right", no_wrap=heading != "finding", overflow="fold")
    for pair in pairs:
        for comparison in pair.comparisons:
            cells = _cells(comparison, several)
            first_of_pair = comparison.measure == COMPARED[0]
            compared = [_text(_title(pair) if first_of_pair else "")] if several else []
            table.add_row(*compared, *cells, end_section=comparison.measure == COMPARED[-1])
            stanzas += [*(compared if first_of_pair else []), _stanza(headings, cells)]
    needed = Console(width=_UNBOUND).measure(table).minimum
    return [title, *([table] if needed <= width else stanzas)]


def _cells(comparison: Comparison, several: bool) -> list[str]:
    heading, digits = _SHOWN[comparison.measure]
    factor = scale(comparison.measure)
    means = (comparison.first_mean, comparison.second_mean)
    p_values = (comparison.p, comparison.p_holm) if several else (comparison.p,)
    return [
        heading,
        str(comparison.tasks),
        *("-" if mean is None else number(factor * mean, digits) for mean in means),
        _difference(comparison, factor, digits),
        *("-" if p is None else format(p, ".2g") for p in p_values),
        _finding(comparison),
    ]


def _stanza(headings: list[str], cells: list[str]) -> Table:
    stanza = Table.grid(padding=(0, 2, 0, 0))
    stanza.add_column(no_wrap=True, style="dim")
    stanza.add_column(overflow="fold")
    for heading, cell in zip(headings, cells, strict=True):
        stanza.add_row(heading, cell)
    stanza.add_row()
    return stanza


def _finding(comparison: Comparison) -> str:
    if comparison.p is None:
        return "no shared task has a score on both sides"
    if comparison.resolved:
        return "resolved"
    if comparison.tasks_to_resolve is None:
        return "no difference"
    return f"not resolved; about {comparison.tasks_to_resolve:,} tasks would"


def _title(pair: PairComparison) -> str:
    first, second = pair.first, pair.second
    methods = first.method if first.method == second.method else f"{first.method} and {second.method}"
    return f"{methods} ({first.setting.backbone}, {first.setting.benchmark}/{first.setting.split})"


def _difference(comparison: Comparison, factor: float, digits: int) -> str:
    if comparison.difference is None:
        return "-"
    difference = signed(factor * comparison.difference, digits)
    if comparison.low is None or comparison.high is None:
        return difference
    return f"{difference} [{', '.join(signed(factor * end, digits) for end in (comparison.low, comparison.high))}]"


def _disagreements(pair: PairComparison) -> list[str]:
    """Names of the tasks that count for one side only."""
    names = _task_names(pair)
    solved = "alone solved" if pair.success.test == MCNEMAR else "solved more often"
    lines = []
    for side, tasks in (("A", pair.success.only_first), ("B", pair.success.only_second)):
        lines.append(
            f"{len(tasks)} {'task' if len(tasks) == 1 else 'tasks'} that {side} {solved}{':' if tasks else ''}"
        )
        lines += [f"  {names[task]}" for task in tasks]
    return lines


def _remarks(sides: tuple[Side, Side], matched: Matched, pairs: list[PairComparison]) -> list[str]:
    """What a reader must know beside the numbers."""
    several = len(pairs) > 1
    tests = sorted({comparison.test for pair in pairs for comparison in pair.comparisons})
    lines = [f"tests: {', '.join(tests)}; two-sided" + (", corrected for all rows of a measure" if several else "")]
    if differing := _together(pairs, [pair.settings_that_differ for pair in pairs]):
        lines += ["settings that differ:", *(f"  {line}" for line in differing)]
    lines += [f"note: {line}" for line in _together(pairs, [pair.notes for pair in pairs])]
    if matched.without_partner:
        lines += ["without a partner:", *(f"  {line}" for line in matched.without_partner)]
    return lines + [f"problem: {problem}" for problem in _problems(sides)]


def _together(pairs: list[PairComparison], each: list[list[str]]) -> list[str]:
    """Sentences about pairs, said once where they hold for all of them."""
    found: dict[str, list[str]] = {}
    for pair, sentences in zip(pairs, each, strict=True):
        for sentence in sentences:
            found.setdefault(sentence, []).append(_title(pair))
    return [
        sentence if len(titles) == len(pairs) else f"{sentence} (in {'; '.join(titles)})"
        for sentence, titles in found.items()
    ]


def _text(content: str) -> Text:
    return Text(plain(content))
