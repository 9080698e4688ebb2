from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from backbone_contract import MESSAGES, TASK, BackboneContract

from skillarena.conf.errors import BackboneError, ConfigError
from skillarena.orchestration.action_parser import parse_reply
from skillarena.orchestration.backbones.interface import EpisodeContext, Message
from skillarena.orchestration.backbones.simulated import DISTRACTION, MOST_SLIPS, SimulatedBackbone
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens
from skillarena.orchestration.dialects import ALFWORLD, SCIENCEWORLD
from skillarena.selectors.interface import SelectedSkill

OPENING = (
    "You are in the middle of a room. Looking quickly around you, you see a bed 1, a desk 2, and a sidetable 1.\n\n"
    "Your task is to: put a mug on a desk."
)


def skill(text: str) -> SelectedSkill:
    return SelectedSkill("s", "s", "", text, 1.0, "")


def episode(
    plan: Sequence[str] = ("heat egg 1 with microwave 1",),
    skills: Sequence[SelectedSkill] = (),
    benchmark: str = "alfworld",
    **who: Any,
) -> EpisodeContext:
    task = type(TASK)(benchmark, "split", "0" * 64, "a task", "type", "goal")
    return EpisodeContext(who.get("episode_id", "e"), who.get("seed", 0), task, tuple(skills), lambda: list(plan))


def turns(number: int, observation: str = OPENING) -> tuple[Message, ...]:
    """A prompt after ``number`` turns."""
    messages: list[Message] = [MESSAGES[0], {"role": "user", "content": f"Observation: {observation}"}]
    for _ in range(number):
        messages += [
            {"role": "assistant", "content": "Thought: on\nAction: look"},
            {"role": "user", "content": "Observation: nothing"},
        ]
    return tuple(messages)


def replies(backbone: SimulatedBackbone, context: EpisodeContext, number: int = 300) -> list[str]:
    return [backbone.chat(turns(turn), context).text for turn in range(number)]


class TestContract(BackboneContract):
    @pytest.fixture
    def backbone(self) -> SimulatedBackbone:
        return SimulatedBackbone()


def test_without_slips_it_follows_the_plan() -> None:
    backbone = SimulatedBackbone(slip_covered=0, slip_uncovered=0)
    reply = backbone.chat(turns(0), episode(["go to desk 1", "look"]))
    assert parse_reply(reply.text, ALFWORLD).action == "go to desk 1"
    assert reply.finish_reason == "stop"


def test_without_a_plan_it_looks() -> None:
    backbone = SimulatedBackbone(slip_covered=0, slip_uncovered=0)
    for benchmark, action in (("alfworld", "look"), ("scienceworld", "look around"), ("corridor", "look")):
        reply = backbone.chat(turns(0), episode([], benchmark=benchmark))
        assert parse_reply(reply.text, ALFWORLD).action == action


def test_replies_depend_on_seed_episode_and_turn_only() -> None:
    first = replies(SimulatedBackbone(), episode(), 40)
    assert replies(SimulatedBackbone(), episode(), 40) == first
    assert replies(SimulatedBackbone(), episode(seed=1), 40) != first
    assert replies(SimulatedBackbone(), episode(episode_id="f"), 40) != first
    assert len(set(first)) > 1
    backwards = [SimulatedBackbone().chat(turns(turn), episode()).text for turn in reversed(range(40))]
    assert backwards[::-1] == first


def test_slips_are_as_frequent_as_asked_for_and_rarer_where_a_skill_helps() -> None:
    backbone = SimulatedBackbone(slip_covered=0.2, slip_uncovered=0.6)
    helpful = skill("`heat {object} with {appliance}`")
    for skills, rate in (((), 0.6), ((helpful,), 0.2)):
        said = replies(backbone, episode(skills=skills), 500)
        slips = sum("heat egg 1" not in text for text in said) / len(said)
        assert slips == pytest.approx(rate, abs=0.07)


def test_skills_that_do_not_help_make_slips_likelier() -> None:
    backbone = SimulatedBackbone(slip_covered=0.2, slip_uncovered=0.6)
    helpful, other = skill("`heat {object} with {appliance}`"), skill("x" * 4000)
    action = "heat egg 1 with microwave 1"
    assert backbone.slip_chance(action, episode(skills=[helpful])) == 0.2
    assert backbone.slip_chance(action, episode(skills=[helpful, other])) == pytest.approx(0.2 + DISTRACTION)
    assert backbone.slip_chance(action, episode(skills=[other])) == pytest.approx(0.6 + DISTRACTION)
    assert backbone.slip_chance(action, episode(skills=[other] * 100)) == MOST_SLIPS


@pytest.mark.parametrize(
    ("benchmark", "harmless"),
    [
        ("alfworld", {"look", "inventory", "go to bed 1", "go to desk 2", "go to sidetable 1"}),
        ("scienceworld", {"look around", "inventory"}),
        ("corridor", {"look"}),
    ],
)
def test_slips_are_harmless_actions_or_no_action(benchmark: str, harmless: set[str]) -> None:
    backbone = SimulatedBackbone(slip_covered=1, slip_uncovered=1)
    dialect = SCIENCEWORLD if benchmark == "scienceworld" else ALFWORLD
    context = episode(["focus on red wire"], benchmark=benchmark)
    said = replies(SimulatedBackbone(slip_covered=1, slip_uncovered=1), context, 400)
    actions = [parse_reply(text, dialect).action for text in said]
    assert backbone.slip_chance("focus on red wire", context) == MOST_SLIPS
    assert {action for action in actions if action is not None} - {"focus on red wire"} == harmless
    assert 0 < actions.count(None) < 100


def test_places_named_by_a_skill_are_not_visited() -> None:
    trap = "Looking quickly around you, you see a volcano 7."
    messages = (MESSAGES[0], {"role": "user", "content": f"<skill>{trap}</skill>\n\nObservation: {OPENING}"})
    backbone = SimulatedBackbone(slip_covered=1, slip_uncovered=1)
    said = [backbone.chat(messages, episode(episode_id=str(i))).text for i in range(100)]
    assert any("go to bed 1" in text for text in said)
    assert not any("volcano" in text for text in said)


def test_usage_is_estimated_from_text_and_all_but_the_last_two_messages_are_cached() -> None:
    backbone = SimulatedBackbone()
    reply = backbone.chat(turns(3), episode())
    assert reply.usage.estimated
    assert reply.usage.prompt_tokens == estimate_prompt_tokens(turns(3))
    assert reply.usage.cached_tokens == estimate_prompt_tokens(turns(2))
    assert reply.usage.completion_tokens == estimate_tokens(reply.text)
    assert backbone.chat(turns(0), episode()).usage.cached_tokens == 0


def test_token_estimate_is_a_quarter_of_the_characters_rounded_up() -> None:
    assert [estimate_tokens("x" * n) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_latency_is_imitated() -> None:
    started = time.monotonic()
    reply = SimulatedBackbone(latency_s=0.05).chat(turns(0), episode())
    assert time.monotonic() - started >= 0.05
    assert reply.latency_s >= 0.05


def test_free_prompts_are_refused() -> None:
    with pytest.raises(BackboneError, match="episodes"):
        SimulatedBackbone().chat(MESSAGES)


def test_faults_of_the_plan_are_passed_on() -> None:
    def broken() -> list[str]:
        raise BackboneError("planner gone")

    with pytest.raises(BackboneError, match="planner gone"):
        SimulatedBackbone().chat(MESSAGES, EpisodeContext("e", 0, TASK, (), broken))


@pytest.mark.parametrize("options", [{"slip_covered": -0.1}, {"slip_uncovered": 1.1}, {"latency_s": -1}])
def test_senseless_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        SimulatedBackbone(**options)


def test_config_file_gives_the_defaults() -> None:
    file = Path(__file__).parents[2] / "conf" / "backbone" / "simulated.yaml"
    options = {key: value for key, value in yaml.safe_load(file.read_text()).items() if key not in ("name", "_target_")}
    defaults = inspect.signature(SimulatedBackbone).parameters
    assert options == {name: parameter.default for name, parameter in defaults.items()}
