"""A sheet to draw on, in inches from its upper left corner, that gives the same bytes for the same strokes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from skillarena.orchestration.report.lettering import clean, drawable

if TYPE_CHECKING:
    from matplotlib.patches import Patch

Align = Literal["left", "center", "right"]
Format = Literal["svg", "png"]

_DPI = 150
_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",  # DejaVu Sans, which comes with matplotlib; SVG viewers without it take another
    "svg.fonttype": "none",  # text stays text: it can be searched, and viewers find signs that the font lacks
    "svg.hashsalt": "skillarena",
    "text.hinting": "none",  # widths as ``lettering`` knows them
}


class Sheet:
    """A white page of ``width`` by ``height`` inches, to be made, drawn on and saved within ``own_style``.

    What comes later covers what is there. Text is never markup.
    """

    def __init__(self, width: float, height: float, form: Format) -> None:
        from matplotlib.figure import Figure

        self.width, self.height = width, height
        self._form = form
        self._strokes = count(1)
        self.has_missing = False
        """A text had characters that the font lacks, and they are shown as ``MISSING``."""
        self._figure = Figure(figsize=(width, height), dpi=_DPI, facecolor="white")
        self._axes = self._figure.add_axes((0, 0, 1, 1))
        self._axes.set(xlim=(0, width), ylim=(height, 0))
        self._axes.axis("off")

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        color: str = "#1a1a1a",
        align: Align = "left",
        bold: bool = False,
    ) -> None:
        """One line with its base line at ``y``."""
        shown = clean(text)
        if self._form == "png":
            shown, raw = drawable(shown), shown
            self.has_missing |= shown != raw
        self._axes.text(
            x,
            y,
            shown,
            size=size,
            color=color,
            ha=align,
            va="baseline",
            weight="bold" if bold else "normal",
            parse_math=False,
            zorder=next(self._strokes),
        )

    def box(self, x: float, y: float, width: float, height: float, color: str, alpha: float = 1.0) -> None:
        """A filled rectangle, (x, y) its upper left corner."""
        from matplotlib.patches import Rectangle

        self._add(Rectangle((x, y), width, height, facecolor=color, alpha=alpha, linewidth=0))

    def line(
        self,
        points: Sequence[tuple[float, float]],
        color: str,
        width: float = 0.6,
        *,
        dashed: bool = False,
    ) -> None:
        """A line through points, ``width`` in points."""
        from matplotlib.lines import Line2D

        xs, ys = zip(*points, strict=True)
        line = Line2D(xs, ys, color=color, linewidth=width, zorder=next(self._strokes))
        if dashed:
            line.set_dashes((3, 2))
        self._axes.add_line(line)

    def polygon(self, points: Sequence[tuple[float, float]], color: str, alpha: float = 1.0) -> None:
        """A filled polygon."""
        from matplotlib.patches import Polygon

        self._add(Polygon(list(points), closed=True, facecolor=color, alpha=alpha, linewidth=0))

    def arrow(self, start: float, end: float, y: float, color: str, *, thickness: float, alpha: float) -> None:
        """An arrow to the right with a dot at its start, ``thickness`` in inches."""
        half, head = thickness / 2, thickness + 0.01
        shaft = max(end - max(0.09, thickness), start)
        self.polygon(
            [
                (start, y - half),
                (shaft, y - half),
                (shaft, y - head),
                (end, y),
                (shaft, y + head),
                (shaft, y + half),
                (start, y + half),
            ],
            color,
            alpha,
        )
        self.disc(start, y, 0.03, color)

    def disc(self, x: float, y: float, radius: float, color: str, *, filled: bool = True) -> None:
        """A disc, or a white one with a rim."""
        from matplotlib.patches import Circle

        self._add(Circle((x, y), radius, facecolor=color if filled else "white", edgecolor=color, linewidth=0.8))

    def curve(
        self, start: tuple[float, float], end: tuple[float, float], bulge: float, color: str, width: float
    ) -> None:
        """A curve that bends to the right by ``bulge`` inches."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        reach = max(start[0], end[0]) + bulge * 4 / 3
        points = [start, (reach, start[1]), (reach, end[1]), end]
        path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        self._add(PathPatch(path, facecolor="none", edgecolor=color, linewidth=width))

    def _add(self, patch: Patch) -> None:
        patch.set_zorder(next(self._strokes))
        self._axes.add_patch(patch)

    def to_bytes(self) -> bytes:
        """The page as a file."""
        out = BytesIO()
        metadata = {"Date": None, "Creator": None} if self._form == "svg" else {"Software": None}
        with warnings.catch_warnings():
            # In an SVG the viewer's fonts show what this one lacks; in a PNG nothing is left that it lacks.
            warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from", category=UserWarning)
            self._figure.savefig(out, format=self._form, metadata=metadata)
        return out.getvalue()


@contextmanager
def own_style() -> Iterator[None]:
    """Within it a sheet looks the same whatever the user's own settings of matplotlib are."""
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        yield
