"""A provider and an MLflow server that die, freeze and come back: episodes and records are complete at the end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from campaign import Campaign
from command import cells, rows_of, run_command
from faults import kill_driver
from processes import python_path
from services import Service, free_port, pause, restart
from sweep_under_fire import SweepUnderFire

from skillarena.orchestration.ledger import read_config
from skillarena.orchestration.tracking_tags import CELL_TAG

pytestmark = [pytest.mark.slow, pytest.mark.timeout(14_400)]

FAULTS = max(3, int(os.environ.get("CHAOS_FAULTS", "9")) // 5)
HERE = Path(__file__).parent
PATHS = python_path(HERE, HERE.parent / "orchestration")
KEY = "a-key-for-a-stub"


def provider(folder: Path) -> tuple[Service, str]:
    port = free_port()
    flags = ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", "stub"]
    service = Service(
        "provider",
        [sys.executable, "-m", "deterministic_server", *flags],
        f"http://127.0.0.1:{port}/health",
        folder / "provider.log",
        {"STAND_IN": "well", "STAND_IN_LATENCY": "0.2", "VLLM_API_KEY": KEY, "PYTHONPATH": PATHS},
    )
    return service, f"http://127.0.0.1:{port}/v1"


def tracking_server(folder: Path) -> tuple[Service, str]:
    port = free_port()
    store = [f"--backend-store-uri=sqlite:///{folder / 'mlflow.db'}", f"--artifacts-destination={folder / 'artifacts'}"]
    service = Service(
        "MLflow server",
        [sys.executable, "-m", "mlflow", "server", "--host=127.0.0.1", f"--port={port}", "--workers=1", *store],
        f"http://127.0.0.1:{port}/health",
        folder / "mlflow.log",
    )
    return service, f"http://127.0.0.1:{port}"


def check_records(sweep: SweepUnderFire, uri: str) -> None:
    """After ``skillarena sync`` MLflow has every row of this sweep once."""
    from mlflow import MlflowClient

    synced = run_command("sync", "outputs", cache=sweep.cache, cwd=sweep.folder)
    assert synced.returncode == 0, synced.stderr
    client = MlflowClient(uri)
    (experiment,) = client.search_experiments(filter_string=f"name = '{sweep.folder.name}'")
    runs = {run.data.tags.get(CELL_TAG, ""): run for run in client.search_runs([experiment.experiment_id])}
    for cell in cells(sweep.folder / "outputs"):
        run = runs[read_config(cell)["cell"]["id"]]
        points = client.get_metric_history(run.info.run_id, "episode/reward")
        assert sorted(point.value for point in points) == sorted(row.reward for row in rows_of(cell))
        assert len({point.step for point in points}) == len(points)
        assert run.info.status == "FINISHED"


def test_a_provider_and_mlflow_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    api, url = provider(tmp_path / "services")
    mlflow, uri = tracking_server(tmp_path / "services")
    with api, mlflow:
        campaign = Campaign(
            "provider and MLflow",
            (
                "run",
                "-m",
                "backbone=openai_compatible",
                f"backbone.base_url={url}",
                "backbone.model=stub",
                "backbone.timeout_s=3",
                "backbone.max_retries=20",
                "backbone.max_wait_s=2",
                f"tracking.uri={uri}",
                "tracking.experiment={sweep}",
                "tracking.flush_every_s=1",
                "benchmark=alfworld",
                "selector=none,vector",
                "benchmark.limit=12",
                "agent.max_turns=12",
                "cluster.rollout_workers=2",
                "run.retry_wait_s=0.2",
                "run.max_attempts=20",
            ),
            [restart(api), pause(api), restart(mlflow), pause(mlflow), kill_driver(lambda sweep, rng: None, "")],
            tmp_path,
            tmp_path / "cache",
            {"OPENAI_API_KEY": KEY},
            check=lambda sweep: check_records(sweep, uri),
        )
        assert len(campaign.play(FAULTS)) == FAULTS
