"""What a run starts can be reached from this machine only, and by strangers on it not at all."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from stand_in_server import wait_until
from watching import watch

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.serving.vllm_process import ServerProcess
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.orchestration.serving.wants_key import WantsKey

LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
KEY = "the-key-of-this-test"

OWN_RAY = """
import os, sys
from skillarena.orchestration.cluster import connected
from skillarena.orchestration.settings import ClusterSettings
with connected(ClusterSettings(), cpus=1):
    import ray
    print(ray.get_runtime_context().gcs_address, os.environ["RAY_AUTH_TOKEN"], flush=True)
    sys.stdin.read()
"""
STRANGER = """
import sys
from ray._raylet import GcsClient
GcsClient(address=sys.argv[1]).internal_kv_keys(b"", None, 10)
print("came in")
"""


@pytest.mark.slow
def test_all_that_a_run_starts_listens_on_loopback(tmp_path: Path) -> None:
    done = watch(
        *("run", "selector=vector", "benchmark=scienceworld"),
        *("benchmark.task_types=[find-non-living-thing]", "benchmark.limit=1"),
        cache=tmp_path / "cache",
        cwd=tmp_path,
    )
    assert done.code == 0, done.output
    names = {name for name, _ in done.listening}
    assert {"gcs_server", "raylet", "java"} <= names and any(name.startswith("ray::") for name in names), names
    assert {(name, address) for name, address in done.listening if address not in LOOPBACK} == set()


def comes_in(address: str, env: dict[str, str], timeout_s: float) -> bool:
    """Whether a process with this environment can ask a Ray something; Ray itself goes on trying for minutes."""
    with subprocess.Popen([sys.executable, "-c", STRANGER, address], env=env, stdout=subprocess.PIPE) as stranger:
        try:
            said, _ = stranger.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            stranger.kill()
            said, _ = stranger.communicate()
    return b"came in" in said


@pytest.mark.slow
def test_a_ray_of_our_own_takes_orders_from_nobody_without_its_token(tmp_path: Path) -> None:
    home = {name: value for name, value in os.environ.items() if not name.startswith("RAY_AUTH")}
    home["HOME"] = str(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", OWN_RAY], env=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as ours:
        assert ours.stdout is not None and ours.stdin is not None
        address, token = ours.stdout.readline().split()
        assert address.startswith("127.0.0.1:") and len(token) == 64
        assert comes_in(address, home | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}, 60)
        assert not comes_in(address, home | {"RAY_AUTH_MODE": "disabled"}, 30)
        assert not comes_in(address, home | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "a" * 64}, 30)
        ours.stdin.close()
        assert ours.wait(60) == 0
    assert not (tmp_path / ".ray").exists(), "the token lies in a file"


@pytest.mark.parametrize("flag", ["api-key", "api_key", "host", "middleware", "no-middleware", "trust_remote_code"])
def test_what_guards_a_model_server_cannot_be_changed_by_its_arguments(flag: str) -> None:
    with pytest.raises(ConfigError, match="engine_args"):
        ServerSpec(model="m", served_name="m", engine_args={flag: None})


def test_a_model_server_without_a_key_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    with pytest.raises(KeyError, match="VLLM_API_KEY"):
        WantsKey(lambda *_: None)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "path", ["/v1/models", "/invocations", "/tokenize", "/pooling", "/", "/healthy", "/v1/../health"]
)
@pytest.mark.parametrize("shown", [None, "Bearer wrong", "Bearer ", f"Basic {KEY}", KEY, f"Bearer {KEY}x"])
def test_the_guard_of_model_servers_refuses_every_path(
    monkeypatch: pytest.MonkeyPatch, path: str, shown: str | None
) -> None:
    assert asked(monkeypatch, path, shown) == 401
    assert asked(monkeypatch, path, f"Bearer {KEY}") == 200


def test_the_guard_of_model_servers_lets_health_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, "/health", None) == asked(monkeypatch, "/metrics", None) == 200


def asked(monkeypatch: pytest.MonkeyPatch, path: str, shown: str | None) -> int:
    """The status that a guarded server gives, whose own answer is always 200."""
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    statuses: list[int] = []

    async def app(_: object, __: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        raise AssertionError("a body was read")

    headers = [(b"authorization", shown.encode())] if shown is not None else []
    asyncio.run(WantsKey(app)({"type": "http", "path": path, "headers": headers}, receive, send))
    (status,) = statuses
    return status


@pytest.mark.vllm
@pytest.mark.timeout(900)
def test_a_model_server_that_other_machines_reach_answers_nobody_without_its_key(tmp_path: Path) -> None:
    import psutil

    from skillarena.orchestration.backbones.model_files import location_of

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells the address that others reach this machine at
        host = probe.getsockname()[0]
    spec = ServerSpec(model="smollm2", served_name="smollm2", device="cpu", num_cpus=1, max_model_len=512)
    process = ServerProcess(spec, location=location_of("smollm2"), host=host, key=KEY, log=tmp_path / "log")
    try:
        process.start(600)
        assert process.pid is not None
        root = process.url.removesuffix("/v1")
        paths = {
            path: set(about)
            for path, about in httpx.get(f"{root}/openapi.json", headers=_bearer(KEY)).json()["paths"].items()
        }
        assert len(paths) > 10
        for key in (None, "wrong"):
            for path, methods in paths.items():
                if path not in ("/health", "/metrics"):
                    for method in methods:
                        answer = httpx.request(method, f"{root}{path}", headers=_bearer(key), timeout=30)
                        assert answer.status_code == 401, f"{method} {path} with {key}: {answer.status_code}"
        assert httpx.get(f"{root}/v1/models", headers=_bearer(KEY)).status_code == 200
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        open_to = {
            (connection.laddr.ip, connection.laddr.port)
            for one in family
            for connection in one.net_connections("inet")
            if connection.status == psutil.CONN_LISTEN
        }
        assert {address for address in open_to if address[0] not in LOOPBACK} == {(host, int(root.rsplit(":", 1)[1]))}
        assert not any(KEY in " ".join(one.cmdline()) for one in family)
    finally:
        process.stop()
    assert KEY not in (tmp_path / "log").read_text()
    assert wait_until(lambda: not psutil.pid_exists(process.pid or 0), 10)


def _bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}
