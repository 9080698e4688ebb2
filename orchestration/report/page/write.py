"""The report as one HTML file that opens from disk, with every table, figure and trajectory in it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from skillarena.orchestration.console import plain
from skillarena.orchestration.report.archive import Archive
from skillarena.orchestration.report.figure_style import Drawing
from skillarena.orchestration.report.page.index import PageIndex
from skillarena.orchestration.report.page.inline_svg import inline_svg
from skillarena.orchestration.report.page.tables import comparison_views, table_view
from skillarena.orchestration.report.page.trajectories import TURN, Packed, compressed, pack

if TYPE_CHECKING:
    from jinja2 import Environment

    from skillarena.orchestration.report.report import Report

TRAJECTORIES_MB = 8.0
"""Compressed trajectories that a page holds unless told otherwise; about 17,000 episodes of the simulated backbone."""

_PARTS = Path(__file__).parent
_SHORT_NAMES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "table3": "Table 3",
    "by_task_type": "Task types",
    "k_curve": "K",
    "selection_costs": "Selecting",
    "cells": "All lines",
}
_SCRIPTS = ("unpack.js", "elements.js", "sorting.js", "state.js", "episode_list.js", "episode.js", "viewer.js")


def write_page(
    report: Report,
    archive: Archive,
    drawings: Sequence[Drawing],
    path: Path,
    *,
    trajectories_mb: float = TRAJECTORIES_MB,
) -> None:
    """Write the page; the same report and ledgers give the same bytes.

    Args:
        report: what it shows.
        archive: what the report is about, with the episodes that the page lists.
        drawings: its figures.
        path: the file.
        trajectories_mb: megabytes of compressed trajectories at most; tasks that some methods solve and others do not
            come first, and the page says what was left out.
    """
    index = PageIndex(archive.cells, report.lines)
    packed = pack(index, trajectories_mb)
    style = (_PARTS / "page.css").read_text(encoding="utf-8")
    script = "\n".join((_PARTS / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    shown = [table_view(table) for table in report.tables if table.rows]
    html = (
        _environment()
        .get_template("page.html")
        .render(
            report=report,
            tables=shown,
            short_names=_SHORT_NAMES,
            absent=[table.title for table in report.tables if not table.rows],
            comparisons=comparison_views(report.comparisons, report.lines),
            figures=[
                {"name": drawing.name, "title": drawing.title, "svg": inline_svg(drawing)} for drawing in drawings
            ],
            problems=(*report.problems, *packed.problems),
            packed=packed,
            blocks=packed.blocks,
            listed=len(index.episodes),
            index=_packed_index(index, packed),
            policy=_policy(style, script),
            style=style,
            script=script,
        )
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html, encoding="utf-8")


def _packed_index(index: PageIndex, packed: Packed) -> str:
    whole = {**index.columns(), "block": packed.block, "place": packed.place, "turn": TURN}
    return base64.b64encode(compressed(orjson.dumps(whole))).decode()


def _policy(style: str, script: str) -> str:
    """What the page may do: its own style and script by their digests, no other, and no connection to anywhere."""
    hashes = {name: _digest(text) for name, text in (("style-src", style), ("script-src", script))}
    allowed = [f"{name} '{value}'" for name, value in hashes.items()]
    return "; ".join(
        (
            "default-src 'none'",
            *allowed,
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(_PARTS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_without_commands,
    )


def _without_commands(value: Any) -> Any:
    """Text from data without characters that reorder or hide others; what the template calls safe as it is."""
    return plain(value) if type(value) is str else value
