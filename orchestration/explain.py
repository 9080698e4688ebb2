"""`skillarena select`: one selection with all its working, for people."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.orchestration.assembly import AssembledParts, build_selector, load_library
from skillarena.orchestration.cells import cache_folder, sections
from skillarena.orchestration.console import console_for_results, logging_to, plain, plain_json
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.report.case_study import check_figure_file, write_case_study
from skillarena.orchestration.selection_store import selection_to_json
from skillarena.orchestration.settings import label
from skillarena.selectors.interface import Selection
from skillarena.selectors.measure import measured

_TOP = 8


def explain(
    goal: str,
    benchmark: str,
    overrides: Sequence[str],
    *,
    config_dir: Path | None,
    everything: bool,
    as_json: bool,
    figure: Path | None = None,
) -> int:
    """Select skills for an instruction and print how it came about; returns the exit code.

    Args:
        goal: the instruction.
        benchmark: name of the benchmark's configuration.
        overrides: Hydra overrides, as for ``run``.
        config_dir: folder of further configuration files.
        everything: all candidates instead of the best few.
        as_json: print the selection as JSON instead.
        figure: draw the selection into this SVG, PNG or HTML file as well.

    Raises:
        SkillArenaError: typed by what is wrong.
    """
    if any("\udc80" <= character <= "\udfff" for character in goal):
        raise ConfigError("the task is not UTF-8 text", "check the terminal's encoding")
    if not goal.strip():
        raise ConfigError("there is no task to select skills for", "say it in words, as a benchmark would")
    if figure:
        check_figure_file(figure)
    settings = compose([f"benchmark={benchmark}", *overrides], config_dir)
    identity = hashlib.sha256(goal.encode()).hexdigest()
    task = Task(label(settings.benchmark), "typed", identity, "typed task", "typed", goal)
    with logging_to(Console(stderr=True, highlight=False)):
        parts = AssembledParts(sections(settings), load_library(settings.library), cache_folder(settings))
        selection = measured(build_selector(settings.selector, parts), parts, task)
    if figure:
        write_case_study(selection, goal, label(settings.selector), figure)
    if as_json:
        sys.stdout.write(plain_json(selection_to_json(selection).decode()) + "\n")
        return 0
    console = console_for_results()
    console.print(_text(f"{label(settings.selector)} over {len(parts.library)} skills: {goal}", style="bold"))
    for block in _blocks(selection, shown=None if everything else _TOP):
        console.print(block)
    return 0


def _blocks(selection: Selection, shown: int | None) -> list[Table]:
    details = selection.details
    blocks = [_chosen(selection)]
    if selection.guidance:
        blocks.append(_guidance(selection.guidance))
    if "parse" in details:
        blocks.append(_parse(details["parse"]))
    if "candidates" in details:
        blocks.append(_candidates(details["candidates"], shown))
    if "flow" in details:
        blocks.append(_flow(details["flow"], details["splits"]))
    return blocks + [_stage(stage, details["candidates"], shown) for stage in details.get("stages", ())]


def _guidance(guidance: str) -> Table:
    table = _table("Guidance for the agent", "")
    table.add_row(_text(guidance))
    return table


def _parse(parse: dict[str, Any]) -> Table:
    table = _table("Parse" + (" (fallback)" if parse["fallback"] else ""), "", "state", "sub-task that follows")
    subtasks = [*parse["subtasks"], ""]
    for index, state in enumerate(parse.get("states") or [""] * len(subtasks)):
        table.add_row(f"S{index}", _text(state), _text(subtasks[index] if index < len(subtasks) else ""))
    return table


def _candidates(candidates: list[dict[str, Any]], shown: int | None) -> Table:
    edges = bool(candidates) and "src" in candidates[0]
    numbers = [key for key in ("cosine", "rho", "w", "score", "utility") if any(key in one for one in candidates)]
    headings = ["candidate", *numbers, *(["edge", "precondition", "completion"] if edges else [])]
    best = f", the best {shown}" if shown and shown < len(candidates) else ""
    table = _table(f"Candidates ({len(candidates)}) by relevance{best}", *headings)
    for candidate in sorted(candidates, key=lambda c: -c.get("rho", c.get("cosine", 0.0)))[:shown]:
        row: list[Text | str] = [_text(candidate["id"]), *(_number(candidate.get(key)) for key in numbers)]
        if edges:
            arrow = f"S{candidate['src']}>S{candidate['tgt']}" if candidate["keep"] else "dropped"
            row += [_text(arrow), _text(candidate["precondition"] or "None"), _text(candidate["completion"])]
        table.add_row(*row)
    return table


def _flow(flow: dict[str, list[float]], splits: list[int]) -> Table:
    table = _table("Flow at each state", "state", "In", "Out", "Cross", "split")
    columns = list(flow.values())
    for index in range(len(columns[0])):
        numbers = [f"{column[index]:.3f}" for column in columns]
        table.add_row(f"S{index}", *numbers, "split" if index in splits else "")
    return table


def _stage(stage: dict[str, Any], candidates: list[dict[str, Any]], shown: int | None) -> Table:
    table = _table(f"Stage S{stage['start']}>S{stage['end']}: {stage['text']}", "candidate", "stage logit", "phi", "")
    order = sorted(range(len(candidates)), key=lambda k: -stage["phi"][k])
    for k in order[:shown]:
        chosen = "chosen" if candidates[k]["id"] == stage["chosen"] else ""
        table.add_row(_text(candidates[k]["id"]), _number(stage["logits"][k]), _number(stage["phi"][k]), chosen)
    return table


def _chosen(selection: Selection) -> Table:
    cost = selection.cost
    took = f"{cost.seconds:.3f} s, {cost.pairs_scored} pairs scored, {cost.pairs_cached} from the cache"
    marks = f"; marks: {', '.join(selection.marks)}" if selection.marks else ""
    table = _table(f"Chosen ({len(selection.skills)}) in {took}{marks}", "skill", "score", "why")
    for skill in selection.skills:
        table.add_row(_text(skill.id), _number(skill.score), _text(skill.reason))
    return table


def _table(title: str, *headings: str) -> Table:
    table = Table(title=_text(title, style="bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _text(content: str, style: str = "") -> Text:
    return Text(plain(content), style=style)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
