"""`skillarena data models`: what a configuration loads is listed with its size and fetched once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import command, environment

sys.path.append(str(Path(__file__).parents[1] / "selectors"))  # lends its hub

from stub_hub import COMMIT, StubHub

from skillarena.orchestration.data_command.needed_models import needed_models
from skillarena.orchestration.hydra_run import compose

MODEL = "someone/tiny-reranker"
FILES = {
    "README.md": b"# Tiny",
    "config.json": b'{"architectures": ["X"]}',
    "tokenizer.json": b"{}" * 50,
    "model.safetensors": b"w" * 300_000,
    "pytorch_model.bin": b"p" * 900_000,
    "onnx/model.onnx": b"o" * 900_000,
}
LOADED = {"README.md", "config.json", "tokenizer.json", "model.safetensors"}
RERANKER = ("selector=skillrouter", "reranker=cross_encoder", f"reranker.model={MODEL}")


def hub_environment(cache: Path, endpoint: str, **extra: str) -> dict[str, str]:
    return environment(cache, **{"HF_HOME": str(cache / "hf"), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0"} | extra)


def data_models(*arguments: str, cache: Path, endpoint: str, **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("data", "models", *arguments),
        cwd=cache,
        env=hub_environment(cache, endpoint, **extra),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def listed(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    return {entry["part"]: entry for entry in json.loads(done.stdout)}


def snapshot(cache: Path) -> set[str]:
    folder = cache / "hf" / "hub" / f"models--{MODEL.replace('/', '--')}" / "snapshots" / COMMIT
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def parts_of(*overrides: str) -> dict[str, str]:
    return {model.part: model.model for model in needed_models([compose(overrides)])}


def test_only_what_the_selector_uses_is_needed() -> None:
    reranker = ["reranker=qwen3_reranker_0_6b", "embedder=qwen3_embedding_0_6b"]
    assert parts_of("selector=none", *reranker) == {}
    assert parts_of("selector=vector", *reranker) == {"embedder": "Qwen/Qwen3-Embedding-0.6B"}
    assert parts_of("selector=skillrouter", *reranker) == {
        "embedder": "Qwen/Qwen3-Embedding-0.6B",
        "reranker": "Qwen/Qwen3-Reranker-0.6B",
    }
    assert parts_of("selector=none", "backbone=qwen3_6_27b") == {"backbone": "Qwen/Qwen3.6-27B"}
    assert parts_of("selector=none", "backbone=deepseek_v4_flash") == {}  # its name is an API's


def test_of_a_model_on_a_server_only_the_tokenizer_is_needed() -> None:
    models = needed_models([compose(["selector=skillrouter", "reranker=vllm_pooling"])])
    assert {model.part: model.weights for model in models} == {"embedder": True, "reranker": False}


@pytest.mark.slow
def test_sizes_come_first_and_only_files_that_are_loaded_are_fetched_once(tmp_path: Path) -> None:
    with StubHub(MODEL, FILES, kind="models") as hub:
        dry = data_models(*RERANKER, "--dry-run", "--json", cache=tmp_path, endpoint=hub.url)
        assert dry.returncode == 0, dry.stderr
        size = sum(len(FILES[name]) for name in LOADED)
        assert listed(dry)["reranker"]["hub"] == {"commit": COMMIT, "size": size, "missing": size, "problem": ""}
        assert listed(dry)["embedder"]["state"] == "here, comes with a package"
        assert snapshot(tmp_path) == set()
        done = data_models(*RERANKER, cache=tmp_path, endpoint=hub.url)
        assert done.returncode == 0, done.stderr
        assert "0.3 MB to fetch" in done.stdout
        assert snapshot(tmp_path) == LOADED
        again = data_models(*RERANKER, "--json", cache=tmp_path, endpoint=hub.url)
        assert listed(again)["reranker"]["state"] == "here"
        assert sum(line == f"GET /{MODEL}/resolve/{COMMIT}/model.safetensors" for line in hub.asked) == 1
    offline = data_models(*RERANKER, cache=tmp_path, endpoint="http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert offline.returncode == 0
    assert "here; the hub was not asked" in offline.stdout


@pytest.mark.slow
def test_models_that_cannot_be_had_are_one_message_with_the_way_round(tmp_path: Path) -> None:
    both = ("selector=skillrouter", "reranker=qwen3_reranker_0_6b", "embedder=qwen3_embedding_0_6b")
    done = data_models(*both, cache=tmp_path, endpoint="http://hub.invalid")
    assert done.returncode == 1
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stderr
    assert "Qwen/Qwen3-Embedding-0.6B, Qwen/Qwen3-Reranker-0.6B cannot be had" in done.stderr
    assert f"copy from its cache to {tmp_path}/hf/hub: models--Qwen--Qwen3-Embedding-0.6B" in done.stderr
    assert "about 1.20 GB by its name" in done.stdout
    with StubHub(MODEL, FILES, kind="models") as hub:
        unknown = data_models(*RERANKER, "reranker.revision=nowhere", cache=tmp_path, endpoint=hub.url)
    assert unknown.returncode == 1
    assert f"{MODEL} cannot be had" in unknown.stderr


@pytest.mark.slow
def test_a_model_without_safe_weights_is_refused_before_it_is_fetched(tmp_path: Path) -> None:
    unsafe = {name: content for name, content in FILES.items() if name != "model.safetensors"}
    with StubHub(MODEL, unsafe, kind="models") as hub:
        done = data_models(*RERANKER, cache=tmp_path, endpoint=hub.url)
    assert done.returncode == 1
    assert "no safetensors" in done.stderr
    assert snapshot(tmp_path) == set()


@pytest.mark.slow
def test_a_download_killed_halfway_goes_on(tmp_path: Path) -> None:
    big = {f"model-{part}.safetensors": os.urandom(20_000_000) for part in range(6)}
    line = command("data", "models", *RERANKER)
    with StubHub(MODEL, FILES | big, kind="models") as hub:
        env = hub_environment(tmp_path, hub.url)
        process = subprocess.Popen(line, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 100
        while not snapshot(tmp_path) & set(big):
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not snapshot(tmp_path) >= set(big)
        hub.asked.clear()
        kept = snapshot(tmp_path)
        again = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
        assert again.returncode == 0, again.stderr
        fetched = {request.rsplit("/", 1)[-1] for request in hub.asked if request.startswith(f"GET /{MODEL}/resolve")}
    assert snapshot(tmp_path) == LOADED | set(big)
    assert not fetched & kept
