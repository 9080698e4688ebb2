"""The suite of ScienceWorld: every part is measured, and ours plays as the stock wrapper does. No time is judged."""

from __future__ import annotations

from pathlib import Path

import bench_scienceworld
import pytest

from skillarena.envs.scienceworld import ScienceWorldBenchmark

pytestmark = pytest.mark.slow


def test_all_parts_are_measured_and_nothing_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scienceworld")
    monkeypatch.setenv("SKILLARENA_CACHE", str(tmp_path))
    monkeypatch.setattr(bench_scienceworld, "ENVS", 2)
    tasks = ScienceWorldBenchmark(task_types=["power-component", "lifespan-longest-lived"], limit=2).tasks()
    results = {result.name: result for result in bench_scienceworld.measure(tasks, steps=3, repeats=1)}
    assert len(results) == 10
    assert set(results["step, median over 2 task types"].detail["by_type"]) == {task.task_type for task in tasks}
    assert results["Java processes 5 s after kill -9 of their parent"].detail["before"] == 1
    for name, count in (
        ("Java processes 5 s after kill -9 of their parent", None),
        ("steps of 2 tasks that differ from the stock wrapper's", "compared"),
        ("2 environments at once, staggered and threaded: steps that differ from solo play", "steps"),
    ):
        assert results[name].value == 0
        assert count is None or results[name].detail[count] == 2 * 4
