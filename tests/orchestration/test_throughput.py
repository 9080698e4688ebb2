"""A small version of ``benchmarks/throughput.py``: many episodes wait for a slow endpoint side by side."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from throughput import Load, env_seconds, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LOAD = Load(episodes=16, turns=40, latency_s=0.3)


def test_sixteen_episodes_wait_for_the_endpoint_together_in_one_process_and_in_four(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKILLARENA_CACHE", str(tmp_path))
    ideal = LOAD.episodes / (LOAD.latency_s + env_seconds(LOAD))
    one, four = run(LOAD, 1), run(LOAD, 4)
    assert one.most_at_once == four.most_at_once == 16
    assert one.turns_per_s >= 0.8 * ideal
    assert four.turns_per_s >= 0.9 * one.turns_per_s
