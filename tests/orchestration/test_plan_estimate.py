"""Expectations are arithmetic on facts: nearest episodes first, assumptions last, unknown never 0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillarena.orchestration.backbones.prices import Price
from skillarena.orchestration.plan_estimate import (
    BARE_EPISODES,
    SKILL_PARSE,
    TASK_PARSE,
    Kind,
    PastEpisode,
    Use,
    cost_of,
    expected_episode,
    expected_skill_parse,
    expected_task_parse,
)

KIND = Kind("alfworld", "skillreranker k=30", "gpt", simulated=False)
OTHER_METHOD = replace(KIND, selector="none")
OTHER_MODEL = replace(OTHER_METHOD, backbone="qwen")
SIMULATED = replace(OTHER_METHOD, backbone="simulated", simulated=True)


def episode(kind: Kind, prompt: float, skill_tokens: float | None = 0.0, calls: float = 10) -> PastEpisode:
    return PastEpisode(kind, Use(calls, prompt, prompt / 2, 100), skill_tokens, Use())


def test_episodes_of_the_same_kind_count_as_they_are() -> None:
    past = [episode(KIND, 1000, 50), episode(KIND, 3000, 50), episode(OTHER_METHOD, 9000)]
    expected = expected_episode(KIND, skill_tokens=500, past=past)
    assert expected.use == Use(10, 2000, 1000, 100)
    assert "2 finished episodes of the same kind" in expected.source
    assert not expected.skills_added


def test_episodes_of_other_methods_count_with_the_expected_skills_in_every_prompt() -> None:
    expected = expected_episode(KIND, skill_tokens=300, past=[episode(OTHER_METHOD, 5000, skill_tokens=100)])
    assert expected.use == Use(10, 5000 - 10 * 100 + 10 * 300, (5000 - 1000 + 3000) / 2, 100)
    assert expected.skills_added


@pytest.mark.parametrize(
    ("kinds", "nearest"),
    [
        ((SIMULATED, OTHER_MODEL, OTHER_METHOD), OTHER_METHOD),
        ((SIMULATED, OTHER_MODEL), OTHER_MODEL),
        ((SIMULATED,), SIMULATED),
    ],
)
def test_the_nearest_kind_decides(kinds: tuple[Kind, ...], nearest: Kind) -> None:
    prompts = {OTHER_METHOD: 1000.0, OTHER_MODEL: 2000.0, SIMULATED: 3000.0}
    expected = expected_episode(KIND, 0.0, [episode(kind, prompts[kind]) for kind in kinds])
    assert expected.use.prompt == prompts[nearest]


def test_other_benchmarks_and_unknown_skills_are_no_guide() -> None:
    past = [episode(replace(KIND, benchmark="scienceworld"), 1.0), episode(OTHER_METHOD, 1.0, skill_tokens=None)]
    assert expected_episode(KIND, 0.0, past).use == BARE_EPISODES["alfworld"]


def test_without_episodes_the_assumption_names_the_command_that_measured_it() -> None:
    expected = expected_episode(KIND, skill_tokens=400, past=[])
    bare = BARE_EPISODES["alfworld"]
    assert expected.use.prompt == pytest.approx(bare.prompt + bare.calls * 400)
    assert expected.use.cached / expected.use.prompt == pytest.approx(bare.cached / bare.prompt)
    assert "skillarena run -m benchmark=alfworld,scienceworld selector=none" in expected.source


def test_an_unknown_benchmark_counts_as_the_dearest_known_one() -> None:
    unknown = expected_episode(replace(KIND, benchmark="mine"), 0.0, [])
    assert unknown.use == BARE_EPISODES["scienceworld"]


def test_a_task_parse_is_learnt_from_selections_that_asked_a_model() -> None:
    asked = replace(episode(KIND, 1.0), parsing=Use(1, 400, 0, 90))
    assert expected_task_parse("alfworld", [asked, episode(KIND, 1.0)]).use == Use(1, 400, 0, 90)
    assert expected_task_parse("scienceworld", [asked]).use == TASK_PARSE


def test_a_skill_parse_reads_the_whole_document() -> None:
    assert expected_skill_parse(1000).prompt == SKILL_PARSE.prompt + 1000


def test_cached_tokens_are_paid_at_their_own_price() -> None:
    use = Use(calls=5, prompt=3_000_000, cached=2_000_000, completion=500_000)
    assert cost_of(use, Price(prompt=1.0, cached=0.1, completion=10.0)) == pytest.approx(1.0 + 0.2 + 5.0)


def test_an_unknown_price_is_not_0() -> None:
    assert cost_of(Use(prompt=1e6), None) is None
    assert cost_of(Use(prompt=1e6), Price(0.0, 0.0, 0.0)) == 0.0
