"""The files of a report: every format in one folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from skillarena.conf.errors import DataError
from skillarena.orchestration.report.archive import Archive
from skillarena.orchestration.report.csv_files import comparisons_csv, table_csv
from skillarena.orchestration.report.latex import latex
from skillarena.orchestration.report.markdown import markdown
from skillarena.orchestration.report.report import Report
from skillarena.orchestration.report.report_json import report_json


def write_report(
    report: Report, archive: Archive, folder: Path, say: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Write every format: ``index.html``, ``report.md``, ``report.json``, ``tables`` and ``figures``.

    The same ledgers give the same bytes. A table without rows has no files; those of an earlier report are removed.

    Args:
        report: what to write.
        archive: what it is about; its cells' folders hold the trajectories of the page.
        folder: where to write, made when missing.
        say: is told what comes next.

    Returns:
        The files, the page first.

    Raises:
        DataError: the folder cannot be written.
    """
    from skillarena.orchestration.report.figures import FORMS, NAMES, draw, write_figures
    from skillarena.orchestration.report.page import write_page

    page = folder / "index.html"
    with _writing_to(folder):
        files = _write_texts(report, folder)
        say("figures")
        drawings = draw(report.lines)
        files += write_figures(drawings, folder / "figures")
        say("page")
        write_page(report, archive, drawings, page)
        figures = {folder / "figures" / f"{name}.{form}" for name in NAMES for form in FORMS}
        for stale in (figures | _table_files(report, folder)).difference(files):
            stale.unlink(missing_ok=True)
    return [page, *files]


def _table_files(report: Report, folder: Path) -> set[Path]:
    """All that a report can have."""
    names = [f"{table.name}.{form}" for table in report.tables for form in ("tex", "csv")]
    return {folder / "tables" / name for name in (*names, "comparisons.csv")}


def _write_texts(report: Report, folder: Path) -> list[Path]:
    contents = {"report.md": markdown(report).encode(), "report.json": report_json(report)}
    for table in report.tables:
        if table.rows:
            contents[f"tables/{table.name}.tex"] = latex(table).encode()
            contents[f"tables/{table.name}.csv"] = table_csv(table).encode()
    if report.comparisons:
        contents["tables/comparisons.csv"] = comparisons_csv(report.comparisons).encode()
    for name, content in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return [folder / name for name in contents]


@contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{folder}: the report cannot be written ({error.strerror or error})",
            "free space or permissions there, or name another folder with --out",
        ) from error
