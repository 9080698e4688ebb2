"""Nodes of a cluster that die under a running sweep: Ray's own test cluster, several raylets on this machine."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from campaign import Campaign
from faults import Fault, kill_driver
from processes import MARK, Family
from stand_in_server import wait_until
from sweep_under_fire import SweepUnderFire

pytestmark = [pytest.mark.slow, pytest.mark.timeout(14_400)]

FAULTS = max(2, int(os.environ.get("CHAOS_FAULTS", "9")) // 8)
NODE = {"num_cpus": 2}


@pytest.fixture
def family(tmp_path: Path) -> Family:
    """All processes on the cluster's nodes."""
    return Family(tmp_path / "cluster")


@pytest.fixture
def cluster(family: Family, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    with monkeypatch.context() as patched:
        patched.setenv(MARK, family.mark(1))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
        cluster.add_node(**NODE)
        cluster.add_node(**NODE)
        cluster.wait_for_nodes(timeout=60)
    try:
        yield cluster
    finally:
        cluster.shutdown()
        family.end()


def lose_a_node(cluster: Any, *, with_workers: bool) -> Fault:
    """Kill a node's raylet, or everything on it at once as a power cut does; another node joins."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        node = rng.choice(sorted(cluster.worker_nodes, key=lambda node: str(node.unique_id)))
        raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
        doomed = [*(raylet.children(recursive=True) if with_workers else []), raylet]
        for process in doomed:
            process.kill()
        cluster.worker_nodes.discard(node)
        node.kill_all_processes(check_alive=False, allow_graceful=False)
        cluster.add_node(**NODE)
        return lambda: None

    name = "kill -9: all of a node" if with_workers else "kill -9: raylet of a node"
    return Fault(name, lambda sweep: sweep.code is None, inject)


def kill_on_a_node(family: Family, role: str) -> Fault:
    """SIGKILL for one process of a role, on any node."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        rng.choice(family.of(role, 1)).kill()
        return lambda: None

    return Fault(f"kill -9: {role}", lambda sweep: bool(family.of(role, 1)), inject)


def test_nodes_come_and_go(cluster: Any, family: Family, tmp_path: Path) -> None:
    campaign = Campaign(
        "three nodes",
        (
            "run",
            "-m",
            "cluster=existing",
            f"cluster.address={cluster.address}",
            "cluster.rollout_workers=4",
            "cluster.episodes_per_worker=2",
            "cluster.selection_workers=1",
            "cluster.model_cpus=1",
            "cluster.placement_timeout_s=120",
            "benchmark=alfworld",
            "selector=none,vector",
            "benchmark.limit=16",
            "backbone.latency_s=0.4",
            "run.retry_wait_s=0.2",
            "run.max_attempts=20",
            "run.max_lost_in_a_row=null",
        ),
        [
            lose_a_node(cluster, with_workers=False),
            lose_a_node(cluster, with_workers=True),
            kill_on_a_node(family, "rollout worker"),
            kill_on_a_node(family, "selection worker"),
            kill_driver(lambda sweep, rng: None, ""),
        ],
        tmp_path,
        tmp_path / "cache",
        {},
    )
    assert len(campaign.play(FAULTS)) == FAULTS
    for role in ("rollout worker", "selection worker", "governor of calls"):
        assert wait_until(lambda role=role: not family.of(role, 1), 90), f"a {role} is left on the nodes"  # type: ignore[misc]
