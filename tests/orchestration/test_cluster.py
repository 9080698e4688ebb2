"""Several nodes: Ray's own test cluster, three raylets on this machine, joined by the real command."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from command import cells, command, environment, rows_of, run_command, wait_for_rows

from skillarena.orchestration.cluster import secrets_in

TIMEOUT_S = 420


def test_keys_are_found_wherever_a_section_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONE_KEY", "1")
    monkeypatch.setenv("TWO_KEY", "2")
    monkeypatch.delenv("NO_KEY", raising=False)
    sections = [{"api_key_env": "ONE_KEY"}, {"model": {"api_key_env": "TWO_KEY"}}, {"api_key_env": "NO_KEY"}, {}]
    assert secrets_in(sections) == {"ONE_KEY": "1", "TWO_KEY": "2"}


FROZEN_BEHIND_A_DEAD_RAYLET = """
import os, signal
import psutil, ray
from skillarena.orchestration.cluster import connected
from skillarena.orchestration.settings import ClusterSettings

class Worker:
    def pid(self): return os.getpid()

with connected(ClusterSettings(), 1):
    pid = ray.get(ray.remote(Worker).remote().pid.remote())
    [raylet] = [child for child in psutil.Process().children(recursive=True) if child.name() == "raylet"]
    raylet.kill()
    os.kill(pid, signal.SIGSTOP)  # before it notices
    print(pid, flush=True)
"""


@pytest.mark.slow
def test_a_worker_frozen_behind_a_dead_raylet_is_ended_with_the_command(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FROZEN_BEHIND_A_DEAD_RAYLET],
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
        timeout=120,
        check=True,
    )
    pid = int(done.stdout.split()[0])
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def three_nodes() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 4, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=2)
        cluster.add_node(num_cpus=2)
        cluster.wait_for_nodes(timeout=60)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_sweep_over_three_nodes_survives_the_loss_of_one(three_nodes: Any, tmp_path: Path) -> None:
    arguments = (
        "run",
        "-m",
        "cluster=existing",
        f"cluster.address={three_nodes.address}",
        "cluster.rollout_workers=4",
        "cluster.episodes_per_worker=2",
        "cluster.selection_workers=1",
        "cluster.model_cpus=1",
        "benchmark=alfworld,scienceworld",
        "selector=none,vector",
        "seed=0,1",
        "benchmark.limit=4",
        "backbone.latency_s=0.2",
        "run.retry_wait_s=0.1",
    )
    process = subprocess.Popen(
        command(*arguments),
        cwd=tmp_path,
        env=environment(tmp_path / "cache"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for_rows(process, tmp_path, 10, TIMEOUT_S)
        lost = three_nodes.worker_nodes.copy().pop()
        three_nodes.remove_node(lost, allow_graceful=False)
        out, err = process.communicate(timeout=TIMEOUT_S)
    finally:
        process.kill()
    assert process.returncode == 0, err
    folders = cells(tmp_path / "outputs")
    assert len(folders) == 8
    for folder in folders:
        rows = rows_of(folder)
        lines = (folder / "episodes.jsonl").read_text().splitlines()
        assert len(rows) == len(lines) == len({row.episode_id for row in rows}) == 4
        assert all(row.outcome in ("solved", "failed", "step_limit") for row in rows)
    nodes = Counter(row.node for folder in folders for row in rows_of(folder))
    assert len(nodes) == 3, nodes
    assert "a RolloutWorker was lost" in err
    assert "4/4" in out


@pytest.mark.slow
def test_an_address_without_a_cluster_says_how_to_get_one(tmp_path: Path) -> None:
    done = run_command(
        "run",
        "cluster=existing",
        "cluster.address=127.0.0.1:1",
        "benchmark.limit=1",
        cache=tmp_path / "cache",
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "no Ray cluster at cluster.address=127.0.0.1:1" in done.stderr
    assert "ray start --head" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_more_workers_than_the_cluster_can_place_names_both(three_nodes: Any, tmp_path: Path) -> None:
    done = run_command(
        "run",
        "cluster=existing",
        f"cluster.address={three_nodes.address}",
        "cluster.rollout_workers=32",
        "cluster.min_rollout_workers=32",
        "cluster.placement_timeout_s=20",
        "benchmark.limit=40",
        "selector=none",
        cache=tmp_path / "cache",
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "no room for another RolloutWorker" in done.stderr, done.stderr
    assert "8" in done.stderr
    assert "cluster.min_rollout_workers" in done.stderr
