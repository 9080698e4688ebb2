"""Slots of an endpoint in one process, alone and with a governor in another one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from skillarena.orchestration.backbones.aimd import START
from skillarena.orchestration.backbones.errors import BudgetSpent
from skillarena.orchestration.backbones.gate import Gate, Gates
from skillarena.orchestration.backbones.reports import Spending
from skillarena.orchestration.backbones.retry import TryAgain
from skillarena.orchestration.budget import Caps
from skillarena.orchestration.serving.governor import GovernorActor


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


class Endpoint:
    """What calls do: they take ``call_s`` seconds, and more than ``capacity`` at once are refused."""

    def __init__(self, call_s: float = 0.01, capacity: int = 10_000, pause_s: float = 0.0) -> None:
        self.call_s, self.capacity, self.pause_s = call_s, capacity, pause_s
        self.most = self.now = self.answered = self.refused = 0
        self._lock = threading.Lock()

    def call(self, gate: Gate) -> bool:
        """One call through the gate; whether it was answered."""
        with gate.slot(soon(30)) as call:
            with self._lock:
                self.now += 1
                self.most = max(self.most, self.now)
                fits = self.now <= self.capacity
            if fits:
                time.sleep(self.call_s)
            with self._lock:
                self.now -= 1
                self.answered += fits
                self.refused += not fits
            call.replied() if fits else call.refused(self.pause_s)
            return fits

    def calls(self, gate: Gate, count: int, threads: int) -> None:
        """``count`` answered calls by ``threads`` threads."""

        def until_answered(_: int) -> None:
            while not self.call(gate):
                pass

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(until_answered, range(count)))


def test_clients_of_one_endpoint_share_a_gate_and_the_lowest_ceiling() -> None:
    gates = Gates()
    section = {"base_url": "http://a/v1", "model": "m", "api_key_env": "KEY", "max_concurrency": 9}
    gate = gates.of(section)
    assert gates.of({**section, "max_concurrency": 4, "temperature": 1.0}) is gate
    assert gate.ceiling == 4
    others: list[dict[str, Any]] = [{"base_url": "http://b/v1"}, {"model": "n"}, {"api_key_env": "OTHER"}]
    assert len({id(gates.of({**section, **other})) for other in others} | {id(gate)}) == 4


def test_no_more_calls_are_under_way_than_the_ceiling() -> None:
    endpoint, gate = Endpoint(), Gates().at("e", 3)
    endpoint.calls(gate, count=60, threads=16)
    assert (endpoint.most, endpoint.answered) == (3, 60)


def test_the_limit_grows_to_what_the_threads_can_use() -> None:
    endpoint, gate = Endpoint(), Gates().at("e", 256)
    endpoint.calls(gate, count=400, threads=40)
    assert START < endpoint.most <= 40


def test_refusals_bring_the_calls_down_to_what_the_endpoint_takes() -> None:
    endpoint, gate = Endpoint(capacity=6), Gates().at("e", 256)
    endpoint.calls(gate, count=150, threads=32)
    assert endpoint.answered == 150
    assert endpoint.refused < 30


def test_a_pause_holds_back_every_call_of_the_endpoint_and_no_other() -> None:
    gates = Gates()
    gate, other = gates.at("e", 8), gates.at("f", 8)
    with gate.slot(soon()) as call:
        call.refused(0.3)
    started = time.monotonic()
    with other.slot(soon()):
        assert time.monotonic() - started < 0.2
    with gate.slot(soon()):
        assert time.monotonic() - started >= 0.29


def test_waiting_ends_at_the_deadline() -> None:
    gate = Gates().at("e", 1)
    with gate.slot(soon()):
        started = time.monotonic()
        with pytest.raises(TryAgain, match="no slot"), gate.slot(soon(0.1)):
            pass
        assert 0.1 <= time.monotonic() - started < 2
    with gate.slot(soon(0.1)):
        pass


def test_a_call_that_breaks_gives_its_slot_back() -> None:
    gate = Gates().at("e", 1)
    for _ in range(3):
        with pytest.raises(KeyError), gate.slot(soon(0.1)):
            raise KeyError("broken")


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[None]:
    import ray

    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@contextmanager
def governed(caps: Caps, count: int) -> Iterator[tuple[GovernorActor, list[Gates]]]:
    """A governor in its own process, and gates as in ``count`` worker processes."""
    actor = GovernorActor(caps)
    processes = [Gates(actor.handle) for _ in range(count)]
    yield actor, processes
    for gates in processes:
        gates.close()


@pytest.mark.slow
def test_processes_share_the_capacity_of_an_endpoint(ray_cluster: None) -> None:
    endpoint = Endpoint(call_s=0.2, capacity=12)
    with governed(Caps(), 3) as (_actor, processes), ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda gates: endpoint.calls(gates.at("e", 256), count=60, threads=12), processes))
    assert endpoint.answered == 180
    assert endpoint.refused < 40


@pytest.mark.slow
def test_a_pause_asked_of_one_process_holds_back_the_others(ray_cluster: None) -> None:
    with governed(Caps(), 2) as (_actor, processes):
        first, second = (gates.at("e", 64) for gates in processes)
        for gate in (first, second):
            with gate.slot(soon()):
                pass
        with first.slot(soon()) as call:
            call.refused(2.0)
        refused_at = time.monotonic()
        time.sleep(0.5)  # two reports
        with second.slot(soon()):
            assert 1.7 <= time.monotonic() - refused_at < 4


@pytest.mark.slow
def test_when_the_budget_is_spent_every_process_is_told_and_the_driver_knows_how_much(ray_cluster: None) -> None:
    with governed(Caps(max_tokens=100), 2) as (actor, processes):
        gates = [one.at("e", 8) for one in processes]
        for gate in gates:
            with gate.slot(soon()) as call:
                gate.spend(60, 0.5)
                call.replied()
        for gate in gates:
            with pytest.raises(BudgetSpent, match=r"run\.max_tokens"):
                for _ in range(100):
                    with gate.slot(soon()):
                        time.sleep(0.05)
        assert actor.spending(wait_s=5) == Spending(120, 1.0)


@pytest.mark.slow
def test_a_call_that_waits_hears_that_the_budget_is_spent(ray_cluster: None) -> None:
    def wait(gate: Gate) -> str:
        with pytest.raises(BudgetSpent) as caught, gate.slot(soon(10)):
            pass
        return caught.value.message

    with governed(Caps(max_cost=1.0), 1) as (_actor, (gates,)), ThreadPoolExecutor(1) as pool:
        gate = gates.at("e", 1)
        with gate.slot(soon()):
            waiting = pool.submit(wait, gate)
            time.sleep(0.1)
            gate.spend(10, 1.5)
            assert "run.max_cost" in waiting.result(5)


@pytest.mark.slow
def test_without_a_governor_to_hear_one_call_is_made_at_a_time(
    ray_cluster: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import ray

    monkeypatch.setattr("skillarena.orchestration.backbones.gate.EXPIRY_S", 0.5)
    monkeypatch.setattr("skillarena.orchestration.backbones.gate._KEEPALIVE_S", 0.2)
    endpoint = Endpoint(call_s=0.05)
    with governed(Caps(), 1) as (actor, (gates,)):
        endpoint.calls(gates.at("e", 64), count=20, threads=4)
        assert endpoint.most > 1
        ray.kill(actor.handle, no_restart=True)
        time.sleep(1.5)
        endpoint.most = 0
        endpoint.calls(gates.at("e", 64), count=8, threads=4)
        assert endpoint.most == 1
        other = gates.at("never heard of", 64)
        endpoint.calls(other, count=2, threads=2)
    assert caplog.text.count("does not answer") == 1


@pytest.mark.slow
def test_a_restarted_governor_is_found_again(ray_cluster: None) -> None:
    import ray

    endpoint = Endpoint(call_s=0.05)
    with governed(Caps(max_tokens=10**6), 1) as (actor, (gates,)):
        gate = gates.at("e", 64)
        gate.spend(70, 0.0)
        endpoint.calls(gate, count=20, threads=8)
        ray.kill(actor.handle, no_restart=False)
        endpoint.calls(gate, count=100, threads=8)
        ends = soon(20)
        while actor.spending(wait_s=1).tokens != 70:
            assert time.monotonic() < ends
            time.sleep(0.2)
    assert endpoint.answered == 120
