"""The cluster recipes are accepted by Ray, KubeRay and a shell, hold no secret, and fit this project's versions."""

from __future__ import annotations

import copy
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
SBATCH = EXAMPLES / "slurm" / "skillarena.sbatch"
RAY = re.search(r"^ray==(\S+)$", (ROOT / "requirements.lock").read_text(), re.MULTILINE)


def load(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))


def kuberay_clusters() -> dict[str, dict[str, Any]]:
    return {
        "raycluster.yaml": load("kuberay/raycluster.yaml")["spec"],
        "rayjob.yaml": load("kuberay/rayjob.yaml")["spec"]["rayClusterSpec"],
    }


def commands_in(text: str) -> list[list[str]]:
    """Every `skillarena` command of a text, as words; continued lines are one."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.strip().startswith("skillarena ")]


def test_ray_accepts_the_cluster_of_ray_up() -> None:
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared = prepare_config(copy.deepcopy(load("ray-up/cluster.yaml")))
    validate_config(prepared)
    types = prepared["available_node_types"]
    assert all(kind["min_workers"] == 0 for kind in types.values())
    assert sum(kind["max_workers"] for kind in types.values()) == prepared["max_workers"]
    assert types["head"]["max_workers"] == 0


def test_all_nodes_of_ray_up_start_with_the_token_that_is_copied_to_them() -> None:
    cluster = load("ray-up/cluster.yaml")
    assert cluster["file_mounts"]["~/.ray/auth_token"] == "~/.ray/auth_token"
    starts = [*cluster["head_start_ray_commands"], *cluster["worker_start_ray_commands"]]
    assert all("RAY_AUTH_MODE=token" in command for command in starts if "ray start" in command)
    assert sum("ray start" in command for command in starts) == 2


@pytest.mark.parametrize("name", kuberay_clusters())
def test_rays_autoscaler_reads_the_kuberay_cluster(name: str) -> None:
    from ray.autoscaler._private.kuberay.autoscaling_config import _derive_autoscaling_config_from_ray_cr

    spec = kuberay_clusters()[name]
    resource = {"metadata": {"name": "skillarena", "namespace": "default"}, "spec": spec}
    types = _derive_autoscaling_config_from_ray_cr(resource)["available_node_types"]
    assert types["rollouts"]["max_workers"] > types["rollouts"]["min_workers"] == 0
    assert types["rollouts"]["resources"]["CPU"] == 16
    if "models" in types:
        assert types["models"]["resources"]["GPU"] == 4


@pytest.mark.parametrize("name", kuberay_clusters())
def test_a_kuberay_cluster_is_authenticated_autoscaled_and_of_the_tested_ray(name: str) -> None:
    spec = kuberay_clusters()[name]
    assert RAY is not None
    assert spec["rayVersion"] == RAY[1]
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["enableInTreeAutoscaling"] is True
    groups = [spec["headGroupSpec"], *spec["workerGroupSpecs"]]
    for group in groups:
        (container,) = group["template"]["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
        assert mounted == {volume["name"] for volume in group["template"]["spec"].get("volumes", ())}
    for worker in spec["workerGroupSpecs"]:
        assert worker["minReplicas"] <= worker["replicas"] <= worker["maxReplicas"]


def test_the_kuberay_objects_have_what_the_operator_requires() -> None:
    cluster, job = load("kuberay/raycluster.yaml"), load("kuberay/rayjob.yaml")
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"]["shutdownAfterJobFinishes"] is True
    assert job["spec"]["entrypoint"].startswith("skillarena run ")


def test_the_image_has_the_tested_ray_and_a_python_that_the_project_supports() -> None:
    text = (EXAMPLES / "kuberay" / "Dockerfile").read_text()
    assert RAY is not None
    bases = re.findall(r"rayproject/ray:(\S+?)-py(\d)(\d+)", text)
    assert bases
    assert all(version == RAY[1] and (major, minor) in {("3", "11"), ("3", "12")} for version, major, minor in bases)


def test_no_recipe_holds_a_secret() -> None:
    for path in (path for path in EXAMPLES.rglob("*") if not {"__pycache__", "outputs"} & set(path.parts)):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"(sk-|hf_|ghp_|AKIA)[A-Za-z0-9]{8}", text), path
            for name, value in re.findall(r"(\w*(?:KEY|TOKEN))\s*[=:]\s*(\S+)", text):
                assert value.startswith(('"$', "$")), f"{path}: {name}"


def test_every_command_in_a_recipe_composes() -> None:
    from skillarena.orchestration.hydra_run import compose

    texts = [path.read_text(encoding="utf-8") for path in EXAMPLES.rglob("README.md")]
    commands = [words for text in texts for words in commands_in(text) if "…" not in " ".join(words)]
    commands.append(shlex.split(load("kuberay/rayjob.yaml")["spec"]["entrypoint"]))
    runs = [words[2:] for words in commands if words[1] == "run"]
    assert len(runs) >= 3
    for overrides in runs:
        assert compose([word for word in overrides if word != "-m"]).cluster.address == "auto"


def test_the_batch_script_is_sound_for_the_shell() -> None:
    subprocess.run(["bash", "-n", str(SBATCH)], check=True, timeout=20)
    if checker := shutil.which("shellcheck"):
        subprocess.run([checker, str(SBATCH)], check=True, timeout=60)


@pytest.fixture
def slurm(tmp_path: Path) -> dict[str, str]:
    """The environment of a job on two nodes, both of them this machine."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    scripts = {
        "srun": 'while [[ $1 == --* ]]; do shift; done\nexec "$@"',
        "scontrol": "printf 'localhost\\nother\\n'",
    }
    for name, body in scripts.items():
        (binaries / name).write_text(f"#!/bin/bash\n{body}\n")
        (binaries / name).chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "SKILLARENA_VENV": sys.prefix,
        "SKILLARENA_CACHE": str(tmp_path / "cache"),
        "SLURM_SUBMIT_DIR": str(tmp_path),
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_JOB_NODELIST": "node[1-2]",
        "SLURM_CPUS_PER_TASK": "3",
    }


@pytest.fixture
def job(slurm: dict[str, str], tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The batch script at work on six short tasks, output in ``log``; the whole group is ended after the test."""
    arguments = ["benchmark.limit=6", "selector=none", "backbone.latency_s=0.2", "tracking.enabled=false"]
    small = ["cluster.rollout_workers=2", "cluster.selection_workers=1", "cluster.episodes_per_worker=1"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            ["bash", str(SBATCH), *arguments, *small],
            env=slurm,
            cwd=tmp_path,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def finished_rows(folder: Path) -> list[dict[str, Any]]:
    ledgers = list((folder / "outputs" / "cells").glob("*/episodes.jsonl"))
    return [json.loads(line) for ledger in ledgers for line in ledger.read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_batch_job_joins_its_nodes_plays_everything_and_leaves_nothing(
    job: subprocess.Popen[str], slurm: dict[str, str], tmp_path: Path
) -> None:
    code = job.wait(300)
    log = (tmp_path / "log").read_text()
    assert code == 0, log
    assert "2 nodes with 3 CPUs" in log
    rows = finished_rows(tmp_path)
    assert len(rows) == len({row["task_id"] for row in rows}) == 6
    assert not Path(f"/tmp/ray-{slurm['SLURM_JOB_ID']}").exists()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_batch_job_whose_time_is_up_stops_cleanly(job: subprocess.Popen[str], tmp_path: Path) -> None:
    deadline = time.monotonic() + 240
    while not finished_rows(tmp_path):
        assert job.poll() is None, (tmp_path / "log").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    job.send_signal(signal.SIGTERM)  # as `--signal=B:TERM@180` does: to the script, not to the run
    code = job.wait(100)
    log = (tmp_path / "log").read_text()
    assert code == 130, log
    assert "the same command continues" in log
    assert 0 < len(finished_rows(tmp_path)) < 6
