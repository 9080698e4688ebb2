"""A small version of ``benchmarks/bench_scheduling.py``: every runner plays the same episodes, and results are made."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from bench_scheduling import compare, queue
from real_runs import plain_run
from uneven_episodes import Episode, Load, ideal, per_hour, span, tail, without_tail

LOAD = Load(games=4, seeds=2, at_once=4, latency_s=0.05, shortest=2, longest=6)


def test_the_ideal_gives_each_free_slot_the_next_episode_in_the_order_of_their_starts() -> None:
    played = [Episode(start, start + 50.0, turns, 0.0) for start, turns in [(2.0, 2), (0.0, 10), (1.0, 4), (3.0, 8)]]
    best = ideal(played, at_once=2, turn_s=0.5, reset_s=1.0)
    assert [(one.start, one.end) for one in best] == [(0.0, 6.0), (0.0, 3.0), (3.0, 5.0), (5.0, 10.0)]
    assert span(best) == 10.0
    assert tail(best, 2) == 4.0
    assert without_tail(played, 2, turn_s=0.5, reset_s=1.0) == 8.0
    assert per_hour(best) == 1440.0


slow = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKILLARENA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@slow
@pytest.mark.timeout(300)
def test_the_real_run_is_compared_with_lockstep_threads_and_processes_that_played_the_same_episodes() -> None:
    results = list(compare(LOAD, ("lockstep", "threads", "processes")))
    assert len(results) == 6
    assert all(result.value > 0 for result in results)
    detail = results[0].detail
    assert detail["calls_at_once"] == [4]
    assert detail["ideal_s"][0] >= detail["ideal_without_tail_s"] > 0


@slow
def test_episodes_have_uneven_lengths_within_their_bounds_and_the_same_in_every_run() -> None:
    one, other = ([episode.turns for episode in plain_run("threads", LOAD)] for _ in range(2))
    assert one == other
    assert len(one) == LOAD.episodes
    assert len(set(one)) > 1
    assert set(one) <= set(range(2, 7))


@slow
def test_the_driver_finishes_all_queued_units_and_finds_them_again() -> None:
    results = list(queue(1000))
    assert results[2].name.startswith("1,000 finished")
    assert all(result.value > 0 for result in results)
