"""A model server's process: when it counts as up, how its faults are told, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from stand_in_server import alive, pids, stand_in, wait_until

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.serving import vllm_process
from skillarena.orchestration.serving.vllm_process import ServerProcess
from skillarena.orchestration.serving.vllm_server import VLLMServer
from skillarena.orchestration.serving.vllm_spec import ServerSpec

KEY = "a-key-that-must-not-be-seen"
SPEC = ServerSpec(model="/nowhere", served_name="m", device="cpu", num_cpus=1)

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ServerProcess]]:
    """Makes a process of the given behaviour; all are stopped at the end, and none may be left."""
    monkeypatch.setattr(vllm_process, "_PROBE_TIMEOUT_S", 0.5)
    made: list[ServerProcess] = []

    def make(behaviour: str = "well", runner: Any = "generate", **env: str) -> ServerProcess:
        spec = stand_in(
            ServerSpec(model="/nowhere", served_name="m", device="cpu", runner=runner), tmp_path, behaviour, **env
        )
        made.append(ServerProcess(spec, location="/nowhere", host="127.0.0.1", key=KEY, log=tmp_path / "log"))
        return made[-1]

    yield make
    for process in made:
        process.stop()
    assert not alive(tmp_path)


def post(process: ServerProcess, path: str) -> None:
    try:
        httpx.post(process.url.removesuffix("/v1") + path, timeout=5)
    except httpx.HTTPError:
        assert path == "/die"  # which gives no answer


def test_a_healthy_server_that_answers_counts_as_up(server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    process = server()
    process.start(30)
    assert process.fault() == ""
    assert len(alive(tmp_path)) == 3
    asked = {"model": "m", "messages": []}
    assert httpx.post(f"{process.url}/chat/completions", json=asked).status_code == 401
    allowed = httpx.post(f"{process.url}/chat/completions", json=asked, headers={"Authorization": f"Bearer {KEY}"})
    assert allowed.status_code == 200


def test_a_pooling_server_is_asked_for_what_it_can_do(server: Callable[..., ServerProcess]) -> None:
    process = server(runner="pooling")  # knows /score, not /embeddings
    process.start(30)
    assert process.fault() == ""


def test_the_key_is_not_in_the_arguments(server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    process = server()
    process.start(30)
    for pid in alive(tmp_path):
        assert KEY.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert process.pid in pids(tmp_path)


def test_stopping_ends_children_and_grandchildren(server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    process = server()
    process.start(30)
    process.stop()
    assert len(pids(tmp_path)) == 3 and not alive(tmp_path)
    process.stop()


def test_a_start_ends_what_an_earlier_one_of_the_same_replica_has_left(tmp_path: Path) -> None:
    def replica() -> ServerProcess:
        spec = stand_in(SPEC, tmp_path, "well")
        return ServerProcess(spec, location="x", host="127.0.0.1", key=KEY, log=tmp_path / "log", mark="one replica")

    first, second = replica(), replica()
    try:
        first.start(30)
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)  # as when its keeper is killed: its children stay
        assert wait_until(lambda: len(alive(tmp_path)) == 2, 10)
        second.start(30)
        assert len(alive(tmp_path)) == 3
    finally:
        first.stop()
        second.stop()
    assert not alive(tmp_path)


def test_a_server_that_ignores_being_asked_is_killed(
    server: Callable[..., ServerProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vllm_process, "_GRACE_S", 1.0)
    process = server("deaf")
    process.start(30)
    process.stop()
    assert not alive(tmp_path)


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("ends at once", r"it ended with code 1: ValueError: the KV cache does not fit"),
        ("ends without a word", r"it ended with code 0"),
        ("never well", r"it was not up in time"),
        ("hangs", r"it was not up in time"),
        ("no template", r"it refuses questions \(400: .*a chat template is needed"),
    ],
)
def test_a_server_that_does_not_come_up_is_told_with_its_reason(
    server: Callable[..., ServerProcess], tmp_path: Path, behaviour: str, said: str
) -> None:
    with pytest.raises(BackboneError, match=said) as raised:
        server(behaviour).start(3)
    assert str(tmp_path / "log") in raised.value.fix
    assert len(pids(tmp_path)) == 3
    assert wait_until(lambda: not alive(tmp_path), 5)


def test_a_port_that_was_taken_meanwhile_is_no_fault(server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    process = server(STAND_IN_TAKEN=str(tmp_path / "once"))
    process.start(30)
    assert process.fault() == ""
    assert len(pids(tmp_path)) == 6


def test_any_end_is_a_fault_and_leaves_no_orphans(server: Callable[..., ServerProcess], tmp_path: Path) -> None:
    process = server()
    process.start(30)
    assert process.fault() == ""
    post(process, "/die")
    assert wait_until(lambda: "it ended with code 0" in process.fault(), 5)
    assert len(alive(tmp_path)) == 2  # its children do not notice
    process.stop()
    assert not alive(tmp_path)


def test_a_signal_is_told_as_one(server: Callable[..., ServerProcess]) -> None:
    process = server()
    process.start(30)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    assert wait_until(lambda: "it was ended by signal 9" in process.fault(), 5)


def test_one_failed_health_check_is_forgiven_several_are_not(server: Callable[..., ServerProcess]) -> None:
    process = server()
    process.start(30)
    post(process, "/sick")
    assert [bool(process.fault()) for _ in range(3)] == [False, False, True]


def test_the_server_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = f"""
        import sys, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from pathlib import Path
        from stand_in_server import stand_in
        from test_vllm_process import SPEC, ServerProcess
        spec = stand_in(SPEC, Path({str(tmp_path)!r}))
        ServerProcess(spec, location="x", host="127.0.0.1", key="k", log=Path({str(tmp_path)!r}) / "log").start(30)
        print("up", flush=True)
        time.sleep(600)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    try:
        assert parent.stdout is not None and parent.stdout.readline() == "up\n"
        parent.kill()
        parent.wait(5)
        server = pids(tmp_path)[0]
        assert wait_until(lambda: server not in alive(tmp_path), 5)
    finally:
        parent.kill()
        for pid in alive(tmp_path):  # in a cluster, Ray ends the rest of the process group
            os.kill(pid, signal.SIGKILL)


class Told:
    """What a server says about itself."""

    def __init__(self, starts: int = 0) -> None:
        self.starts = starts
        self.words: list[str] = []

    def starting(self) -> int:
        return self.starts

    def up(self, url: str) -> None:
        self.words.append("up")

    def alive(self, url: str) -> None:
        pass

    def down(self, reason: str) -> None:
        self.words.append(f"down: {reason}")


class Died(BaseException):
    """In place of the end of the process."""


class Mortal(VLLMServer):
    def _die(self) -> None:
        raise Died


def replica(tmp_path: Path, behaviour: str) -> Mortal:
    spec = stand_in(SPEC, tmp_path, behaviour)
    return Mortal(spec, 0, loopback=True, key=KEY, log_dir=str(tmp_path / "logs"), start_timeout_s=20)


def test_a_first_start_that_fails_is_an_answer_a_later_one_a_death(tmp_path: Path) -> None:
    told = Told()
    fault = replica(tmp_path, "ends at once").serve(told)
    assert isinstance(fault, BackboneError) and "the KV cache does not fit" in fault.message
    assert told.words == [f"down: {fault.message}"]
    with pytest.raises(Died):
        replica(tmp_path, "ends at once").serve(Told(starts=1))
    assert [log.name for log in sorted((tmp_path / "logs").iterdir())] == [
        f"{stand_in(SPEC, tmp_path, 'ends at once').name}-0-{number}.log" for number in (1, 2)
    ]
    assert wait_until(lambda: not alive(tmp_path), 5)


def test_a_replica_dies_with_its_server(tmp_path: Path) -> None:
    told = Told()

    class Announcer(Told):
        def up(self, url: str) -> None:
            told.words.append("up")
            httpx.post(url.removesuffix("/v1") + "/sick", timeout=5)

        def down(self, reason: str) -> None:
            told.down(reason)

    with pytest.raises(Died):
        replica(tmp_path, "well").serve(Announcer())
    assert told.words == ["up", "down: it failed 3 health checks"]
    assert not alive(tmp_path)
