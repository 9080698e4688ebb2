"""Figures of a report: token bars, curves over K, and reward against tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillarena.orchestration.report.figure_curves import draw_k_curves
from skillarena.orchestration.report.figure_scatter import draw_reward_against_tokens
from skillarena.orchestration.report.figure_style import Drawing, figure_style
from skillarena.orchestration.report.figure_tokens import draw_token_bars
from skillarena.orchestration.report.lines import Line

NAMES = ("tokens", "reward_tokens", "k_curves")
"""Of all figures that there can be."""
FORMS = ("svg", "png")


def draw(lines: Sequence[Line]) -> list[Drawing]:
    """Every figure there are numbers for."""
    with figure_style():
        drawn = [make(lines) for make in (draw_token_bars, draw_reward_against_tokens, draw_k_curves)]
    return [drawing for drawing in drawn if drawing is not None]


def write_figures(drawings: Sequence[Drawing], folder: Path) -> list[Path]:
    """Write figures as ``NAME.svg`` and ``NAME.png``; equal lines give equal files.

    Returns the files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for drawing in drawings:
        svg, png = folder / f"{drawing.name}.svg", folder / f"{drawing.name}.png"
        svg.write_text(drawing.svg(), encoding="utf-8")
        png.write_bytes(drawing.png())
        files += [svg, png]
    return files
