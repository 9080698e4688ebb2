"""How every figure looks: colours by method, the same font everywhere, and files that are equal for equal data."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.report.grid import reading_order, without_halves
from skillarena.orchestration.report.lettering import clean, drawable, wrap
from skillarena.orchestration.report.lines import Line, Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2430"
"""Text and axes."""
QUIET = "#737a87"
"""What is read second: grid, ticks, notes."""
PAPER = "#ffffff"

_COLOURS = {
    "none": "#8a8f99",
    "random": "#b5b9c1",
    "vanilla": "#ddaa33",
    "vector": "#999933",
    "llm_selector": "#e69f00",
    "skillrouter": "#009e73",
    "graph_of_skills": "#cc79a7",
    "skilldag": "#d55e00",
    "spem": "#882255",
    "without_parsing": "#88ccee",
    "without_edges": "#56b4e9",
    "without_split": "#3d9bd6",
    "skillreranker": "#0072b2",
    "oracle": "#44546a",
}
"""By selector. From the palettes of Okabe and Ito and of Paul Tol, which readers with any
kind of colour blindness can tell apart; no figure needs colour to be read."""
_OTHERS = ("#44aa99", "#aa4499", "#cc6677", "#117733")

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.color": INK,
    "text.parse_math": False,
    "axes.labelcolor": INK,
    "axes.edgecolor": QUIET,
    "axes.facecolor": "none",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.grid": True,
    "grid.color": QUIET,
    "grid.alpha": 0.22,
    "grid.linewidth": 0.6,
    "xtick.color": QUIET,
    "xtick.labelcolor": QUIET,
    "ytick.color": QUIET,
    "ytick.labelcolor": QUIET,
    "hatch.linewidth": 0.6,
    "savefig.facecolor": PAPER,
    "savefig.dpi": 150,
    "svg.fonttype": "path",
    "svg.hashsalt": "skillarena",
}


@dataclass(frozen=True)
class Drawing:
    """One finished figure."""

    name: str
    """Stem of its files."""
    title: str
    description: str
    """What it shows, for readers who do not see it."""
    figure: Figure = field(repr=False)

    def svg(self) -> str:
        """As SVG; text is drawn as shapes, so it looks the same everywhere."""
        buffer = io.StringIO()
        with figure_style():
            self.figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        return buffer.getvalue()

    def png(self) -> bytes:
        """As PNG with 150 dots per inch."""
        buffer = io.BytesIO()
        with figure_style():
            self.figure.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()


@contextmanager
def figure_style() -> Iterator[None]:
    """Everything drawn and saved within looks the same whatever the user's own settings of matplotlib are."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        yield


def colour_of(line: Line) -> str:
    """The method's colour: always the same, and shared with its variants, for example ``skilldag_frozen``."""
    known = _family(line.selector)
    return _COLOURS[known] if known else _OTHERS[zlib.crc32(line.selector.encode()) % len(_OTHERS)]


def _family(selector: str) -> str:
    return max((name for name in _COLOURS if selector == name or selector.startswith(f"{name}_")), key=len, default="")


def shown(lines: Sequence[Line]) -> list[Line]:
    """Lines worth a mark of their own, in reading order: the mean of one and two skills stands for both sizes."""
    return sorted(without_halves(lines), key=reading_order)


def label(text: str, room: float, size: float, lines: int = 1) -> str:
    """A name in letters the font has, on at most so many lines of ``room`` inches at ``size`` points."""
    return "\n".join(wrap(drawable(clean(text)), room, size, lines=lines))


def name_panel(axes: Axes, setting: Setting, lines: Sequence[Line]) -> None:
    """Above a panel: the tasks, and below them the model that played."""
    room = axes.bbox.width / axes.figure.dpi
    backbone = setting.backbone
    if any(line.simulated for line in lines) and "simulated" not in backbone:
        backbone += " (simulated)"
    above: dict[str, Any] = {"textcoords": "offset points", "xycoords": "axes fraction", "va": "bottom"}
    axes.annotate(label(f"{setting.benchmark} {setting.split}", room, 8.5), (0, 1), (0, 17), fontsize=8.5, **above)
    axes.annotate(label(backbone, room, 7.5), (0, 1), (0, 6), fontsize=7.5, color=QUIET, **above)


def headed(title: str, lines: Sequence[Line]) -> str:
    """A title that says when no language model is behind the numbers."""
    simulated = [line.simulated for line in lines]
    extent = "" if all(simulated) else "some "
    return f"{title} ({extent}SIMULATED: no language model)" if any(simulated) else title


@dataclass(frozen=True, slots=True)
class Space:
    """What surrounds a panel, in inches."""

    left: float
    right: float
    below: float
    margin: float = 0.12
    """Left of the first column, beside ``left``."""


_HEADING = 0.62
_PANEL_TITLE = 0.48


def panels(count: int, across: int, size: tuple[float, float], space: Space) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels of ``size`` inches, ``across`` beside each other, and room for its heading."""
    from matplotlib.figure import Figure

    across = min(count, across)
    down = -(-count // across)
    one = (space.left + size[0] + space.right, _PANEL_TITLE + size[1] + space.below)
    whole = (space.margin + across * one[0], _HEADING + down * one[1])
    figure = Figure(figsize=whole)
    axes = []
    for place in range(count):
        left = space.margin + (place % across) * one[0] + space.left
        top = _HEADING + (place // across) * one[1] + _PANEL_TITLE
        axes.append(
            figure.add_axes((left / whole[0], 1 - (top + size[1]) / whole[1], size[0] / whole[0], size[1] / whole[1]))
        )
    return figure, axes


def head(figure: Figure, title: str, note: str) -> None:
    """Title and note above all panels, at the left."""
    left, inch = 0.12 / figure.get_figwidth(), 1 / figure.get_figheight()
    figure.text(left, 1 - 0.1 * inch, title, va="top", fontsize=10.5, fontweight="bold")
    figure.text(left, 1 - 0.36 * inch, note, va="top", fontsize=7.5, color=QUIET)
