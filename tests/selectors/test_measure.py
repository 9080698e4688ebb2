"""The cost of a selection: its own work, its own time, and nothing else's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import pytest
from selector_contract import HOT_MUG, task

from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection, SelectionCost
from skillarena.selectors.measure import counters, measured, offline
from skillarena.selectors.parser_cache import ParseCost


@dataclass
class CountingParts:
    done: SelectionCost = field(default_factory=SelectionCost)

    def cost(self) -> SelectionCost:
        return self.done

    def work(self, **more: int) -> None:
        self.done = replace(self.done, **{name: getattr(self.done, name) + count for name, count in more.items()})


@dataclass
class Working:
    """A selector that does some work and reports some cost of its own."""

    work: Callable[[], object]
    own: SelectionCost = field(default_factory=SelectionCost)

    def open(self, task: Task) -> FixedSession:
        self.work()
        return FixedSession(Selection(details={"chosen": []}, cost=self.own))


def test_work_before_a_selection_is_not_its_cost() -> None:
    parts = CountingParts(SelectionCost(pairs_scored=99, pairs_cached=98, prompt_tokens=97, llm_calls=96))
    selector = Working(
        lambda: parts.work(pairs_scored=5, pairs_cached=4, prompt_tokens=3, completion_tokens=2, llm_calls=1)
    )
    for _ in range(2):
        cost = measured(selector, parts, task(HOT_MUG)).cost
        assert replace(cost, seconds=0) == SelectionCost(0, 5, 4, 3, 2, 1)


def test_calls_the_selector_makes_itself_are_added() -> None:
    parts = CountingParts()
    selector = Working(lambda: parts.work(prompt_tokens=3), SelectionCost(prompt_tokens=40, llm_calls=2))
    cost = measured(selector, parts, task(HOT_MUG)).cost
    assert (cost.prompt_tokens, cost.llm_calls) == (43, 2)


def test_only_the_cost_of_the_selection_changes() -> None:
    selection = measured(Working(lambda: None), CountingParts(), task(HOT_MUG))
    assert replace(selection, cost=SelectionCost()) == Selection(details={"chosen": []})


class Clock:
    """A clock that only moves when told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("skillarena.selectors.measure.time", clock)
    return clock


def seconds(work: Callable[[], object]) -> float:
    return measured(Working(work), CountingParts(), task(HOT_MUG)).cost.seconds


def test_seconds_leave_out_offline_work_however_nested(clock: Clock) -> None:
    def work() -> None:
        clock.sleep(1)
        for _ in range(2):
            with offline():
                clock.sleep(8)
                with offline():
                    clock.sleep(16)
        clock.sleep(2)

    assert seconds(work) == 3


def test_offline_work_that_fails_is_left_out_as_well(clock: Clock) -> None:
    def work() -> None:
        for _ in range(2):
            with pytest.raises(OSError, match="broken"), offline():
                clock.sleep(8)
                raise OSError("broken")
        clock.sleep(1)

    assert seconds(work) == 1


def test_offline_work_around_a_selection_does_not_hide_its_time(clock: Clock) -> None:
    with offline():
        assert seconds(lambda: clock.sleep(1)) == 1


def test_an_error_of_the_selector_passes_and_the_next_measurement_is_clean(clock: Clock) -> None:
    def fail() -> None:
        with offline():
            clock.sleep(8)
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        seconds(fail)
    assert seconds(lambda: clock.sleep(1)) == 1


def test_parts_that_do_not_exist_yet_have_done_nothing() -> None:
    reranker = SimpleNamespace(scored=7, cached=3)
    parser = SimpleNamespace(online=ParseCost(10, 2, 1), offline=ParseCost(1000, 1000, 1000))
    assert counters(None, None) == SelectionCost()
    assert counters(reranker, None) == SelectionCost(pairs_scored=7, pairs_cached=3)  # type: ignore[arg-type]
    assert counters(reranker, parser) == SelectionCost(0, 7, 3, 10, 2, 1, 2000)  # type: ignore[arg-type]
