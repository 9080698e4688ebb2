"""Widths and line breaks of text in figures."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.orchestration.report.lettering import MISSING, clean, drawable, fit, width, wrap

WORDS = st.text(alphabet="abc XY/-水é ", max_size=80)


@pytest.mark.parametrize("bold", [False, True])
def test_widths_are_those_that_matplotlib_draws(bold: bool) -> None:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    line = "Find a mug and take it from its current location. Größe Ελληνικά"
    font = FontProperties(family="DejaVu Sans", size=9, weight="bold" if bold else "normal")
    drawn, _, _ = text_to_path.get_text_width_height_descent(line, font, ismath=False)
    assert width(line, 9, bold=bold) * 72 == pytest.approx(drawn, rel=0.01)


@given(text=WORDS, room=st.floats(0.3, 4), lines=st.integers(1, 4))
@settings(deadline=None)
def test_wrapped_lines_fit_and_lose_nothing_but_what_the_ellipsis_stands_for(
    text: str, room: float, lines: int
) -> None:
    wrapped = wrap(text, room, 8, lines=lines)
    assert len(wrapped) <= lines
    assert all(width(line, 8) <= room or len(line) <= 1 for line in wrapped)
    joined = "".join(wrapped).replace(" ", "")
    whole = text.replace(" ", "")
    assert joined == whole or (joined.endswith("…") and whole.startswith(joined[:-1]))


@given(text=WORDS, room=st.floats(0.3, 4))
@settings(deadline=None)
def test_a_shortened_name_fits_and_keeps_both_its_ends(text: str, room: float) -> None:
    shown = fit(text, room, 8)
    assert width(shown, 8) <= room
    if shown != text:
        head, tail = shown.split("…")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert 0 <= len(head) - len(tail) <= 1


def test_what_xml_or_a_terminal_would_choke_on_is_replaced() -> None:
    assert clean("a\x00b\x1b[1m\ufffe\nc\t d\u202e") == "a\ufffdb\ufffd[1m\ufffd c d\ufffd"


def test_signs_that_the_font_lacks_become_boxes() -> None:
    assert drawable("水 and é") == f"{MISSING} and é"
