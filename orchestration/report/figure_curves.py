"""Curves over K: reward and tokens of a method against the number of candidates it chooses from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillarena.orchestration.report.figure_style import (
    INK,
    PAPER,
    Drawing,
    Space,
    colour_of,
    head,
    headed,
    label,
    name_panel,
    panels,
)
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.settings import digest

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MEASURES = {"reward": "reward, points", "total_tokens": "total tokens of an episode"}
_MARKERS = "osD^vPX"


@dataclass(frozen=True)
class Series:
    """One method with several numbers of candidates, everything else equal."""

    method: str
    setting: Setting
    by_k: dict[int, Line]
    """Ascending."""


def series_over_k(lines: Sequence[Line]) -> list[Series]:
    """Lines that differ in K alone, where there are at least two with a scored episode."""
    found: dict[str, dict[int, Line]] = {}
    for line in lines:
        identity = line.cells[0].identity
        k = identity["selector"].get("k")
        if isinstance(k, int) and line.scored.any():
            selector = {key: value for key, value in identity["selector"].items() if key != "k"}
            rest = {key: value for key, value in identity.items() if key != "seed"}
            found.setdefault(digest([{**rest, "selector": selector}, line.sizes]), {})[k] = line
    several = [dict(sorted(by_k.items())) for by_k in found.values() if len(by_k) > 1]
    series = [Series(_without_k(by_k), next(iter(by_k.values())).setting, by_k) for by_k in several]
    return sorted(series, key=lambda one: (one.setting, one.method))


def _without_k(by_k: dict[int, Line]) -> str:
    k, line = next(iter(by_k.items()))
    return line.method.replace(f" k={k}", "", 1)


def draw_k_curves(lines: Sequence[Line]) -> Drawing | None:
    """Reward and tokens against K with 95 % bands, a row for each setting; None where no method has several K."""
    series = series_over_k(lines)
    if not series:
        return None
    settings = sorted({one.setting for one in series})
    figure, axes = panels(2 * len(settings), 2, (3.6, 2.4), Space(left=0.66, right=0.2, below=0.5))
    for row, setting in enumerate(settings):
        here = [one for one in series if one.setting == setting]
        for column, (measure, words) in enumerate(_MEASURES.items()):
            panel = axes[2 * row + column]
            name_panel(panel, setting, [line for one in here for line in one.by_k.values()])
            _panel(panel, here, measure)
            panel.set_ylabel(words)
        axes[2 * row].legend(frameon=False, fontsize=7, labelcolor=INK, handlelength=1.6)
    title = headed("Reward and tokens by number of candidates", [line for one in series for line in one.by_k.values()])
    head(figure, title, "Bands: 95 % interval. Hollow marks: not every task is scored.")
    words = f"Curves of {len({one.method for one in series})} methods in {len(settings)} settings."
    return Drawing("k_curves", title, words, figure)


def _panel(axes: Axes, series: Sequence[Series], measure: str) -> None:
    from matplotlib.ticker import EngFormatter

    for marker, one in zip(_MARKERS * len(series), series, strict=False):
        lines, ks = list(one.by_k.values()), list(one.by_k)
        found = [line.estimates[measure] for line in lines]
        colour = colour_of(lines[0])
        means = [made.mean for made in found]
        lows = [made.mean if made.low is None else made.low for made in found]
        highs = [made.mean if made.high is None else made.high for made in found]
        axes.fill_between(ks, lows, highs, color=colour, alpha=0.16, linewidth=0)
        axes.plot(
            ks, means, color=colour, linewidth=1.6, marker=marker, markersize=4.5, label=label(one.method, 2.4, 7)
        )
        partial = [(k, mean) for k, mean, line in zip(ks, means, lines, strict=True) if not line.complete]
        if partial:
            axes.plot(*zip(*partial, strict=True), marker, color=colour, markersize=4.5, markerfacecolor=PAPER)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xticks(sorted({k for one in series for k in one.by_k}))
    axes.set_xlabel("K, candidates to choose from")
