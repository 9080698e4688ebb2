"""Which replica answers which episode."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from skillarena.orchestration.serving.replicas import LEASE_S, Replicas, State
from skillarena.orchestration.serving.router import Router

A = "server-a"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def books(replicas: int = 2, clock: Clock | None = None) -> Replicas:
    made = Replicas(clock or Clock())
    for number in range(replicas):
        made.starting(A, number)
        made.up(A, number, f"http://r{number}/v1")
    return made


def number_of(made: Replicas, episode: str) -> int:
    replica = made.assign(A, episode)
    assert replica is not None
    return replica.number


def test_an_episode_stays_on_its_replica_and_new_ones_go_to_the_least_loaded() -> None:
    made = books(3)
    placed = {f"e{i}": number_of(made, f"e{i}") for i in range(9)}
    assert Counter(placed.values()) == {0: 3, 1: 3, 2: 3}
    assert all(number_of(made, episode) == number for episode, number in placed.items())


def test_a_released_episode_makes_room() -> None:
    made = books(2)
    assert [number_of(made, e) for e in ("a", "b", "c")] == [0, 1, 0]
    made.release(A, "a")
    made.release(A, "c")
    made.release(A, "never seen")
    assert made.load(A) == {1: 1}
    assert [number_of(made, e) for e in ("d", "e", "f")] == [0, 0, 1]


def test_an_episode_that_was_never_released_is_forgotten() -> None:
    clock = Clock()
    made = books(2, clock)
    assert [number_of(made, e) for e in ("lost 1", "kept", "lost 2")] == [0, 1, 0]
    clock.now = LEASE_S
    number_of(made, "kept")
    clock.now = LEASE_S + 1
    assert number_of(made, "new") == 0
    assert made.load(A) == {0: 1, 1: 1}


def test_episodes_of_a_suspected_replica_move_and_stay_where_they_went() -> None:
    made = books(2)
    assert number_of(made, "a") == 0
    made.suspect(A, "http://r0/v1")
    assert made.suspects == [(A, "http://r0/v1")]
    assert number_of(made, "a") == 1
    assert number_of(made, "b") == 1
    made.clear(A, "http://r0/v1")
    assert number_of(made, "a") == 1
    assert number_of(made, "c") == 0


def test_without_a_healthy_replica_nothing_is_assigned() -> None:
    made = books(1)
    assert made.assign("another server", "a") is None
    made.down(A, 0, "it died")
    assert made.assign(A, "a") is None and made.of(A)[0].reason == "it died"
    assert made.starting(A, 0) == 1
    assert made.assign(A, "a") is None
    made.up(A, 0, "http://elsewhere/v1")
    replica = made.assign(A, "a")
    assert replica is not None and (replica.url, replica.starts) == ("http://elsewhere/v1", 2)


def test_an_old_address_is_not_suspected_in_place_of_the_new_one() -> None:
    made = books(1)
    made.down(A, 0, "")
    made.up(A, 0, "http://new/v1")
    made.suspect(A, "http://r0/v1")
    assert made.of(A)[0].state is State.UP


def test_a_sign_of_life_is_news_only_to_lost_books_and_clears_no_suspicion() -> None:
    made = books(1)
    made.suspect(A, "http://r0/v1")
    made.alive(A, 0, "http://r0/v1")
    assert made.of(A)[0].state is State.SUSPECT and made.of(A)[0].starts == 1
    lost = Replicas()
    lost.alive(A, 0, "http://r0/v1")
    assert lost.of(A)[0].state is State.UP


class Traffic(RuleBasedStateMachine):
    """Random traffic and faults, against what must always hold."""

    numbers = st.integers(0, 3)
    episodes = st.sampled_from([f"e{i}" for i in range(8)])

    @initialize()
    def begin(self) -> None:
        self.books = Replicas(Clock())
        self.home: dict[str, int] = {}

    def up(self) -> set[int]:
        return {replica.number for replica in self.books.of(A) if replica.state is State.UP}

    @rule(number=numbers)
    def come_up(self, number: int) -> None:
        self.books.starting(A, number)
        self.books.up(A, number, f"http://r{number}/v1")

    @rule(number=numbers)
    def go_down(self, number: int) -> None:
        self.books.down(A, number, "")

    @rule(number=numbers)
    def suspect(self, number: int) -> None:
        self.books.suspect(A, f"http://r{number}/v1")

    @rule(number=numbers)
    def clear(self, number: int) -> None:
        self.books.clear(A, f"http://r{number}/v1")

    @rule(episode=episodes)
    def call(self, episode: str) -> None:
        up, load = self.up(), self.books.load(A)
        replica = self.books.assign(A, episode)
        if not up:
            assert replica is None
            self.home.pop(episode, None)
            return
        assert replica is not None and replica.number in up
        before = self.home.get(episode)
        if before in up:
            assert replica.number == before
        else:
            if before is not None:
                load[before] -= 1
            assert load[replica.number] == min(load[number] for number in up)
        self.home[episode] = replica.number

    @rule(episode=episodes)
    def end(self, episode: str) -> None:
        self.books.release(A, episode)
        self.home.pop(episode, None)

    @invariant()
    def load_is_the_episodes_that_are_going_on(self) -> None:
        assert self.books.load(A) == Counter(self.home.values())


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    """Answers ``/health`` with its attribute ``status``."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(http.status if self.path == "/health" else 404)  # type: ignore[attr-defined]
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield http
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.mark.slow
def test_a_suspected_replica_gets_traffic_again_once_it_is_well(server: ThreadingHTTPServer) -> None:
    server.status = 503  # type: ignore[attr-defined]
    router = Router("the key")
    url = f"http://127.0.0.1:{server.server_port}/v1"
    router.starting(A, 0)
    router.up(A, 0, url)
    router.suspect(A, url)
    time.sleep(2.5)  # two probes
    assert router.assign(A, "e") is None
    server.status = 200  # type: ignore[attr-defined]
    ends = time.monotonic() + 10
    while (endpoint := router.assign(A, "e")) is None and time.monotonic() < ends:
        time.sleep(0.1)
    assert endpoint is not None and (endpoint.url, endpoint.key, endpoint.replica) == (url, "the key", 0)
    assert "the key" not in repr(endpoint)
