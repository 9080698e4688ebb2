"""The progress of a sweep in plain lines."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from skillarena.orchestration import progress
from skillarena.orchestration.progress import Progress


def test_the_time_left_runs_down_while_nothing_finishes(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    out = io.StringIO()
    drawn = Progress(Console(file=out, width=200), every_s=0)
    totals = SimpleNamespace(scored=0, reward=0.0, tokens=0, infra_errors=0)
    state: Any = SimpleNamespace(done=0, resumed=0, cell=SimpleNamespace(tasks=range(10), name="c"), totals=totals)
    drawn.start([state])
    for clock[0], state.done in ((10.0, 0), (20.0, 2), (40.0, 2), (90.0, 2), (150.0, 2), (160.0, 8)):
        drawn.tick(0, 1, ())
    assert re.findall(r"ETA (\S+)", out.getvalue()) == ["-", "0:01:20", "0:01:00", "0:00:10", "overdue", "0:00:40"]
