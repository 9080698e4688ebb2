"""Benchmark results as Markdown: bounds, verdicts and units."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from harness import Result
from results_table import table


def test_each_line_says_what_was_reached() -> None:
    results = [
        Result("p", "a step", 5.432, "x", 5),
        Result("p", "memory", 1234.4, "MiB", 1000, at_least=False),
        Result("p", "start", 0.5, "s"),
    ]
    assert table([{**asdict(one), "reached": one.reached} for one in results]).splitlines()[2:] == [
        "| a step | 5.43 x | ≥ 5 | reached |",
        "| memory | 1,234 MiB | ≤ 1,000 | **missed** |",
        "| start | 0.5 s |  |  |",
    ]
