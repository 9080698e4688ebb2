"""`skillarena doctor` from the shell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import run_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

QUIET = {"HF_HUB_OFFLINE": "1", "MLFLOW_TRACKING_URI": "", "ALFWORLD_DATA": ""}


def by_name(stdout: str) -> dict[str, Any]:
    return {check["check"]: check for check in json.loads(stdout)["checks"]}


def test_a_machine_that_runs_the_tests_passes_and_nothing_is_written(tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    done = run_command("doctor", "--json", cache=tmp_path / "cache", cwd=here, OPENAI_API_KEY="sk-very-secret", **QUIET)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "very-secret" not in done.stdout + done.stderr
    found = by_name(done.stdout)
    assert json.loads(done.stdout)["ready"] is True
    assert {"Python", "memory", "Java", "Ray", "vLLM", "ALFWorld", "ScienceWorld", "hub", "MLflow", "clock"} <= set(
        found
    )
    assert found["hub"]["status"] == "warn" and found["hub"]["fix"]
    assert list(here.iterdir()) == [] and not (tmp_path / "cache").exists()


def test_an_experiment_decides_what_is_looked_at_and_what_must_be_there(tmp_path: Path) -> None:
    quiet = QUIET | {"MLFLOW_TRACKING_URI": "http://me:hunter2@127.0.0.1:9", "DEEPSEEK_API_KEY": ""}
    asked = ("backbone=deepseek_v4_flash", "benchmark=alfworld", "selector=none")
    done = run_command("doctor", *asked, cache=tmp_path / "cache", cwd=tmp_path, **quiet)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done.stdout + done.stderr
    assert done.stdout, done.stderr
    lines = {tuple(line.split()[:2]): line for line in done.stdout.splitlines()}
    assert "DEEPSEEK_API_KEY not set" in lines.get(("fail", "API"), ""), done.stdout
    assert "http://127.0.0.1:9 does not answer" in lines["fail", "MLflow"]
    assert ("ok", "ALFWorld") in lines and ("ok", "Ray") in lines, done.stdout
    assert "export DEEPSEEK_API_KEY=KEY" in done.stdout
    for left_out in ("Java", "ScienceWorld", "vLLM", "embedder", "hub"):
        assert all(name != left_out for _, name in (key for key in lines if len(key) == 2))
    assert "hunter2" not in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_mistake_in_the_experiment_is_one_message(tmp_path: Path) -> None:
    done = run_command("doctor", "selector=vectr", cache=tmp_path / "cache", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert "did you mean 'vector'?" in done.stderr and "Traceback" not in done.stderr
