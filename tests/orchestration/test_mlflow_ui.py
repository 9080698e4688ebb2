"""What people see: a small real sweep in `mlflow server`, by REST and in a browser."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from command import cells, run_command
from steered_browser import Browser

from skillarena.orchestration.report.mlflow_archive import fetch
from skillarena.orchestration.tracking_sync import sync

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True)
class Served:
    """The store of a finished sweep and a server on it."""

    output: Path
    url: str

    def call(self, method: str, **body: Any) -> Any:
        answer = httpx.post(f"{self.url}/api/2.0/mlflow/{method}", json=body, timeout=30)
        answer.raise_for_status()
        return answer.json()

    @property
    def experiment(self) -> str:
        answer = httpx.get(
            f"{self.url}/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": "skillarena"}, timeout=30
        )
        return str(answer.json()["experiment"]["experiment_id"])

    def runs(self, kind: str) -> list[dict[str, Any]]:
        found = self.call("runs/search", experiment_ids=[self.experiment], filter=f"tags.kind = '{kind}'")
        return list(found.get("runs", []))

    def page(self, place: str) -> str:
        return f"{self.url}/#/experiments/{self.experiment}/{place}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ui")
    done = run_command(
        *("run", "-m", "benchmark.limit=2", "selector=none,vector", "seed=0,1"),
        *("run.bootstrap_resamples=200", "tracking.traces=true", "cluster.rollout_workers=2"),
        cache=folder / "cache",
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "MLflow is behind" not in done.stderr
    output = folder / "outputs"
    with _server(output / "mlflow.db", folder) as url:
        yield Served(output, url)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile", width=1800, height=1300) as browser:
        yield browser


def _wait_for_text(browser: Browser, text: str) -> None:
    browser.wait(f"document.body?.innerText.includes({json.dumps(text)})")


def test_the_runs_table_shows_the_cells_below_their_sweep(served: Served, browser: Browser) -> None:
    browser.open(served.page("runs"))
    _wait_for_text(browser, "sweep ")
    shown = browser.evaluate("document.body.innerText")
    assert "none alfworld/generated_seen simulated seed=0" not in shown
    browser.wait("!!document.querySelector('[data-component-id*=runnamecellrenderer]')")
    browser.evaluate("void document.querySelector('[data-component-id*=runnamecellrenderer]').click()")
    for selector in ("none", "vector top_k=1"):
        for seed in (0, 1):
            _wait_for_text(browser, f"{selector} alfworld/generated_seen simulated seed={seed}")


def test_every_axis_can_be_grouped_by(served: Served) -> None:
    (sweep,) = served.runs("sweep")
    assert sweep["info"]["run_name"].endswith("alfworld/generated_seen none+vector simulated seed=0+1")
    for run in served.runs("cell"):
        tags = {tag["key"]: tag["value"] for tag in run["data"]["tags"]}
        params = {param["key"]: param["value"] for param in run["data"]["params"]}
        assert tags["mlflow.parentRunId"] == sweep["info"]["run_id"]
        assert {"selector", "backbone", "benchmark", "split", "seed", "library", "simulated", "sweep"} <= tags.keys()
        assert tags["selector"] == params["selector.name"]
        assert tags.get("top_k") == params.get("selector.top_k")


def test_a_cells_charts_are_drawn(served: Served, browser: Browser) -> None:
    run = served.runs("cell")[0]
    keys = {metric["key"] for metric in run["data"]["metrics"]}
    assert {"episode/reward", "running/reward", "summary/reward", "outcome/solved"} <= keys
    browser.open(served.page(f"runs/{run['info']['run_id']}/model-metrics"))
    browser.wait("document.querySelectorAll('.js-plotly-plot .scatterlayer path').length")


def test_the_sweeps_report_opens_among_its_artifacts(served: Served, browser: Browser) -> None:
    run_id = served.runs("sweep")[0]["info"]["run_id"]
    what = {"run_id": run_id, "path": "report"}
    listed = httpx.get(f"{served.url}/api/2.0/mlflow/artifacts/list", params=what, timeout=30).json()
    assert {"report/index.html", "report/report.md", "report/figures"} <= {file["path"] for file in listed["files"]}
    browser.open(served.page(f"runs/{run_id}/artifacts/report/index.html"))
    browser.wait_in_frame("document.body.innerText.includes('vector top_k=1')")
    assert "Simulated" in browser.evaluate_in_frame("document.body.innerText")


def test_an_episode_is_a_trace_of_its_cells_run(served: Served, browser: Browser) -> None:
    run = next(run for run in served.runs("cell") if run["info"]["run_name"].startswith("vector"))
    browser.open(served.page(f"runs/{run['info']['run_id']}/traces"))
    _wait_for_text(browser, "solved, reward 100")
    browser.evaluate(
        "void [...document.querySelectorAll('a')].find(link => /sinkbasin|desklamp/.test(link.innerText)).click()"
    )
    for part in ("selection", "reset", "model 1", "environment 1"):
        _wait_for_text(browser, part)


def test_traces_go_through_a_server_too_and_only_once(served: Served) -> None:
    from mlflow import MlflowClient

    cell = cells(served.output)[0]
    client = MlflowClient(served.url)
    experiment = client.get_experiment_by_name("skillarena").experiment_id
    (synced,) = sync([cell], served.url)
    client.delete_traces(
        experiment, trace_ids=[trace.info.trace_id for trace in client.search_traces(locations=[experiment])]
    )
    for _ in range(2):
        assert list(sync([cell], served.url)) == [synced]
        traces = client.search_traces(locations=[experiment], run_id=synced.run_id)
        assert len(traces) == 2
        assert all(len(trace.data.spans) > 5 for trace in traces)
        assert all(trace.info.token_usage["total_tokens"] > 0 for trace in traces)


def test_a_sweep_comes_back_through_a_server(served: Served, tmp_path: Path) -> None:
    name = served.runs("sweep")[0]["info"]["run_name"]
    fetched = fetch(name, served.url, tmp_path / "fetched")
    assert [folder.name for folder in fetched] == [folder.name for folder in cells(served.output)]
    for folder in fetched:
        original = served.output / "cells" / folder.name
        assert (folder / "episodes.jsonl").read_bytes() == (original / "episodes.jsonl").read_bytes()


@contextmanager
def _server(database: Path, folder: Path) -> Iterator[str]:
    """``mlflow server`` on a free port of this machine, for the length of a context."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "server.log"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "mlflow", "server", "--backend-store-uri", f"sqlite:///{database}"),
            *("--host", "127.0.0.1", "--port", str(port), "--workers", "1"),
        ],
        cwd=folder,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=log.open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 90
        while not _healthy(url):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.5)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=30)


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
