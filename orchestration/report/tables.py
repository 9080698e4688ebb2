"""The tables of a report, laid out like those of arXiv 2607.06283 where it has one."""

from __future__ import annotations

from collections.abc import Sequence

from skillarena.orchestration.report.breakdowns import by_task_type, k_curve
from skillarena.orchestration.report.cell_tables import cells_table, selection_costs
from skillarena.orchestration.report.grid import ABLATIONS, UPPER_BOUND, Grid, ranked, reading_order, without_halves
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow
from skillarena.orchestration.top_k_mean import SIZES

_COLUMNS = {
    "reward": ("R", "higher", 2, "points"),
    "env_steps": ("S", "lower", 2, "steps"),
    "skills_selected": ("skills", "", 3, "skills"),
    "total_tokens": ("tokens", "lower", 0, "tokens"),
}
"""Heading, better direction, digits and unit by measure."""

_R = "R: mean reward, 0 to 100 points, higher is better."
_S = "S: mean environment steps, lower is better."
_SKILLS = "skills: mean number of skills in the first prompt."
_TOKENS = "tokens: mean prompt and completion tokens of the agent's calls in an episode, cached ones included."


def report_tables(lines: Sequence[Line]) -> tuple[ReportTable, ...]:
    """Every table, in the order of a report.

    Args:
        lines: of all cells, those of single sizes included.
    """
    grid = Grid(lines)
    whole = without_halves(lines)
    methods = [line for line in whole if line.selector not in ABLATIONS]
    ablated = [line for line in whole if line.selector in ("skillreranker", *ABLATIONS)]
    if not any(line.selector in ABLATIONS for line in ablated):
        ablated = []
    return (
        _table(grid, "table1", "Table 1: reward and environment steps", methods, ("reward", "env_steps"), (_R, _S)),
        _table(grid, "table2", "Table 2: ablations of SkillReranker, reward", ablated, ("reward",), (_R,)),
        _table(
            grid,
            "table3",
            "Table 3: skills selected and tokens",
            methods,
            ("skills_selected", "total_tokens"),
            (_SKILLS, _TOKENS),
        ),
        by_task_type(grid, whole),
        k_curve(grid, whole),
        selection_costs(grid, lines),
        cells_table(grid, lines),
    )


def _table(
    grid: Grid, name: str, title: str, lines: Sequence[Line], measures: Sequence[str], meanings: Sequence[str]
) -> ReportTable:
    """Rows of backbone and method, columns of benchmark, split and measure."""
    places = sorted({(line.setting.benchmark, line.setting.split) for line in lines})
    columns = [_column(*place, measure) for place in places for measure in measures]
    found = {(line.setting, line.method): line for line in lines}
    methods = {line.method: line for line in sorted(lines, key=reading_order)}
    rows = []
    for backbone in sorted({line.setting.backbone for line in lines}):
        for method, elsewhere in methods.items():
            entries = []
            for place in places:
                setting = Setting(backbone, *place)
                line = found.get((setting, method))
                entries += [
                    grid.missing(setting, elsewhere, measure) if line is None else grid.entry(line, measure)
                    for measure in measures
                ]
            rows.append(TableRow((backbone, method), tuple(entries)))
    whole = ranked(rows, columns, [methods[row.labels[1]].selector for row in rows])
    notes = (*meanings, *_explained(whole, columns, lines))
    return ReportTable(name, title, ("backbone", "method"), tuple(columns), whole, notes if whole else ())


def _column(benchmark: str, split: str, measure: str) -> Column:
    heading, better, digits, unit = _COLUMNS[measure]
    return Column(f"{benchmark}.{split}.{measure}", (benchmark, split, heading), better, digits, unit)


def _explained(rows: Sequence[TableRow], columns: Sequence[Column], lines: Sequence[Line]) -> list[str]:
    """What the marks and labels in a table mean, as far as it has them."""
    entries = [entry for row in rows for entry in row.entries]
    notes = []
    if any(entry.rank for entry in entries):
        notes.append(
            "Best in bold and second underlined, within one backbone; ranked are values of which every task is scored."
        )
    if any(line.selector == UPPER_BOUND for line in lines):
        notes.append(f"{UPPER_BOUND} knows the task's type: an upper bound for choosing, not ranked.")
    if any(line.sizes for line in lines):
        notes.append(f"top_k={','.join(map(str, SIZES))}: the mean of runs with one and with two skills, task by task.")
    if any(len(line.cells) > len(line.sizes or (0,)) for line in lines):
        notes.append("A task that several seeds played counts with the mean of them.")
    notes += _about_published(rows, columns, entries)
    return notes


def _about_published(rows: Sequence[TableRow], columns: Sequence[Column], entries: Sequence[Entry]) -> list[str]:
    if not any(entry.published is not None for entry in entries):
        return []
    sources = sorted({entry.source for entry in entries if entry.source})
    notes = [
        f"paper: the published value ({'; '.join(sources)}), with own minus published where no setting is known to"
        " differ and every task is scored."
    ]
    if any(column.key.endswith("skills_selected") for column in columns):
        notes.append("paper 1.500: it prints 1-2, for the mean of runs with one and with two skills.")
    doubts = {
        (row.labels[0], *column.heading, entry.published): entry.uncertain
        for row in rows
        for column, entry in zip(columns, row.entries, strict=True)
        if entry.uncertain
    }
    for (*where, value), reason in doubts.items():
        notes.append(f"paper {value:,}? ({', '.join(map(str, where))}): {reason}.")
    return notes
