"""A disk that fills up under a running sweep, or refuses to be written: the command says so, and goes on later."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from campaign import Campaign
from disks import fill, forbid_writing, small_disk
from faults import kill

pytestmark = [pytest.mark.slow, pytest.mark.timeout(14_400)]

FAULTS = max(3, int(os.environ.get("CHAOS_FAULTS", "9")) // 10)


def test_a_disk_that_is_full_or_read_only(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk") as disk:
        campaign = Campaign(
            "small disk",
            (
                "run",
                "-m",
                "benchmark=alfworld",
                "selector=none,vector",
                "benchmark.limit=12",
                "backbone.latency_s=0.2",
                "cluster.rollout_workers=2",
                "run.retry_wait_s=0.2",
                "run.max_attempts=20",
            ),
            [fill(disk), forbid_writing(disk), kill("rollout worker")],
            tmp_path,
            tmp_path / "cache",
            {},
            outputs=disk,
        )
        assert len(campaign.play(FAULTS)) == FAULTS
