"""The suite of ALFWorld: every part is measured, and ours plays as stock does. No time is judged."""

from __future__ import annotations

from pathlib import Path

import bench_alfworld
import pytest

from skillarena.envs.alfworld import AlfworldBenchmark

pytestmark = pytest.mark.slow


def test_all_parts_are_measured_and_nothing_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("alfworld")
    from skillarena.envs.alfworld_generator import generate

    monkeypatch.setenv("SKILLARENA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    generate(tmp_path, "generated_seen", games_per_type=1, seed=3)
    tasks = AlfworldBenchmark(split="generated_seen", data=str(tmp_path)).tasks()
    size = bench_alfworld.Size(speed=2, steps=3, starts=1, games=3, resets=6, stock_resets=2, equality=2)
    results = {result.name: result for result in bench_alfworld.measure(tasks, size)}
    assert len(results) == 9
    assert all(result.part == "alfworld, generated games" for result in results.values())
    resets = [result for name, result in results.items() if name.startswith("load and reset")]
    assert [len(result.detail["ours_s"]) for result in resets] == [2, 2, 2]
    assert results["step with admissible commands, CPU"].detail["steps"] == 6
    assert results["one worker through 3 games: most memory"].reached
    assert len(results["memory growth in 6 resets"].detail["mib"]) == 6
    played = results["2 games in reference, random and garbage play: values that differ from stock"]
    assert played.value == 0
    assert played.detail["observations"] > 2 * 3 * 4
