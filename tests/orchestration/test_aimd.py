"""The limit on concurrent calls against models of endpoints, and the division of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillarena.orchestration.backbones.aimd import START, Aimd, fair_share


def play_round(aimd: Aimd, capacity: int, waiting: int = 10_000) -> int:
    """One round trip with an endpoint that answers ``capacity`` calls at once; returns how many it refused."""
    epoch, calls = aimd.epoch, min(aimd.limit, waiting)
    refused = max(0, calls - capacity)
    for _ in range(refused):
        aimd.refused(epoch, calls)
    aimd.replied(epoch, calls - refused, waiting)
    return refused


def test_slow_start_doubles_each_round_until_the_ceiling() -> None:
    aimd = Aimd(100)
    limits = []
    for _ in range(6):
        limits.append(aimd.limit)
        play_round(aimd, capacity=1000)
    assert limits == [START, 2 * START, 4 * START, 8 * START, 100, 100]


def test_all_refusals_of_one_round_trip_halve_once() -> None:
    aimd = Aimd(256)
    while not play_round(aimd, capacity=50):
        before = aimd.limit
    assert before == 64
    assert aimd.limit == 32
    assert aimd.epoch == 1


def test_after_the_first_refusal_a_round_adds_one() -> None:
    aimd = Aimd(256)
    while not play_round(aimd, capacity=50):
        pass
    limits = []
    for _ in range(5):
        limits.append(aimd.limit)
        play_round(aimd, capacity=50)
    assert limits == [32, 33, 34, 35, 36]


def test_answers_to_calls_from_before_a_halving_change_nothing() -> None:
    aimd = Aimd(64)
    aimd.refused(0, START)
    halved = aimd.limit
    aimd.replied(0, 100, demand=100)
    aimd.refused(0, START)
    assert aimd.limit == halved == START // 2


def test_a_limit_that_held_nobody_back_does_not_grow() -> None:
    aimd = Aimd(64)
    for _ in range(10):
        play_round(aimd, capacity=1000, waiting=START - 1)
    assert aimd.limit == START


def test_fewer_calls_than_the_limit_that_are_refused_are_what_is_halved() -> None:
    aimd = Aimd(64)
    for _ in range(3):
        play_round(aimd, capacity=1000)
    aimd.refused(0, under_way=10)
    assert aimd.limit == 5


def test_rounds_refused_in_a_row_are_counted_until_a_reply() -> None:
    aimd = Aimd(64)
    for round_ in range(1, 5):
        aimd.refused(aimd.epoch, aimd.limit)
        assert aimd.refused_rounds == round_
    aimd.replied(aimd.epoch, 1, demand=1)
    assert aimd.refused_rounds == 0


def test_the_lowest_of_several_ceilings_holds() -> None:
    aimd = Aimd(64)
    aimd.lower_ceiling(3)
    aimd.lower_ceiling(50)
    assert aimd.limit == 3
    play_round(aimd, capacity=1000)
    assert aimd.limit == 3


@given(capacity=st.integers(2, 200), ceiling=st.integers(1, 300))
def test_it_settles_between_half_the_capacity_and_just_above_it(capacity: int, ceiling: int) -> None:
    aimd = Aimd(ceiling)
    for _ in range(30):
        play_round(aimd, capacity)
    reached = min(capacity, ceiling)
    for _ in range(300):
        play_round(aimd, capacity)
        assert reached // 2 <= aimd.limit <= min(capacity + 1, ceiling)


@given(
    ceiling=st.integers(1, 300),
    events=st.lists(st.tuples(st.booleans(), st.integers(0, 400), st.integers(0, 3)), max_size=60),
)
def test_the_limit_stays_between_one_and_the_ceiling(ceiling: int, events: list[tuple[bool, int, int]]) -> None:
    aimd = Aimd(ceiling)
    for refused, number, age in events:
        epoch, before = aimd.epoch - age, aimd.limit
        if refused:
            aimd.refused(epoch, number)
            assert aimd.limit <= before
        else:
            aimd.replied(epoch, number, demand=number)
            assert before <= aimd.limit <= 2 * before + 1
        assert 1 <= aimd.limit <= ceiling


DEMANDS = st.lists(st.integers(0, 40), min_size=1, max_size=12)


@given(limit=st.integers(1, 200), demands=DEMANDS)
def test_shares_never_exceed_the_limit_and_waste_nothing(limit: int, demands: list[int]) -> None:
    shares = [fair_share(limit, demands, mine) for mine in range(len(demands))]
    assert sum(shares) <= limit
    if sum(demands) >= limit:
        assert sum(shares) == limit
        assert all(share <= demand for share, demand in zip(shares, demands, strict=True))
    else:
        assert all(share >= demand for share, demand in zip(shares, demands, strict=True))


@given(limit=st.integers(1, 200), demands=DEMANDS)
def test_nobody_gets_more_than_one_slot_above_somebody_who_wants_more(limit: int, demands: list[int]) -> None:
    shares = [fair_share(limit, demands, mine) for mine in range(len(demands))]
    hungry = [share for share, demand in zip(shares, demands, strict=True) if share < demand]
    if hungry:
        assert max(shares) <= min(hungry) + 1


def test_indivisible_slots_go_to_the_first_in_line() -> None:
    assert [fair_share(2, [5, 5, 5], mine) for mine in range(3)] == [1, 1, 0]
    assert [fair_share(5, [1, 5, 5], mine) for mine in range(3)] == [1, 2, 2]
    assert [fair_share(4, [0, 5, 5, 5], mine) for mine in range(4)] == [0, 2, 1, 1]
