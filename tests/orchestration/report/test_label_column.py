"""Names in a column: in order, apart, and near their points."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillarena.orchestration.report.label_column import spread

HEIGHTS = st.lists(st.floats(0, 1), max_size=40)


@given(HEIGHTS)
def test_names_are_apart_in_order_and_within(wanted: list[float]) -> None:
    found = spread(wanted, 0.02, 0.0, 1.0)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [found[index] for index in order]
    assert all(after - before >= 0.02 - 1e-9 for before, after in pairwise(placed))
    assert all(-1e-9 <= height <= 1 + 1e-9 for height in found)


def test_names_that_have_room_stay_at_their_points() -> None:
    assert spread([0.9, 0.1, 0.5], 0.1, 0.0, 1.0) == pytest.approx([0.9, 0.1, 0.5])


def test_a_crowd_is_centred_on_its_points() -> None:
    assert spread([0.5, 0.5, 0.5], 0.1, 0.0, 1.0) == pytest.approx([0.4, 0.5, 0.6])


def test_more_names_than_fit_share_the_height() -> None:
    assert spread([0.5] * 5, 0.5, 0.0, 1.0) == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])
