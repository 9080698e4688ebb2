"""ScienceWorld's Java process: shared, bounded in time, guarded, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_env import ScienceWorldEnv
from skillarena.envs.scienceworld_jvm import Jvm, JvmOptions, borrow, give_back
from skillarena.envs.scienceworld_tasks import Scene
from skillarena.envs.scienceworld_world import World

TASK = Scene("find-animal", 159, "easy").to_task("seen", "any")
OTHER = Scene("boil", 14, "easy").to_task("seen", "any")


def java_processes(parent: int) -> set[int]:
    """Ids of the simulator processes that ``parent`` started and that still run."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            status = (folder / "status").read_text()
        except OSError:  # it has just ended
            continue
        if b"py4j.GatewayServer" in command and f"\nPPid:\t{parent}\n" in status and "\nState:\tZ" not in status:
            found.add(int(folder.name))
    return found


def ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def make_env(folder: Path, call_deadline_s: float = 60.0) -> ScienceWorldEnv:
    return ScienceWorldBenchmark(cache_dir=str(folder), call_deadline_s=call_deadline_s).make_env()


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ScienceWorldEnv]:
    env = make_env(tmp_path)
    yield env
    env.close()


def script(folder: Path, *lines: str) -> str:
    java = folder / "java"
    java.write_text("\n".join(["#!/bin/sh", "if [ $1 = -version ]; then echo 'version \"17\"'; exit 0; fi", *lines]))
    java.chmod(0o755)
    return str(java)


def test_java_that_does_not_start_is_given_up_at_the_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    with pytest.raises(EnvError, match="did not start within 1 s") as caught:
        Jvm(JvmOptions(script(tmp_path, f"echo $$ > {tmp_path}/pid", "exec sleep 60"), 256, 1.0))
    assert time.monotonic() - started < 5
    assert "start_deadline_s" in caught.value.fix
    assert ends_within(int((tmp_path / "pid").read_text()), 1)


def test_java_that_ends_at_once_is_reported_with_its_reason(tmp_path: Path) -> None:
    java = script(tmp_path, "echo 'Could not reserve enough space for object heap' >&2", "exit 1")
    with pytest.raises(EnvError, match="Could not reserve enough space"):
        Jvm(JvmOptions(java, 256, 20.0))


def test_java_that_is_told_to_say_something_else_first_is_reported_with_that(tmp_path: Path) -> None:
    java = script(tmp_path, "echo '[info] Using Serial'", "echo more", "sleep 5")
    with pytest.raises(EnvError, match=r"'\[info\] Using Serial' where its port was expected"):
        Jvm(JvmOptions(java, 256, 20.0))


@pytest.mark.slow
def test_environments_of_a_process_share_one_java_process_until_the_last_closes(tmp_path: Path) -> None:
    assert not java_processes(os.getpid())
    first, second = make_env(tmp_path), make_env(tmp_path)
    assert not java_processes(os.getpid()), "nothing starts before the first reset"
    first.reset(TASK)
    second.reset(OTHER)
    (pid,) = java_processes(os.getpid())
    first.close()
    assert second.step("look around").observation
    assert java_processes(os.getpid()) == {pid}
    second.close()
    assert ends_within(pid, 2)
    first.reset(TASK)
    assert len(java_processes(os.getpid())) == 1
    first.close()


@pytest.mark.slow
def test_gateway_is_on_loopback_and_wants_the_password() -> None:
    from py4j.java_gateway import GatewayParameters, JavaGateway
    from py4j.protocol import Py4JError

    jvm = Jvm(JvmOptions())
    try:
        listening = [
            line.split()[1].split(":")
            for table in ("tcp", "tcp6")
            for line in Path(f"/proc/{jvm.pid}/net/{table}").read_text().splitlines()[1:]
        ]
        addresses = {address for address, port in listening if int(port, 16) == jvm.port}
        assert addresses and all(address.endswith("0100007F") for address in addresses)
        for token in (None, "wrong"):
            stranger = JavaGateway(gateway_parameters=GatewayParameters(port=jvm.port, auth_token=token))
            with pytest.raises(Py4JError):
                stranger.jvm.java.lang.System.currentTimeMillis()
            stranger.close(keep_callback_server=True)
        friend = jvm.connect(10)
        assert friend.jvm.java.lang.System.currentTimeMillis() > 0
        friend.close(keep_callback_server=True)
    finally:
        jvm.kill()


@pytest.mark.slow
def test_killed_java_process_is_an_error_and_the_next_reset_starts_another(env: ScienceWorldEnv) -> None:
    first = env.reset(TASK)
    (pid,) = java_processes(os.getpid())
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EnvError, match=r"gone|died"):
        env.step("look around")
    with pytest.raises(EnvError):
        env.step("look around")
    assert env.reset(TASK) == first
    (successor,) = java_processes(os.getpid())
    assert successor != pid
    assert env.step("look around").observation == first.text


@pytest.mark.slow
def test_late_answer_ends_the_java_process_and_the_next_reset_starts_another(tmp_path: Path) -> None:
    env = make_env(tmp_path, call_deadline_s=10.0)
    bystander = make_env(tmp_path)
    try:
        first = env.reset(TASK)
        bystander.reset(OTHER)
        (pid,) = java_processes(os.getpid())
        os.kill(pid, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(EnvError, match="no answer for 10 s") as caught:
            env.step("look around")
        assert 9 < time.monotonic() - started < 20
        assert "deadline" in caught.value.fix
        assert ends_within(pid, 2)
        with pytest.raises(EnvError, match="gone"):
            bystander.step("look around")
        assert env.reset(TASK) == first
    finally:
        env.close()
        bystander.close()


@pytest.mark.slow
def test_too_small_a_heap_is_an_error_that_says_so() -> None:
    worlds: list[World] = []
    with pytest.raises(EnvError, match="OutOfMemoryError") as caught:
        for _ in range(8):
            worlds.append(World(JvmOptions(heap_mb=64), 60))
            worlds[-1].load(Scene("boil", 14, "easy"))
    for world in worlds:
        world.close()
    assert "jvm_heap_mb" in caught.value.fix
    assert not java_processes(os.getpid())


@pytest.mark.slow
def test_unknown_task_and_variation_are_refused_and_the_env_stays_usable(env: ScienceWorldEnv) -> None:
    for scene in (Scene("boilx", 0, "easy"), Scene("boil", 99999, "easy"), Scene("boil", 0, "easyx")):
        with pytest.raises(DataError):
            env.reset(scene.to_task("seen", "any"))
        with pytest.raises(EnvError):
            env.step("look around")
    assert env.reset(TASK).text


OWNER = """
import os, sys, time
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_tasks import Scene
env = ScienceWorldBenchmark(cache_dir=sys.argv[1]).make_env()
env.reset(Scene("find-animal", 159, "easy").to_task("seen", "any"))
if sys.argv[2] == "fork" and os.fork() == 0:
    time.sleep(60)
    os._exit(0)
print("ready", flush=True)
if sys.argv[2] == "busy":
    env.plan()
if sys.argv[2] != "exit":
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("manner", ["idle", "busy", "fork", "exit"])
def test_no_java_process_outlives_its_owner(tmp_path: Path, manner: str) -> None:
    """However the owner ends, and even while a forked child of it lives on."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), manner], stdout=subprocess.PIPE, text=True, process_group=0
    )
    assert owner.stdout is not None
    try:
        assert owner.stdout.readline() == "ready\n"
        if manner == "exit":
            assert owner.wait(20) == 0
            assert not java_processes(owner.pid)
            return
        (java,) = java_processes(owner.pid)
        owner.kill()
        owner.wait(5)
        assert ends_within(java, 5)
    finally:
        os.killpg(owner.pid, signal.SIGKILL) if manner == "fork" else owner.kill()
        owner.wait(5)
        owner.stdout.close()


@pytest.mark.slow
def test_forked_child_cannot_disturb_its_parents_simulator(env: ScienceWorldEnv) -> None:
    env.reset(TASK)
    child = os.fork()
    if child == 0:
        try:
            env.step("look around")
        except EnvError:
            env.close()
            os._exit(17)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 17
    assert env.step("look around").observation


@pytest.mark.slow
def test_environments_made_in_a_thread_outlive_it(tmp_path: Path) -> None:
    env = make_env(tmp_path)
    first: list[str] = []
    thread = threading.Thread(target=lambda: first.append(env.reset(TASK).text))
    thread.start()
    thread.join(60)
    assert env.step("look around").observation == first[0]
    env.close()


@pytest.mark.slow
def test_worlds_that_come_and_go_do_not_fill_the_java_process() -> None:
    """Each needs some thousand classes of its own, which cannot be unloaded."""
    options = JvmOptions()
    jvm = borrow(options)
    try:
        gateway = jvm.connect(30)
        java = gateway.jvm.java.lang

        def loaded_classes_after(worlds: int) -> int:
            for _ in range(worlds):
                world = World(options, 60)
                world.load(Scene("find-animal", 159, "easy"))
                world.step("look around")
                world.valid_actions()
                world.close()
            java.System.gc()
            return int(java.management.ManagementFactory.getClassLoadingMXBean().getLoadedClassCount())

        before = loaded_classes_after(1)
        assert loaded_classes_after(4) < before + 500
        gateway.close(keep_callback_server=True)
    finally:
        give_back(jvm)
