"""Model servers as a sweep uses them: real Ray and real processes, with a small program in place of the model."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from backbone_contract import MESSAGES, BackboneContract, context
from stand_in_server import alive, pids, wait_until

from skillarena.conf.errors import BackboneError, ConfigError
from skillarena.orchestration.assembly import build
from skillarena.orchestration.backbones.errors import RetriesExhausted
from skillarena.orchestration.backbones.interface import Backbone
from skillarena.orchestration.cluster import connected
from skillarena.orchestration.serving.fleet import Fleet, cpus_of_servers
from skillarena.orchestration.settings import ClusterSettings

pytestmark = pytest.mark.slow

SIMULATED = {"_target_": "skillarena.orchestration.backbones.simulated.SimulatedBackbone"}
START_S = 60


@pytest.fixture(scope="module")
def cluster() -> Iterator[ClusterSettings]:
    settings = ClusterSettings(placement_timeout_s=5)
    with connected(settings, cpus=4):
        yield settings


@pytest.fixture
def fleet(cluster: ClusterSettings, tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(cluster, tmp_path / "servers")
    yield made
    made.stop()
    assert wait_until(lambda: not alive(tmp_path), 10), "a server was left behind"


@pytest.fixture
def section(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Sections of a backbone that is served by the stand-in program."""
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps({"num_attention_heads": 8}))

    def make(**options: Any) -> dict[str, Any]:
        target = {"_target_": "stand_in_server.StandInBackbone", "model": str(model), "folder": str(tmp_path)}
        return {**target, "device": "cpu", "num_cpus": 1, "start_timeout_s": 30.0, **options}

    return make


def backbone(fleet: Fleet, section: dict[str, Any]) -> Any:
    return build(section, "backbone", endpoints=fleet.endpoints)


def up(fleet: Fleet, section: dict[str, Any]) -> None:
    assert wait_until(lambda: fleet.ready(section), START_S)


def all_up(fleet: Fleet, section: dict[str, Any], tmp_path: Path) -> None:
    """All replicas answer: episodes reach each of them."""
    up(fleet, section)
    model = backbone(fleet, section)
    probes: dict[str, str] = {}

    def reached() -> bool:
        episode = f"probe {len(probes)}"
        probes[episode] = port_of(model, episode)
        return len(set(probes.values())) == section["replicas"]

    assert wait_until(reached, START_S)
    for episode in probes:
        model.end_episode(episode)
    model.close()


def port_of(model: Backbone, episode: str) -> str:
    """The port of the server that answers an episode's call."""
    return model.chat(MESSAGES, context(episode)).text.splitlines()[0].rsplit(" ", 1)[1]


def server_at(port: str, folder: Path) -> int:
    """Process id of the server on ``port``."""
    for pid in alive(folder):
        if f"--port\0{port}\0" in Path(f"/proc/{pid}/cmdline").read_text():
            return pid
    raise AssertionError(f"nothing serves on {port}")


def test_backbones_without_servers_need_nothing(fleet: Fleet) -> None:
    fleet.ensure(SIMULATED)
    assert fleet.ready(SIMULATED) and fleet.endpoints is None
    assert not fleet.started and fleet.describe() == [] and cpus_of_servers(SIMULATED) == 0


def test_one_server_is_started_for_all_cells_that_can_share_it(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    cold, warm, longer = section(), section(temperature=0.7), section(max_model_len=64)
    for one in (cold, warm, cold):
        fleet.ensure(one)
    fleet.wait_for_room(lambda: False)
    up(fleet, warm)
    up(fleet, cold)
    assert list(fleet.started.values()) == [1] and len(pids(tmp_path)) == 3
    fleet.ensure(longer)
    up(fleet, longer)
    assert list(fleet.started.values()) == [1, 1] and len(pids(tmp_path)) == 6
    assert not fleet.restarts
    assert fleet.describe() == [f"{name}: 1 x (1 CPU)" for name in fleet.started]
    assert cpus_of_servers(section(replicas=3, num_cpus=2)) == 6


def test_a_section_that_wants_more_replicas_gets_the_missing_ones(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    fleet.ensure(section())
    more = section(replicas=2)
    fleet.ensure(more)
    all_up(fleet, more, tmp_path)
    assert list(fleet.started.values()) == [2] and len(pids(tmp_path)) == 6


def test_episodes_are_spread_and_stay_and_move_when_their_replica_dies(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    two = section(replicas=2)
    fleet.ensure(two)
    all_up(fleet, two, tmp_path)
    model = backbone(fleet, two)
    home = {episode: port_of(model, episode) for episode in "abcdef"}
    assert sorted(list(home.values()).count(port) for port in set(home.values())) == [3, 3]
    assert {episode: port_of(model, episode) for episode in "abcdef"} == home
    os.kill(server_at(home["a"], tmp_path), signal.SIGKILL)
    moved = {episode: port_of(model, episode) for episode in "abcdef"}
    other = next(port for port in home.values() if port != home["a"])
    assert set(moved.values()) == {other}
    assert wait_until(lambda: fleet.ready(two) and sum(fleet.restarts.values()) == 1, START_S)
    assert list(fleet.started.values()) == [2]
    for episode in "abcdef":
        model.end_episode(episode)
    assert len({port_of(model, episode) for episode in "gh"}) == 2  # the new one takes part
    model.close()


def test_a_call_outlives_the_death_of_the_only_server(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    slow = section(latency_s=1.5)
    fleet.ensure(slow)
    up(fleet, slow)
    model = backbone(fleet, slow)
    before = port_of(model, "a")
    killer = threading.Timer(0.5, os.kill, (server_at(before, tmp_path), signal.SIGKILL))
    killer.start()
    reply = model.chat(MESSAGES, context("a"))
    killer.join()
    assert reply.usage.total_tokens == 15 and reply.latency_s > 2
    assert wait_until(lambda: fleet.ready(slow) and sum(fleet.restarts.values()) == 1, 5)
    model.close()


def test_a_call_gives_up_in_time_with_the_reason(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    hasty = section(failover_timeout_s=1.0, latency_s=0)
    fleet.ensure(hasty)
    up(fleet, hasty)
    model = backbone(fleet, hasty)
    os.kill(server_at(port_of(model, "a"), tmp_path), signal.SIGKILL)
    started = time.monotonic()
    with pytest.raises(RetriesExhausted, match="no replica gave a usable answer"):
        model.chat(MESSAGES, context("a"))
    assert time.monotonic() - started < 5
    model.close()


def test_a_server_that_cannot_start_is_told_once_and_not_tried_again(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    broken, sound = section(behaviour="ends at once"), section()
    fleet.ensure(broken)
    fleet.ensure(sound)

    def failed() -> bool:
        try:
            return fleet.ready(broken)
        except BackboneError as error:
            assert "ValueError: the KV cache does not fit" in error.message
            return True

    assert wait_until(failed, START_S)
    up(fleet, sound)
    time.sleep(3)  # a restart would take less
    assert len(pids(tmp_path)) == 6
    with pytest.raises(BackboneError, match="KV cache"):
        fleet.ready(broken)


def test_a_server_that_keeps_dying_is_given_up(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    fragile = section()
    fleet.ensure(fragile)
    killed: set[int] = set()

    def given_up() -> bool:
        try:
            if fleet.ready(fragile):
                for pid in alive(tmp_path):
                    if "stand_in_server" in Path(f"/proc/{pid}/cmdline").read_text() and pid not in killed:
                        killed.add(pid)
                        os.kill(pid, signal.SIGKILL)
        except BackboneError as error:
            assert "died 4 times" in error.message and "signal 9" in error.message
            return True
        return False

    assert wait_until(given_up, 120)
    assert len(killed) == 4
    assert wait_until(lambda: not alive(tmp_path), 5)


def test_a_replica_whose_actor_is_killed_comes_back_and_leaves_nothing(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    one = section()
    fleet.ensure(one)
    up(fleet, one)
    first = alive(tmp_path)
    server = next(pid for pid in first if "stand_in_server" in Path(f"/proc/{pid}/cmdline").read_text())
    os.kill(int(Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()[1]), signal.SIGKILL)  # its parent
    assert wait_until(lambda: not set(first) & set(alive(tmp_path)), 15)
    assert wait_until(lambda: fleet.ready(one) and sum(fleet.restarts.values()) == 1, START_S)


def test_servers_without_room_are_told_with_what_is_asked_and_what_there_is(
    fleet: Fleet, section: Callable[..., dict[str, Any]]
) -> None:
    large = section(replicas=2, num_cpus=40)
    fleet.ensure(large)
    with pytest.raises(ConfigError, match=r"2 x \(40 CPU\).* the cluster has 1 x \(4 CPU"):
        fleet.wait_for_room(lambda: False)


def test_stopping_while_servers_start_leaves_nothing(
    cluster: ClusterSettings, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    made = Fleet(cluster, tmp_path / "servers")
    made.ensure(section(behaviour="never well"))
    assert wait_until(lambda: len(alive(tmp_path)) == 3, START_S)
    started = time.monotonic()
    made.stop()
    assert time.monotonic() - started < 30
    assert wait_until(lambda: not alive(tmp_path), 10)


def test_many_episodes_at_once_lose_nothing_when_a_replica_dies(
    fleet: Fleet, section: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    two = section(replicas=2, latency_s=0.05)
    fleet.ensure(two)
    all_up(fleet, two, tmp_path)
    model = backbone(fleet, two)
    victim = server_at(port_of(model, "e0"), tmp_path)

    def play(number: int) -> int:
        if number == 7:
            os.kill(victim, signal.SIGKILL)
        return sum(model.chat(MESSAGES, context(f"e{number}")).usage.total_tokens for _ in range(5))

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(play, range(16))) == [75] * 16
    model.close()


class TestContract(BackboneContract):
    @pytest.fixture
    def backbone(self, fleet: Fleet, section: Callable[..., dict[str, Any]]) -> Iterator[Backbone]:
        one = section()
        fleet.ensure(one)
        up(fleet, one)
        made = backbone(fleet, one)
        yield made
        made.close()
