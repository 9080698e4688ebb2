"""Cells as tables for the terminal. Numbers are never cut; names fold on narrow terminals."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.driver import CellResult
from skillarena.orchestration.summary import Estimate, Summary
from skillarena.orchestration.top_k_mean import top_k_means
from skillarena.selectors.interface import MARKS

_QUALITY = ("episodes", "reward [95 %]", "solved %", "env steps", "invalid")
_COST = {
    "prompt": ("prompt_tokens", ",.0f"),
    "cached": ("cached_tokens", ",.0f"),
    "completion": ("completion_tokens", ",.0f"),
    "reasoning": ("reasoning_tokens", ",.0f"),
    "total": ("total_tokens", ",.0f"),
    "cost": ("cost", ".4g"),
    "episode s": ("wall_seconds", ".1f"),
}
_SELECTING = {
    "skills": ("skills_selected", ".2f"),
    "added": ("skills_added", ".2f"),
    "look-ups": ("skill_lookups", ".2f"),
    "pairs scored": ("pairs_scored", ",.1f"),
    "pairs cached": ("pairs_cached", ",.1f"),
    "LLM tokens": ("selector_tokens", ",.0f"),
    "offline tokens": ("offline_tokens", ",.0f"),
    "selection s": ("selection_seconds", ".3f"),
    "look-up s": ("lookup_seconds", ".3f"),
}
_IF_ANY = ("reasoning", "cost", "added", "look-ups", "LLM tokens", "offline tokens", "look-up s")
"""Columns shown only where a cell has something in them."""


def results_tables(results: Sequence[CellResult]) -> list[Table]:
    """What the methods reached, what that took, and what selecting took; one row a cell, and one for each mean."""
    quality = _table("Means over episodes", results, _QUALITY)
    tokens, selecting = _shown(_COST, results), _shown(_SELECTING, results)
    cost = _table("Tokens and seconds, means over episodes", results, list(tokens))
    selection = _table("Selecting skills, means over episodes", results, list(selecting))
    for name, summary in _lines(results):
        quality.add_row(name, _coverage(summary), *_quality(summary))
        cost.add_row(name, *(_cell(summary, measure, form) for measure, form in tokens.values()))
        selection.add_row(name, *(_cell(summary, measure, form) for measure, form in selecting.values()))
    return [quality, cost, selection]


def _lines(results: Sequence[CellResult]) -> list[tuple[Text, Summary]]:
    """Every cell, and behind the second of a pair the mean of both."""
    means = {id(mean.parts[1]): mean for mean in top_k_means(results)}
    lines: list[tuple[Text, Summary]] = []
    for result in results:
        lines.append((_name(result.cell.name, result, results), result.summary))
        if (mean := means.get(id(result))) is not None:
            lines.append((_name(mean.name, result, results), mean.summary))
    return lines


def notes_on(results: Sequence[CellResult]) -> list[str]:
    """What a reader must know beside the table, one sentence each."""
    notes = []
    if _any_simulated(results):
        notes.append("simulated: a scripted policy played; the numbers say nothing about any model.")
    if any(not result.summary.complete for result in results):
        notes.append("!: not every task has a scored episode; what has none enters no mean.")
    if len(results) > 1 and any(_mean(result.summary, "pairs_cached") for result in results):
        notes.append(
            "What an earlier cell left in the cache takes a later one no time: compare seconds on equal caches."
        )
    if any(result.summary.marks.get("tokens_estimated") for result in results):
        notes.append("Tokens are estimated from text length where the backbone reports none.")
    explained: dict[str, str] = {}
    for result in results:
        marks = {mark: count for mark, count in result.summary.marks.items() if mark != "tokens_estimated"}
        if marks:
            counts = "; ".join(f"{mark} in {count}" for mark, count in marks.items())
            notes.append(f"{result.cell.name}: {counts} of {result.summary.scored} episodes")
            explained |= {mark: MARKS[mark] for mark in marks if mark in MARKS}
        if result.cell.left_out:
            notes.append(f"{result.cell.name}: {len(result.cell.left_out)} documents of the library were left out:")
            notes += [f"  {reason}" for reason in result.cell.left_out[:5]]
    notes += [f"{mark}: {meaning}." for mark, meaning in explained.items()]
    return notes


def _table(title: str, results: Sequence[CellResult], headings: Sequence[str]) -> Table:
    mark = " (SIMULATED backbone: no language model)" if _any_simulated(results) else ""
    table = Table(title=title + mark, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("cell", overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _name(name: str, result: CellResult, results: Sequence[CellResult]) -> Text:
    """A cell's name, its backbone's mark, and what else tells it from the others."""
    if result.cell.simulated and "simulated" not in name:
        name += " [simulated]"
    unnamed = ("reranker", "parser", "library")
    varying = [axis for axis in unnamed if len({other.cell.axes[axis] for other in results}) > 1]
    return Text(" ".join([name, *(f"{axis}={result.cell.axes[axis]}" for axis in varying)]))


def _quality(summary: Summary) -> list[str]:
    estimates = summary.estimates
    if not estimates:
        return ["-"] * (len(_QUALITY) - 1)
    return [
        f"{estimates['reward'].mean:.1f}{_interval(estimates['reward'])}",
        f"{100 * estimates['success'].mean:.1f}",
        f"{estimates['env_steps'].mean:.1f}",
        f"{estimates['invalid_actions'].mean:.1f}",
    ]


def _shown(columns: dict[str, tuple[str, str]], results: Sequence[CellResult]) -> dict[str, tuple[str, str]]:
    """Heading to measure and number format, without empty columns that need not be there."""
    return {
        heading: column
        for heading, column in columns.items()
        if heading not in _IF_ANY or any(_mean(result.summary, column[0]) for result in results)
    }


def _mean(summary: Summary, measure: str) -> float | None:
    estimate = summary.estimates.get(measure)
    return None if estimate is None else estimate.mean


def _cell(summary: Summary, measure: str, form: str) -> str:
    mean = _mean(summary, measure)
    return "-" if mean is None else format(mean, form)


def _interval(estimate: Estimate) -> str:
    return "" if estimate.low is None or estimate.high is None else f" [{estimate.low:.1f}, {estimate.high:.1f}]"


def _coverage(summary: Summary) -> Text:
    text = f"{summary.scored}/{summary.expected}"
    return Text(text) if summary.complete else Text(text + " !", style="bold yellow")


def _any_simulated(results: Sequence[CellResult]) -> bool:
    return any(result.cell.simulated for result in results)
