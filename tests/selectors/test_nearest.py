"""The greatest products with a matrix: as a full sort finds them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.selectors import nearest as module
from skillarena.selectors.nearest import greatest, nearest


def by_sorting(values: np.ndarray, count: int) -> np.ndarray:
    return np.argsort(-values, axis=1, kind="stable")[:, :count]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 5), st.integers(1, 400), st.integers(2, 60), st.integers(0, 2**32 - 1), st.data())
def test_the_greatest_values_are_those_of_a_stable_sort(
    rows: int, size: int, levels: int, seed: int, data: st.DataObject
) -> None:
    values = np.random.default_rng(seed).integers(0, levels, (rows, size)).astype(np.float32)  # many equal ones
    values[values == 0] = -np.inf
    count = data.draw(st.integers(1, size))
    assert greatest(values, count).tolist() == by_sorting(values, count).tolist()


@pytest.mark.parametrize("cells", [1, 100, 1 << 20])
@pytest.mark.parametrize("queries", [1, 2, 9])
def test_blocks_find_what_the_whole_product_holds(queries: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_CELLS", cells)
    lot = np.random.default_rng(queries)
    vectors, asked = lot.integers(-2, 3, (500, 8)).astype(np.float32), lot.integers(-2, 3, (queries, 8))
    asked = asked.astype(np.float32)
    products = asked @ vectors.T  # whole numbers: the same in any order of summation
    for count in (1, 30, 500):
        rows, values = nearest(vectors, asked, count)
        expected = by_sorting(products, count)
        assert rows.tolist() == expected.tolist()
        assert values.tolist() == np.take_along_axis(products, expected, axis=1).tolist()


def test_one_query_gets_the_very_numbers_of_one_product() -> None:
    lot = np.random.default_rng(3)
    vectors, query = lot.standard_normal((10_007, 64), dtype=np.float32), lot.standard_normal((1, 64), dtype=np.float32)
    rows, values = nearest(vectors, query, 40)
    products = vectors @ query[0]
    assert rows.tolist() == by_sorting(products[None], 40).tolist()
    assert values.tolist() == [products[rows[0]].tolist()]
