"""Cells as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from skillarena.orchestration.driver import CellResult
from skillarena.orchestration.summary import Estimate, Summary

SIMULATED = "simulated"


def results_table(results: Sequence[CellResult]) -> Table:
    """One row a cell: reward and success with 95 % intervals, steps, tokens, skills, coverage."""
    table = Table(title=_title(results), title_justify="left")
    table.add_column("benchmark / split")
    table.add_column("selector")
    table.add_column("backbone")
    varying = _varying(results)
    if varying:
        table.add_column("settings")
    for heading in ("episodes", "reward", "95 % interval", "solved %", "env steps", "invalid", "skills"):
        table.add_column(heading, justify="right")
    for heading in ("prompt tok", "cached tok", "compl. tok", "selection s"):
        table.add_column(heading, justify="right")
    for result in results:
        axes, summary = result.cell.axes, result.summary
        table.add_row(
            Text(f"{axes['benchmark']} {axes['split']}"),
            Text(axes["selector"] + (f" top-{axes['top_k']}" if axes["top_k"] else "")),
            _backbone(result),
            *([Text(" ".join(f"{key}={axes[key]}" for key in varying if axes[key]))] if varying else []),
            _coverage(summary),
            *_numbers(summary),
        )
    return table


def _varying(results: Sequence[CellResult]) -> list[str]:
    """Axes without a column of their own that tell these cells apart."""
    axes = ("k", "reranker", "parser", "library", "seed")
    return [axis for axis in axes if len({result.cell.axes[axis] for result in results}) > 1]


def _numbers(summary: Summary) -> list[str]:
    estimates = summary.estimates
    if not estimates:
        return ["-"] * 10
    return [
        f"{estimates['reward'].mean:.2f}",
        _interval(estimates["reward"]),
        f"{100 * estimates['success'].mean:.1f}",
        f"{estimates['env_steps'].mean:.2f}",
        f"{estimates['invalid_actions'].mean:.2f}",
        f"{estimates['skills_selected'].mean:.2f}",
        f"{estimates['prompt_tokens'].mean:,.0f}",
        f"{estimates['cached_tokens'].mean:,.0f}",
        f"{estimates['completion_tokens'].mean:,.0f}",
        f"{estimates['selection_seconds'].mean:.3f}",
    ]


def _interval(estimate: Estimate) -> str:
    return "-" if estimate.low is None or estimate.high is None else f"{estimate.low:.1f} - {estimate.high:.1f}"


def _coverage(summary: Summary) -> Text:
    text = f"{summary.scored}/{summary.expected}"
    return Text(text) if summary.complete else Text(text + " !", style="bold yellow")


def _backbone(result: CellResult) -> Text:
    name = result.cell.axes["backbone"]
    return Text(f"{name} [{SIMULATED}]" if result.cell.simulated and name != SIMULATED else name)


def _title(results: Sequence[CellResult]) -> str:
    return "Means over episodes" + (" (SIMULATED backbone: no language model)" if _any_simulated(results) else "")


def notes_on(results: Sequence[CellResult]) -> list[str]:
    """What a reader must know beside the table, one sentence each."""
    notes = []
    if _any_simulated(results):
        notes.append("simulated: a scripted policy played; the numbers say nothing about any model.")
    if any(not result.summary.complete for result in results):
        notes.append("!: not every task has a scored episode; infrastructure errors enter no mean.")
    if any(result.summary.marks.get("tokens_estimated") for result in results):
        notes.append("Tokens are estimated from text length where the backbone reports none.")
    for result in results:
        marks = {mark: count for mark, count in result.summary.marks.items() if mark != "tokens_estimated"}
        if marks:
            counts = ", ".join(f"{mark} in {count}" for mark, count in marks.items())
            notes.append(f"{result.cell.name}: {counts} of {result.summary.scored} episodes")
        if result.cell.left_out:
            notes.append(f"{result.cell.name}: {len(result.cell.left_out)} documents of the library were left out:")
            notes += [f"  {reason}" for reason in result.cell.left_out[:5]]
    return notes


def _any_simulated(results: Sequence[CellResult]) -> bool:
    return any(result.cell.simulated for result in results)
