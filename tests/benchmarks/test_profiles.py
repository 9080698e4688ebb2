"""Profiles name functions of what they profile, with shares of the whole."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import bench_alfworld
import profiles

from skillarena.envs.alfworld import AlfworldBenchmark

pytestmark = pytest.mark.slow


def test_alfworld_is_profiled_where_it_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("alfworld")
    from skillarena.envs.alfworld_generator import generate

    monkeypatch.setenv("SKILLARENA_CACHE", str(tmp_path / "cache"))
    generate(tmp_path, "generated_seen", games_per_type=1, seed=3)
    tasks = AlfworldBenchmark(split="generated_seen", data=str(tmp_path)).tasks()[:2]
    monkeypatch.setattr(bench_alfworld, "_tasks", lambda: tasks)
    for found in (profiles.alfworld_step(), profiles.alfworld_reset()):
        assert any(name.startswith("alfworld_engine.py") for name in found)
        assert sum(found.values()) == pytest.approx(1)


def test_the_loop_of_the_sweep_is_in_the_drivers_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "_UNITS", 500)
    assert any(name.startswith("sweep.py") for name in profiles.driver())
