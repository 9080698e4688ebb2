"""Episodes as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.console import plain
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.report.archive import ArchivedCell
from skillarena.orchestration.trajectory import Trajectory, Turn
from skillarena.selectors.interface import MARKS, Selection

_ID_DIGITS = 10


def episode_blocks(
    cell: Mapping[str, Any], row: EpisodeRow, trajectory: Trajectory | None, selection: Selection | None
) -> Iterator[RenderableType]:
    """Everything about one episode, to be printed one below the other.

    Args:
        cell: what the cell's configuration says of the cell.
        row: the episode's row.
        trajectory: what happened; None for an infrastructure error.
        selection: the whole selection, where it was kept.
    """
    name = str(cell["name"])
    yield _text(f"{name} (simulated)" if cell["simulated"] and "simulated" not in name else name, "bold")
    yield _facts(row, trajectory)
    if trajectory is None:
        return
    yield _skills(row, selection)
    if selection is not None and selection.guidance:
        yield _section("Guidance of the selector", selection.guidance)
    yield _section("At the start", trajectory.first_observation)
    score = 0.0
    for number, turn in enumerate(trajectory.turns, start=1):
        yield _turn(number, turn, score)
        score = turn.score
    yield _text(f"ended: {row.outcome} after {_counted(len(trajectory.turns), 'turn')}", "bold")


def _facts(row: EpisodeRow, trajectory: Trajectory | None) -> Table:
    facts = Table.grid(padding=(0, 2, 0, 0))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")

    def add(name: str, value: str) -> None:
        facts.add_row(name, _text(value))

    add("episode", row.episode_id)
    add("task", f"{row.task_name} ({row.task_type})")
    if trajectory is not None:
        add("goal", trajectory.goal)
    add("outcome", _outcome(row))
    if row.error:
        add("reason", row.error)
    if trajectory is not None:
        add("steps", _steps(row))
        add("tokens", _row_tokens(row))
        add("seconds", _seconds(row))
    if row.attempts > 1 or row.wasted_tokens:
        add("attempts", f"{row.attempts}, {row.wasted_tokens:,} tokens wasted on discarded replies and attempts")
    for mark in row.marks:
        add("mark", f"{mark}: {MARKS.get(mark, 'a command was spelt as the simulator wants it')}")
    if row.memory:
        add("memory", row.memory)
    return facts


def _outcome(row: EpisodeRow) -> str:
    if row.reward is None or row.score is None:
        return f"{row.outcome}, which has no score"
    return f"{row.outcome}, reward {row.reward:g} of 100, score {row.score:g}"


def _steps(row: EpisodeRow) -> str:
    counts = [
        _counted(row.env_steps, "env step"),
        _counted(row.llm_turns, "turn"),
        _counted(row.invalid_actions, "invalid action"),
        _counted(row.skill_lookups, "skill look-up"),
    ]
    return ", ".join(counts)


def _row_tokens(row: EpisodeRow) -> str:
    usage = Usage(
        row.prompt_tokens,
        row.cached_tokens,
        row.completion_tokens,
        estimated=row.tokens_estimated,
        reasoning_tokens=row.reasoning_tokens,
    )
    selector = row.selector_prompt_tokens + row.selector_completion_tokens
    online = f"; the selector's own calls {selector:,}" if selector else ""
    cost = f"; cost {row.cost:.4g}" if row.cost else ""
    return f"{row.total_tokens:,}: {_tokens(usage)}{online}{cost}"


def _tokens(usage: Usage) -> str:
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    thought = f" ({usage.reasoning_tokens:,} reasoning)" if usage.reasoning_tokens else ""
    wasted = f", {usage.wasted_tokens:,} wasted" if usage.wasted_tokens else ""
    estimated = ", estimated" if usage.estimated else ""
    return f"prompt {usage.prompt_tokens:,}{cached}, completion {usage.completion_tokens:,}{thought}{wasted}{estimated}"


def _seconds(row: EpisodeRow) -> str:
    lookups = f", {row.lookup_seconds:.3f} in the selector" if row.lookup_seconds else ""
    reused = ", reused" if row.selection_reused else ""
    return (
        f"{row.wall_seconds:.3f}: {row.llm_seconds:.3f} in the model, {row.env_seconds:.3f} in the environment"
        f"{lookups}; selection before {row.selection_seconds:.3f}{reused}"
    )


def _skills(row: EpisodeRow, selection: Selection | None) -> RenderableType:
    if not row.skills:
        return _section("Skills", "none")
    if selection is None:
        ids = "\n".join(f"{place}. {skill}" for place, skill in enumerate(row.skills, start=1))
        return _section(
            "Skills", f"{ids}\n(the reasons were not kept; run.keep_selections=true keeps those of new episodes)"
        )
    table = _table("Skills")
    for heading in ("", "skill", "score", "why"):
        table.add_column(heading, overflow="fold")
    for place, skill in enumerate(selection.skills, start=1):
        table.add_row(str(place), _text(skill.id), f"{skill.score:.3f}", _text(skill.reason))
    return table


def _section(title: str, content: str) -> Table:
    section = Table.grid()
    section.add_column(overflow="fold")
    section.add_row(_text(title, "bold"))
    section.add_row(Padding(_text(content), (0, 0, 1, 2)))
    return section


def _turn(number: int, turn: Turn, score_before: float) -> Table:
    heading = Text.assemble((f"Turn {number}", "bold"), ("  " + _turn_facts(turn, score_before), "dim"))
    lines = Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(style="dim", no_wrap=True)
    lines.add_column(overflow="fold")
    for name, content, style in _parts(turn):
        lines.add_row(name, _text(content, style))
    whole = Table.grid()
    whole.add_column(overflow="fold")
    whole.add_row(heading)
    whole.add_row(Padding(lines, (0, 0, 1, 2)))
    return whole


def _turn_facts(turn: Turn, score_before: float) -> str:
    facts = [] if turn.score == score_before else [f"score {score_before:g} > {turn.score:g}"]
    facts.append(_tokens(turn.usage))
    seconds = f"{turn.llm_seconds:.3f} s model, {turn.env_seconds:.3f} s environment"
    facts.append(seconds + (f", {turn.tool_seconds:.3f} s selector" if turn.tool_seconds else ""))
    if turn.finish_reason == "length":
        facts.append("the reply was cut")
    return "; ".join(facts)


def _parts(turn: Turn) -> Iterator[tuple[str, str, str]]:
    """Name, content and style of each line of a turn."""
    refused = "" if turn.valid else "  (refused)"
    if turn.thought:
        yield "thought", turn.thought, ""
    if turn.action is not None:
        spelt = "  (respelt)" if turn.normalised else ""
        yield "action", f"{turn.action}{spelt}{refused}", "bold"
    elif turn.tool:
        yield "tool", f"{turn.tool}{refused}", "bold"
    else:
        yield "no action", "the reply held no command" if turn.thought == turn.reply else turn.reply, ""
    if turn.skills_read:
        yield "skills read", ", ".join(turn.skills_read), ""
    yield "observation", turn.observation, ""
    if turn.advice:
        yield "advice", turn.advice, ""


def episodes_table(cell: ArchivedCell, rows: Mapping[int, EpisodeRow]) -> Table:
    """A cell's episodes by the number of their task."""
    all_shown = len(rows) == len(cell.tasks)
    table = _table(f"{cell.name}: {len(rows)} episodes" + ("" if all_shown else f" of {len(cell.tasks)} tasks"))
    table.add_column("no.", justify="right", no_wrap=True)
    for heading in ("episode", "task", "outcome"):
        table.add_column(heading, overflow="fold")
    for heading in ("reward", "steps", "tokens"):
        table.add_column(heading, justify="right", no_wrap=True)
    for number, row in rows.items():
        reward = "" if row.reward is None else f"{row.reward:g}"
        name = row.task_name if row.task_name.startswith(row.task_type) else f"{row.task_name} ({row.task_type})"
        table.add_row(
            str(number),
            _text(row.episode_id[:_ID_DIGITS]),
            _text(name),
            _text(row.outcome),
            reward,
            str(row.env_steps),
            f"{row.total_tokens:,}",
        )
    return table


def cells_table(cells: Sequence[ArchivedCell]) -> Table:
    """Cells with how much of them is there."""
    table = _table(f"{len(cells)} cells; `skillarena show FOLDER` lists the episodes of one")
    table.add_column("episodes", justify="right", no_wrap=True)
    table.add_column("folder", overflow="fold")
    for cell in cells:
        table.add_row(f"{len(cell.rows)}/{len(cell.tasks)}", _text(str(cell.directory)))
    return table


def _table(title: str) -> Table:
    return Table(title=_text(title, "bold"), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _text(content: str, style: str = "") -> Text:
    return Text(plain(content), style=style)
