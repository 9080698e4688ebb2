"""`skillarena plan`: says what a run would do and take, and starts nothing."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import orjson
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.console import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    console_for_results,
    logging_to,
    plain,
    plain_json,
)
from skillarena.orchestration.plan_estimate import Use, total
from skillarena.orchestration.plan_survey import Survey
from skillarena.orchestration.plan_sweep import Plan, plan_sweep
from skillarena.orchestration.preflight import check_shared, preflight_all
from skillarena.orchestration.settings import Settings

_GIB = 1024**3


def plan_cells(all_settings: Sequence[Settings], *, as_json: bool) -> int:
    """Print the plan of a sweep.

    Neither Ray nor a server is started, and no server is asked. The only thing that may be written is what listing a
    benchmark's tasks keeps in the cache folder.

    Args:
        all_settings: as for ``run_cells``.
        as_json: print plain data instead of tables.

    Returns:
        The exit code (see ``console.py``): 1 when some of the cells could not be planned.

    Raises:
        SkillArenaError: nothing can be planned.
    """
    check_shared(all_settings)
    survey = Survey()
    with logging_to(Console(stderr=True, highlight=False)):
        cells, broken = preflight_all(all_settings, survey)
        past = survey.past_episodes(cells)
        facts = [survey.facts(cell) for cell in cells]
        plan = plan_sweep(facts, past, list(survey.missing))
    if as_json:
        sys.stdout.write(plain_json(orjson.dumps(plan.to_dict(), option=orjson.OPT_INDENT_2).decode()) + "\n")
    else:
        _print(plan)
    return EXIT_INCOMPLETE if broken else EXIT_OK


def _print(plan: Plan) -> None:
    out = console_for_results()
    for table in (_cells(plan), _models(plan), *([_processes(plan)] if plan.processes else [])):
        out.print(table)
    for line in _lines(plan):
        out.print(Text(plain(line)), soft_wrap=True)


def _cells(plan: Plan) -> Table:
    left = sum(cell.episodes - cell.finished for cell in plan.cells)
    cells = f"{len(plan.cells)} cell{'s' if len(plan.cells) > 1 else ''}"
    table = _table(f"{cells}, {left} episodes left", "cell", "left", "finished", "all", *_USE, "cost")
    for cell in plan.cells:
        counts = (cell.episodes - cell.finished, cell.finished, cell.episodes)
        cost = _money(cell.cost, nothing=cell.simulated)
        table.add_row(Text(plain(cell.name)), *map(str, counts), *_use(cell.expected), cost)
    return table


def _models(plan: Plan) -> Table:
    table = _table("Language models, whole sweep", "model", "role", *_USE, "cost")
    for model in plan.models:
        cost = _money(model.cost, nothing=model.simulated)
        table.add_row(Text(plain(model.model)), model.role, *_use(model.expected), cost)
    if len(plan.models) > 1:
        simulated = all(model.simulated for model in plan.models)
        cost = _money(plan.cost, nothing=simulated)
        table.add_row("all", "", *_use(total(model.expected for model in plan.models)), cost, style="bold")
    return table


def _processes(plan: Plan) -> Table:
    table = _table(
        "GPU memory, GiB on each GPU", "process", "processes", "GPUs each", "weights", "one sequence", "at least"
    )
    for process in plan.processes:
        memory = process.memory
        sizes = (_gib(size) for size in (memory.weights, memory.cache, memory.least))
        table.add_row(Text(plain(process.name)), str(process.processes), f"{process.gpus:g}", *sizes)
    return table


def _lines(plan: Plan) -> list[str]:
    to_compute = plan.selections - plan.stored
    lines = [f"Selections: {plan.selections} different ones, {plan.stored} stored or done, {to_compute} to compute"]
    lines += [f"  {process.name}: {process.note}" for process in plan.processes]
    lines += [f"The run would stop early: {cap}" for cap in plan.caps]
    if plan.missing:
        lines += ["Missing on this machine:", *(f"  {item}" for item in plan.missing)]
    lines += ["Where the numbers come from:", *(f"  {item}" for item in plan.assumptions)]
    return lines


_USE = ("calls", "prompt", "cached", "completion")


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        words = heading in ("cell", "model", "role", "process")
        table.add_column(heading, justify="left" if words else "right", overflow="fold", no_wrap=not words)
    return table


def _use(use: Use) -> list[str]:
    return [f"{number:,.0f}" for number in (use.calls, use.prompt, use.cached, use.completion)]


def _money(amount: float | None, *, nothing: bool) -> str:
    """``nothing`` is for what has no price at all: a simulated model, or one's own."""
    if nothing or amount == 0:
        return "-"
    return "unknown" if amount is None else f"{amount:,.2f}"


def _gib(size: float | None) -> str:
    return "unknown" if size is None else f"{size / _GIB:,.1f}"
