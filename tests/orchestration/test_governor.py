"""One limit for many processes: shares, pauses, processes that die, and the account of a run."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.orchestration.backbones.aimd import START
from skillarena.orchestration.backbones.reports import Report, Share, Spending
from skillarena.orchestration.budget import Caps
from skillarena.orchestration.serving.governor import EXPIRY_S, Governor

API = "https://api.example/v1 m $KEY"


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Process:
    """A process as the governor sees it: it starts calls while its share lasts."""

    name: str
    governor: Governor
    want: int
    share: Share = field(default_factory=lambda: Share(0, 0))
    under_way: list[float] = field(default_factory=list)
    """When each call ends."""

    def report(self, replies: int = 0, *, refused: bool = False, pause_s: float = 0.0) -> Share:
        demand = max(self.want, len(self.under_way))
        report = Report(256, self.share.epoch, len(self.under_way), demand, replies, refused, pause_s)
        verdict = self.governor.report(self.name, {API: report}, Spending())
        self.share = verdict.shares[API]
        return self.share


def crew(governor: Governor, wants: list[int]) -> list[Process]:
    return [Process(f"p{number}", governor, want) for number, want in enumerate(wants)]


def shares(processes: list[Process], rounds: int = 3) -> list[int]:
    for _ in range(rounds):
        for process in processes:
            process.report()
    return [process.share.limit for process in processes]


def test_one_process_gets_the_whole_limit() -> None:
    assert shares(crew(Governor(Caps(), Clock()), [50])) == [START]


def test_processes_that_want_the_same_share_alike() -> None:
    assert shares(crew(Governor(Caps(), Clock()), [50, 50, 50, 50])) == [START // 4] * 4


def test_who_needs_little_leaves_the_rest_to_others() -> None:
    assert shares(crew(Governor(Caps(), Clock()), [1, 50])) == [1, START - 1]


def test_a_refusal_of_one_halves_the_limit_of_all_once() -> None:
    processes = crew(Governor(Caps(), Clock()), [50, 50])
    shares(processes)
    for process in processes:
        process.report(refused=True)
    assert sum(shares(processes)) == START // 2


def test_a_pause_asked_of_one_holds_back_all() -> None:
    clock = Clock()
    first, second = crew(Governor(Caps(), clock), [4, 4])
    assert second.report().pause_s == 0
    first.report(refused=True, pause_s=7.0)
    clock.now += 2
    assert second.report().pause_s == pytest.approx(5.0)
    clock.now += 6
    assert second.report().pause_s == 0


def test_pauses_nobody_asked_for_double_with_each_refused_round() -> None:
    clock = Clock()
    (process,) = crew(Governor(Caps(), clock), [4])
    pauses = []
    for _ in range(5):
        process.report()
        pauses.append(process.report(refused=True).pause_s)
        clock.now += 100
    assert pauses == [pytest.approx(0.25 * 2**n) for n in range(5)]
    process.report(replies=1)
    assert process.report(refused=True).pause_s == pytest.approx(0.25)


def test_a_dead_process_loses_its_share() -> None:
    clock = Clock()
    dead, alive = crew(Governor(Caps(), clock), [50, 50])
    shares([dead, alive])
    assert alive.share.limit == START // 2
    clock.now += EXPIRY_S + 0.1
    assert alive.report().limit == START


def test_calls_under_way_keep_their_slots_when_the_share_is_withdrawn() -> None:
    first, second = crew(Governor(Caps(), Clock()), [50, 50])
    first.report()
    first.under_way = [0.0] * START
    assert second.report().limit == 0
    assert first.report().limit == START // 2
    assert second.report().limit == 0  # all slots are still taken
    first.under_way = [0.0] * 5
    first.report()
    assert second.report().limit == START - 5


@settings(max_examples=60, deadline=None)
@given(
    wants=st.lists(st.integers(1, 20), min_size=1, max_size=12),
    ceiling=st.integers(1, 40),
    call_s=st.sampled_from([0.1, 1.0, 8.0]),
    seed=st.integers(0, 999),
)
def test_calls_under_way_never_exceed_the_limit_and_everyone_gets_a_turn(
    wants: list[int], ceiling: int, call_s: float, seed: int
) -> None:
    """Processes that want more than there is, reporting four times a second for two minutes."""
    clock, rng = Clock(), random.Random(seed)
    governor = Governor(Caps(), clock)
    processes = crew(governor, wants)
    made: Counter[str] = Counter()
    turns = max(480, int(8 * 4 * call_s * len(wants) / ceiling))
    for _ in range(turns):
        clock.now += 0.25
        rng.shuffle(processes)
        for process in processes:
            ended = [end for end in process.under_way if end <= clock.now]
            process.under_way = [end for end in process.under_way if end > clock.now]
            demand = max(process.want, len(process.under_way))
            report = Report(ceiling, process.share.epoch, len(process.under_way), demand, len(ended))
            process.share = governor.report(process.name, {API: report}, Spending()).shares[API]
            while len(process.under_way) < min(process.share.limit, process.want):
                process.under_way.append(clock.now + call_s * rng.uniform(0.5, 1.5))
                made[process.name] += 1
            assert sum(len(one.under_way) for one in processes) <= governor.limits()[API] <= ceiling
    assert set(made) == {process.name for process in processes}
    by_want = sorted((process.want, made[process.name]) for process in processes)
    if len({want for want, _ in by_want}) == 1:
        counts = [count for _, count in by_want]
        assert min(counts) >= 0.3 * max(counts)


def test_the_account_sums_what_each_process_has_spent_since_it_began() -> None:
    governor = Governor(Caps())
    for total in (10, 25, 25):
        governor.report("a", {}, Spending(total, total / 100))
    governor.report("b", {}, Spending(5, 0.05))
    assert governor.spending() == Spending(30, pytest.approx(0.3))


def test_a_reached_cap_is_told_to_everyone_and_survives_the_death_of_who_spent() -> None:
    clock = Clock()
    governor = Governor(Caps(max_tokens=100), clock)
    assert governor.report("a", {}, Spending(60)).spent == ""
    clock.now += 10 * EXPIRY_S
    assert "100 tokens" in governor.report("b", {}, Spending(40)).spent


def test_a_restarted_governor_learns_from_the_next_reports() -> None:
    earlier, later = Governor(Caps()), Governor(Caps())
    (process,) = crew(earlier, [4])
    process.report()
    process.report(refused=True)
    assert process.share.epoch == 1
    process.governor = later
    assert process.report() == Share(START, 0)
    later.report(process.name, {}, Spending(77))
    assert later.spending() == Spending(77)


def test_endpoints_are_limited_apart() -> None:
    governor = Governor(Caps(), Clock())
    report = Report(256, 0, 0, 50)
    refused = Report(256, 0, 8, 50, refused=True)
    governor.report("a", {"one": report, "two": report}, Spending())
    governor.report("a", {"one": refused, "two": report}, Spending())
    assert governor.limits() == {"one": START // 2, "two": START}
