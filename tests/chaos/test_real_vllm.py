"""A real vLLM server whose engine is killed under a running sweep: it starts again, and episodes end as before."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from injections import Injection, survived
from processes import has
from sweep_under_fire import SweepUnderFire, undisturbed

pytestmark = [pytest.mark.vllm, pytest.mark.long, pytest.mark.timeout(1800)]

ALONE = (  # replies depend on what else is in a batch
    "run",
    "backbone=smollm2",
    "backbone.max_model_len=4096",
    "backbone.max_tokens=32",
    "backbone.kv_cache_gib=1",
    "selector=none",
    "benchmark=alfworld",
    "benchmark.limit=3",
    "agent.max_turns=6",
    "cluster.rollout_workers=1",
    "cluster.episodes_per_worker=1",
    "run.retry_wait_s=0.2",
    "tracking.enabled=false",
)
STARTS_WITHIN_S = 900.0


def test_a_sweep_outlives_the_death_of_its_real_server(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    reference = undisturbed(tmp_path / "undisturbed", ALONE, cache, {}, STARTS_WITHIN_S)
    sweep = SweepUnderFire(tmp_path / "disturbed", ALONE, cache)
    try:
        sweep.start()
        sweep.wait_for_lines(0, STARTS_WITHIN_S)
        started = time.monotonic()
        victims = engines(sweep)
        assert victims, sweep.family.members()
        victims[0].kill()
        sweep.wait_for_lines(sweep.lines(), STARTS_WITHIN_S)
        recovery_s = time.monotonic() - started
        sweep.finish(STARTS_WITHIN_S)
        assert sweep.starts == 1
        assert len(list((sweep.folder / "outputs" / "servers").iterdir())) == 2, "the server did not start again"
        assert sweep.family.is_gone(90)
        assert without_cache(sweep.results()) == without_cache(reference)
    finally:
        sweep.end()
    survived([Injection("real vLLM", "kill -9: engine", recovery_s)])


def engines(sweep: SweepUnderFire) -> list[psutil.Process]:
    """Processes that hold the model."""
    return list(filter(has("EngineCore"), sweep.family.members()))


def without_cache(results: dict[str, Any]) -> dict[str, Any]:
    """A server that has just started has no prefix in its cache."""
    return {
        cell: {
            task: {name: value for name, value in row.items() if name != "cached_tokens"} for task, row in rows.items()
        }
        for cell, rows in results.items()
    }
