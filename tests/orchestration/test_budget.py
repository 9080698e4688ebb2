"""When a run may start another episode, and what a cap in money needs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.prices import FREE, Price, read_price
from skillarena.orchestration.backbones.reports import Spending
from skillarena.orchestration.budget import Budget, Caps
from skillarena.orchestration.pricing import check_priced, models_called, price_of

API: dict[str, Any] = {
    "_target_": "skillarena.orchestration.backbones.openai_compatible.OpenAICompatible",
    "model": "m",
    "price": {"prompt": 1.0, "cached": 0.1, "completion": 4.0},
}
SIMULATED: dict[str, Any] = {"_target_": "skillarena.orchestration.backbones.simulated.SimulatedBackbone"}


def test_without_caps_everything_may_start() -> None:
    budget = Budget(Caps())
    budget.account(Spending(10**12, 1e9))
    assert budget.may_start(10**6)


def test_few_play_until_it_is_known_what_episodes_take() -> None:
    budget = Budget(Caps(max_tokens=10**6))
    for ended, most in enumerate([1, 2, 4, 6]):
        assert budget.may_start(most - 1), ended
        assert not budget.may_start(most), ended
        budget.ended(Spending(100))


def test_episodes_of_earlier_runs_tell_what_episodes_take_and_cost_nothing() -> None:
    budget = Budget(Caps(max_tokens=1000))
    for _ in range(20):
        budget.learn(Spending(100))
    assert budget.may_start(9)
    assert not budget.may_start(10)


def test_those_playing_are_expected_to_take_what_others_took() -> None:
    budget = Budget(Caps(max_tokens=1000))
    for _ in range(5):
        budget.ended(Spending(100))
    budget.account(Spending(500))
    assert budget.may_start(4)
    assert not budget.may_start(5)


def test_long_episodes_weigh_more_in_what_those_playing_may_take() -> None:
    budget = Budget(Caps(max_tokens=1000))
    for tokens in (100, 300):
        budget.ended(Spending(tokens))  # (100 * 100 + 300 * 300) / 400 = 250 each
    budget.account(Spending(400))
    assert budget.may_start(1)
    assert not budget.may_start(2)


def test_what_those_playing_have_spent_already_is_counted_when_it_is_more_than_expected() -> None:
    budget = Budget(Caps(max_tokens=1000))
    budget.ended(Spending(100))
    budget.account(Spending(850))
    assert budget.may_start(1)
    budget.account(Spending(950))
    assert not budget.may_start(1)


def test_each_cap_holds_alone() -> None:
    budget = Budget(Caps(max_tokens=10**9, max_cost=1.0))
    budget.ended(Spending(10, 0.4))
    budget.account(Spending(10, 0.4))
    assert budget.may_start(0)
    assert not budget.may_start(1)
    assert "run.max_cost" in budget.explain()


def test_a_total_that_comes_late_does_not_bring_money_back() -> None:
    budget = Budget(Caps(max_cost=1.0))
    budget.account(Spending(100, 0.9))
    budget.account(Spending(50, 0.5))
    assert budget.spending == Spending(100, 0.9)


def test_reached_caps_are_named() -> None:
    budget = Budget(Caps(max_tokens=1000))
    budget.account(Spending(1200))
    assert not budget.may_start(0)
    assert "1,200 of 1,000 tokens" in budget.explain() and "run.max_tokens" in budget.explain()


@given(cap=st.integers(1_000, 100_000), slots=st.integers(1, 64), seed=st.integers(0, 999))
def test_episodes_that_differ_by_three_times_end_nearly_all_within_the_cap(cap: int, slots: int, seed: int) -> None:
    """Episodes of 500 to 1500 tokens, told step by step; here nothing is refused, so what is over can be seen."""
    rng, budget = random.Random(seed), Budget(Caps(max_tokens=cap))
    playing: list[list[int]] = []  # spent so far, and in the end
    spent = 0
    while True:
        while len(playing) < slots and budget.may_start(len(playing)):
            playing.append([0, rng.randint(500, 1500)])
        if not playing:
            break
        for episode in list(playing):
            step = min(100, episode[1] - episode[0])
            episode[0] += step
            spent += step
            budget.account(Spending(spent))
            if episode[0] == episode[1]:
                playing.remove(episode)
                budget.ended(Spending(episode[1]))
    assert cap - 2500 <= spent <= cap + 3000 + 0.2 * 1000 * slots


def test_cost_is_prompt_cached_and_completion_at_their_prices() -> None:
    usage = Usage(prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=100_000, reasoning_tokens=90_000)
    assert Price(1.0, 0.1, 4.0).cost(usage) == pytest.approx(0.6 + 0.04 + 0.4)
    assert FREE.cost(usage) == 0.0


@pytest.mark.parametrize("given_", [None, {"prompt": None, "cached": None, "completion": None}, {"prompt": 1.0}])
def test_a_price_with_a_gap_is_not_known(given_: Any) -> None:
    assert read_price(given_) is None


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"promt": 1, "cached": 1, "completion": 1}, "did you mean 'prompt'"),
        ({"prompt": -1, "cached": 1, "completion": 1}, "price.prompt is -1"),
        ({"prompt": 1, "cached": True, "completion": 1}, "price.cached is True"),
        ({"prompt": 1, "cached": 1, "completion": "much"}, "price.completion is 'much'"),
    ],
)
def test_senseless_prices_are_refused(given_: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_price(given_)


def test_prices_come_from_the_section_or_from_a_class_that_is_free() -> None:
    assert price_of(API, "backbone") == Price(1.0, 0.1, 4.0)
    assert price_of({**API, "price": None}, "backbone") is None
    assert price_of(SIMULATED, "backbone") == FREE


def test_a_cap_in_money_names_the_model_whose_price_is_missing() -> None:
    unpriced = {**API, "price": {"prompt": 1.0, "cached": None, "completion": 4.0}}
    check_priced({"backbone": API})
    check_priced({"backbone": SIMULATED, "parser": {"_target_": "x"}})
    with pytest.raises(ConfigError, match=r"backbone\.price is not known"):
        check_priced({"backbone": unpriced})
    with pytest.raises(ConfigError, match=r"parser\.model\.price is not known"):
        check_priced({"backbone": SIMULATED, "parser": {"_target_": "x", "model": unpriced}})


def test_the_models_a_cell_calls_are_its_backbone_and_the_parsers_model_if_it_has_one() -> None:
    assert set(models_called({"backbone": API})) == {"backbone"}
    assert set(models_called({"backbone": API, "parser": {"model": API}})) == {"backbone", "parser.model"}
