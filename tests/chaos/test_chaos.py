"""Processes killed and frozen, files broken and clocks moved in running sweeps: nothing is lost, doubled or changed.

``make test-chaos`` injects some hundred faults (``CHAOS_FAULTS=N``: another number); otherwise there are a few of each.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from campaign import Campaign
from faults import append_garbage, damage_cache, freeze, kill, kill_driver, skew_clock, tear_ledger
from processes import python_path
from tiny_cross_encoder import make_cross_encoder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(14_400)]

FAULTS = int(os.environ.get("CHAOS_FAULTS", "9"))
HERE = Path(__file__).parent

QUICK_TO_RECOVER = (
    "run.retry_wait_s=0.2",
    "run.max_attempts=20",  # more than can be hit
    "run.max_lost_in_a_row=null",
    "run.stall_timeout_s=30",
    "agent.env_deadline_s=30",
)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def test_both_benchmarks_with_models_sessions_and_learning(cache: Path, tmp_path: Path) -> None:
    skew = tmp_path / "skew"
    campaign = Campaign(
        "simulated backbone",
        (
            "run",
            "-m",
            "benchmark=alfworld,scienceworld",
            "selector=skillreranker,skilldag",
            "reranker=cross_encoder",
            f"reranker.model={make_cross_encoder(tmp_path / 'reranker')}",
            "benchmark.limit=6",
            "agent.max_turns=20",
            "backbone.latency_s=0.2",
            "cluster.rollout_workers=2",
            *QUICK_TO_RECOVER,
        ),
        [
            kill("rollout worker"),
            kill("selection worker"),
            kill("model process (embedder, reranker)"),
            kill("session process"),
            kill("governor of calls"),
            kill("JVM"),
            kill("raylet"),
            kill_driver(lambda sweep, rng: None, ""),
            kill_driver(tear_ledger, ", ledger's last line torn"),
            kill_driver(append_garbage, ", garbage behind the ledger"),
            kill_driver(damage_cache, ", a cache file damaged"),
            freeze("rollout worker"),
            freeze("selection worker"),
            freeze("model process (embedder, reranker)"),
            freeze("session process"),
            freeze("JVM"),
            skew_clock(skew),
        ],
        tmp_path,
        cache,
        {"PYTHONPATH": python_path(HERE / "skewed_clock"), "SKEWED_BY": str(skew)},
    )
    assert len(campaign.play(FAULTS * 2 // 3)) == FAULTS * 2 // 3


def test_model_servers_that_the_sweep_starts(cache: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text('{"num_attention_heads": 8}')
    campaign = Campaign(
        "model servers",
        (
            "run",
            "-m",
            "backbone=smollm2",
            "backbone._target_=deterministic_server.DeterministicBackbone",
            f"backbone.model={model}",
            f"+backbone.folder={model}",
            "+backbone.latency_s=0.2",
            "backbone.replicas=2",
            "backbone.num_cpus=1",
            "backbone.timeout_s=5",
            "backbone.failover_timeout_s=120",
            "benchmark=alfworld",
            "selector=none,vector",
            "benchmark.limit=12",
            "agent.max_turns=12",
            "cluster.rollout_workers=2",
            *QUICK_TO_RECOVER,
        ),
        [
            kill("backbone server"),
            kill("keeper of a server"),
            kill("router of servers"),
            kill("rollout worker"),
            kill_driver(lambda sweep, rng: None, ""),
            freeze("backbone server"),
        ],
        tmp_path,
        cache,
        {"PYTHONPATH": python_path(HERE, HERE.parent / "orchestration")},
    )
    assert len(campaign.play(FAULTS // 3)) == FAULTS // 3
