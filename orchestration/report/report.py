"""The report: everything that is said about an archive, as data; every format is written from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillarena.envs.interface import EndReason
from skillarena.orchestration.report.agreement import differences_from_published, uneven_settings
from skillarena.orchestration.report.archive import Archive
from skillarena.orchestration.report.grid import without_halves
from skillarena.orchestration.report.lines import Line, lines_of
from skillarena.orchestration.report.table_model import ReportTable
from skillarena.orchestration.report.tables import report_tables

if TYPE_CHECKING:
    from skillarena.orchestration.report.comparisons import Comparison


@dataclass(frozen=True, slots=True)
class Content:
    """What a report was made from."""

    cells: int
    """Cells that could be read."""
    simulated_cells: int
    """Those in which no language model played, or ranked the skills."""
    tasks: int
    """Episodes that a complete archive would hold."""
    episodes: int
    """Finished episodes, infrastructure errors left out."""
    infra_errors: int
    """Episodes that no attempt could finish."""
    folders: tuple[str, ...]
    """Names of the cells' folders, without the path to them."""


@dataclass(frozen=True)
class Report:
    """Everything a report says."""

    title: str
    sweep: Content
    tables: tuple[ReportTable, ...]
    """``table1``, ``table2``, ``table3``, ``by_task_type``, ``k_curve``, ``selection_costs`` and ``cells``, in this
    order; one that nothing is known for has no rows."""
    comparisons: tuple[Comparison, ...]
    differences: tuple[str, ...]
    """Settings in which own and published runs differ, one sentence each."""
    problems: tuple[str, ...]
    """What could not be read, and what makes numbers of one setting hard to compare, one sentence each."""
    simulated: bool
    """At least one cell is simulated."""
    lines: tuple[Line, ...] = field(repr=False)

    def table(self, name: str) -> ReportTable:
        """The table of that name. Raises ``KeyError`` when there is none."""
        return {table.name: table for table in self.tables}[name]


def build_report(archive: Archive, baseline: str | None = None) -> Report:
    """Assemble the report; the same ledgers give an equal report, wherever they lie.

    Args:
        archive: what it is about.
        baseline: label or selector of the method that all others are compared with; None for the usual one.

    Raises:
        ConfigError: no method has the baseline's name.
    """
    from skillarena.orchestration.report.comparisons import compare_lines

    lines = tuple(lines_of(archive.cells))
    shown = without_halves(lines)
    return Report(
        title=_title(lines),
        sweep=_content(archive),
        tables=report_tables(lines),
        comparisons=compare_lines(shown, baseline),
        differences=differences_from_published(shown),
        problems=(*sorted(archive.problems), *uneven_settings(lines)),
        simulated=any(cell.simulated for cell in archive.cells),
        lines=lines,
    )


def _title(lines: Sequence[Line]) -> str:
    benchmarks = sorted({line.setting.benchmark for line in lines})
    backbones = sorted({line.setting.backbone for line in lines})
    shown = [f"the {name} backbone" if name == "simulated" else name for name in backbones]
    return f"Skill selection on {' and '.join(benchmarks)} with {', '.join(shown)}"


def _content(archive: Archive) -> Content:
    rows = [row for cell in archive.cells for row in cell.rows.values()]
    lost = sum(row.outcome == EndReason.INFRA_ERROR for row in rows)
    return Content(
        cells=len(archive.cells),
        simulated_cells=sum(cell.simulated for cell in archive.cells),
        tasks=sum(len(cell.tasks) for cell in archive.cells),
        episodes=len(rows) - lost,
        infra_errors=lost,
        folders=tuple(sorted(cell.directory.name for cell in archive.cells)),
    )
