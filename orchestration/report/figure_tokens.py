"""Token bars: what an episode takes with each method, one panel for each setting (figure 3 of arXiv 2607.06283)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.report.figure_style import (
    INK,
    PAPER,
    QUIET,
    Drawing,
    Space,
    colour_of,
    head,
    headed,
    label,
    name_panel,
    panels,
    shown,
)
from skillarena.orchestration.report.lettering import width
from skillarena.orchestration.report.lines import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURE = "total_tokens"
_ACROSS = 4  # panels beside each other at most
_PANEL_WIDTH = {1: 5.0, 2: 3.4}  # inches by panels beside each other; 2.5 for more
_BAR = 0.25  # inches from one bar to the next
_NAMES = 2.1  # inches for names at most; longer ones take two lines
_SIZE = 7


def draw_token_bars(lines: Sequence[Line]) -> Drawing | None:
    """Mean total tokens of the agent's calls by method and setting; None without a scored episode."""
    kept = shown(lines)
    if not any(line.scored.any() for line in kept):
        return None
    settings = sorted({line.setting for line in kept})
    methods = list(dict.fromkeys(line.method for line in kept))
    names = [label(method, _NAMES, _SIZE, lines=2) for method in methods]
    margin = max(width(line, _SIZE) for name in names for line in name.split("\n"))
    size = (_PANEL_WIDTH.get(min(len(settings), _ACROSS), 2.5), _BAR * len(methods))
    figure, axes = panels(len(settings), _ACROSS, size, Space(0.2, 0.1, 0.42, margin))
    for place, setting in enumerate(settings):
        here = {line.method: line for line in kept if line.setting == setting}
        name_panel(axes[place], setting, list(here.values()))
        axes[place].set_yticks(range(len(methods)), names if place % _ACROSS == 0 else [""] * len(methods))
        _panel(axes[place], methods, here)
    title = headed("Mean total tokens of an episode", kept)
    head(figure, title, "Bars: mean over scored tasks. Lines: 95 % interval. Hatched: not every task is scored.")
    words = f"Horizontal bars of {len(methods)} methods in {len(settings)} settings; tables give the same numbers."
    return Drawing("tokens", title, words, figure)


def _panel(axes: Axes, methods: Sequence[str], here: dict[str, Line]) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0, labelsize=_SIZE, labelcolor=INK)
    axes.tick_params(axis="x", labelsize=_SIZE)
    axes.grid(axis="y", visible=False)
    axes.spines["left"].set_visible(False)
    longest = max(_bar(axes, place, here.get(method)) for place, method in enumerate(methods))
    axes.set_xlim(0, longest * 1.36 or 1)
    axes.locator_params(axis="x", nbins=4)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def _bar(axes: Axes, place: int, line: Line | None) -> float:
    """Draw one method; returns how far it reaches."""
    found = line.estimates.get(_MEASURE) if line is not None else None
    if line is None or found is None:
        words = "not run" if line is None else f"no scored episode of {len(line.tasks)}"
        axes.text(0, place, f"  {words}", va="center", color=QUIET, fontsize=6.5, style="italic")
        return 0.0
    low, high = (found.mean if end is None else end for end in (found.low, found.high))
    hatching: dict[str, Any] = {} if line.complete else {"hatch": "/////", "edgecolor": PAPER}
    axes.barh(place, found.mean, height=0.68, facecolor=colour_of(line), linewidth=0, **hatching)
    axes.plot([low, high], [place, place], color=INK, linewidth=1.0, solid_capstyle="butt")
    words = f"{found.mean:,.0f}" + ("" if line.complete else f" ({line.scored.sum()}/{len(line.tasks)})")
    axes.annotate(words, (high, place), (4, 0), textcoords="offset points", va="center", fontsize=6.5)
    return high
