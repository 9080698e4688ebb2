"""Reward against tokens: what each method reaches for what it takes, one panel for each setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.report.figure_style import (
    PAPER,
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
from skillarena.orchestration.report.label_column import spread
from skillarena.orchestration.report.lettering import width
from skillarena.orchestration.report.lines import Line
from skillarena.orchestration.summary import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACROSS = 2
_WIDTH = 3.4  # inches of a panel without its names
_NAMES = 2.3  # inches for names at most
_NAME_HEIGHT = 0.155
_SIZE = 6.8
_WIDE = 4.0  # ratio of the most to the least tokens from which on the axis is logarithmic


def draw_reward_against_tokens(lines: Sequence[Line]) -> Drawing | None:
    """A point with both intervals for each method, and its name at the same height; None without a scored episode."""
    kept = [line for line in shown(lines) if line.scored.any()]
    if not kept:
        return None
    settings = sorted({line.setting for line in kept})
    by_setting = [[line for line in kept if line.setting == setting] for setting in settings]
    height = max(3.2, _NAME_HEIGHT * max(map(len, by_setting)))
    names = max(width(label(line.method, _NAMES, _SIZE), _SIZE) for line in kept)
    space = Space(left=0.62, right=names + 0.35, below=0.55)
    figure, axes = panels(len(settings), _ACROSS, (_WIDTH, height), space)
    for place, here in enumerate(by_setting):
        name_panel(axes[place], settings[place], here)
        _panel(axes[place], here, height)
    title = headed("Reward against tokens", kept)
    head(figure, title, "Crosses: 95 % intervals. Hollow: not every task is scored. Upper left is better.")
    words = f"One point for each of {len({line.method for line in kept})} methods in {len(settings)} settings."
    return Drawing("reward_tokens", title, words, figure)


def _panel(axes: Axes, lines: Sequence[Line], height: float) -> None:
    from matplotlib.ticker import EngFormatter, LogLocator

    tokens = [line.estimates["total_tokens"] for line in lines]
    rewards = [line.estimates["reward"] for line in lines]
    for line, across, up in zip(lines, tokens, rewards, strict=True):
        colour = colour_of(line)
        axes.plot(_ends(across), [up.mean] * 2, color=colour, linewidth=1.3, alpha=0.6)
        axes.plot([across.mean] * 2, _ends(up), color=colour, linewidth=1.3, alpha=0.6)
        face = colour if line.complete else PAPER
        axes.plot(across.mean, up.mean, "o", color=colour, markersize=5.5, markerfacecolor=face, zorder=3)
    means = [found.mean for found in tokens]
    if min(means) > 0 and max(means) / min(means) > _WIDE:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.minorticks_off()
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("total tokens of an episode, mean" + (", logarithmic" if axes.get_xscale() == "log" else ""))
    axes.set_ylabel("reward, points, mean")
    axes.margins(0.06)
    _name_points(axes, lines, list(zip(means, [found.mean for found in rewards], strict=True)), height)


def _ends(found: Estimate) -> tuple[float, float]:
    return (found.mean if found.low is None else found.low, found.mean if found.high is None else found.high)


def _name_points(axes: Axes, lines: Sequence[Line], points: Sequence[tuple[float, float]], height: float) -> None:
    """Names in a column at the right, ordered like the points, each led to its point by a line of its colour."""
    axes.autoscale_view()
    axes.autoscale(False)  # the names' lines must not move the limits that their places follow from
    places = (axes.transScale + axes.transLimits).transform(points)  # fractions of the panel
    heights = spread([rise for _, rise in places], _NAME_HEIGHT / height, 0.02, 0.98)
    for line, (across, rise), at in zip(lines, places, heights, strict=True):
        within: dict[str, Any] = {"transform": axes.transAxes, "zorder": 1}
        axes.plot([across, 1.04], [rise, at], ":", color=colour_of(line), linewidth=0.8, clip_on=False, **within)
        axes.text(1.05, at, label(line.method, _NAMES, _SIZE), va="center", fontsize=_SIZE, **within)
