"""The suite of retrieval runs, and what it finds is what a full sort finds. No time is judged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    import bench_retrieval

    yield bench_retrieval
    sys.modules.pop("bench_retrieval")


def test_all_parts_are_measured_and_every_search_finds_the_nearest(suite, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    lines = [f'{{"skill_id": "s{n}", "name": "skill {n}", "description": "", "body": "b"}}\n' for n in range(90)]
    pool.write_text("".join(lines))
    results = list(suite.bench(quick=True, pool=pool, sizes=(100, 2000)))
    values = {result.name: result for result in results}
    assert len(values) == len(results)
    for size in ("100", "2,000"):
        assert values[f"{size} skills: top 30 of 9 queries that differ from a full sort"].value == 0
        held = values[f"{size} skills: memory of 4 processes' indexes over one process's"].detail
        assert held["file_bytes"] == int(size.replace(",", "")) * 4096 + 4  # the vectors and a checksum
        assert held["one_bytes"] != held["4_bytes"]  # at this size other memory that is shared makes them any number
        for words in ("build the index", "load the index", "top 30, one query", "top 30, 64 at once, each"):
            found = [result for name, result in values.items() if name.startswith(f"{size} skills: {words}")]
            assert found and all(result.value > 0 for result in found)
    assert values["2,000 skills: build the index, embedding left out"].detail["file_bytes"] == 2000 * 4096 + 4


def test_texts_are_the_pools_then_numbered_copies(suite) -> None:
    assert suite._texts(["a", "b"], 1) == ["a"]
    assert suite._texts(["a", "b"], 5) == ["a", "b", "a 2", "b 3", "a 4"]
    assert len(set(suite._texts([], 50))) == 50
