"""Text in figures: how wide it is, where it breaks, and what the figures' font has no sign for."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from skillarena.orchestration.console import plain

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

MISSING = "\u25a1"
"""Stands for a character that the font lacks."""

_POINTS_AN_INCH = 72
_EM = 100  # size in points that widths are measured at
_NOT_IN_XML = re.compile("[\ufffe\uffff]")


def clean(text: object) -> str:
    """One line that is safe to draw: no control characters, no line feeds, nothing that XML forbids."""
    return " ".join(_NOT_IN_XML.sub("\ufffd", plain(text)).split())


def drawable(text: str) -> str:
    """The text with ``MISSING`` in place of what the font has no sign for."""
    known = _signs()
    return "".join(c if ord(c) in known else MISSING for c in text)


def width(text: str, size: float, *, bold: bool = False) -> float:
    """Inches that a line takes at ``size`` points."""
    return sum(_advance(c, bold) for c in text) * size / _POINTS_AN_INCH


def fit(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """The text, its middle left out where it is wider than ``room`` inches: names often differ at their ends."""
    if width(text, size, bold=bold) <= room:
        return text
    kept = len(text)
    while kept > 2:
        kept -= 1
        shorter = f"{text[: (kept + 1) // 2]}\u2026{text[len(text) - kept // 2 :]}"
        if width(shorter, size, bold=bold) <= room:
            return shorter
    return "\u2026"


def wrap(text: str, room: float, size: float, *, lines: int, bold: bool = False) -> list[str]:
    """The text in at most ``lines`` lines of ``room`` inches; what does not fit ends in an ellipsis."""
    wrapped: list[str] = []
    line = ""
    for word in _breakable(text, room, size, bold):
        longer = f"{line} {word}" if line else word
        if width(longer, size, bold=bold) <= room or not line:
            line = longer
            continue
        wrapped.append(line)
        line = word
    wrapped += [line] if line else []
    if len(wrapped) <= lines:
        return wrapped
    last = wrapped[lines - 1]
    while last and width(f"{last}\u2026", size, bold=bold) > room:
        last = last[:-1]
    return [*wrapped[: lines - 1], f"{last.rstrip()}\u2026"]


def _breakable(text: str, room: float, size: float, bold: bool) -> list[str]:
    """Words, those wider than a line in pieces."""
    pieces = []
    for word in text.split():
        piece = ""
        for c in word:
            if piece and width(piece + c, size, bold=bold) > room:
                pieces.append(piece)
                piece = ""
            piece += c
        pieces.append(piece)
    return pieces


@cache
def _font(bold: bool) -> FT2Font:
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    font = FT2Font(findfont(FontProperties(family="DejaVu Sans", weight="bold" if bold else "normal")))
    font.set_size(_EM, _POINTS_AN_INCH)
    return font


@cache
def _signs() -> frozenset[int]:
    return frozenset(_font(False).get_charmap()) & frozenset(_font(True).get_charmap())


@cache
def _advance(character: str, bold: bool) -> float:
    """In ems. What the font lacks a viewer takes from another one, in which it is at most an em wide."""
    if ord(character) not in _signs():
        return 0.0 if unicodedata.combining(character) else 1.0
    from matplotlib.ft2font import LoadFlags

    glyph = _font(bold).load_char(ord(character), flags=LoadFlags.NO_HINTING)
    return float(glyph.linearHoriAdvance) / 65536 / _EM
