"""The agent loop, with the network as the only thing that is not real."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from pydantic import ValidationError
from stub_server import USAGE, Scripted, StubServer, completion, failure
from test_env_contract import CorridorBenchmark

from skillarena.conf.errors import ContextOverflow, DataError, EnvError
from skillarena.envs.interface import EndReason, Observation, StepResult, Task, TextEnv
from skillarena.orchestration.agent import run_episode
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.errors import RetriesExhausted
from skillarena.orchestration.backbones.interface import Backbone, Usage
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.simulated import SimulatedBackbone
from skillarena.orchestration.prompts import NO_ACTION
from skillarena.orchestration.trajectory import Trajectory, Turn
from skillarena.selectors.interface import SelectedSkill, Selection

CORRIDOR = CorridorBenchmark()
ATTIC = CORRIDOR.tasks()[3]
NONE = Selection()
TWO = Selection(
    skills=(
        SelectedSkill("lib/walker", "walker", "", "# walker\nWalk with `go right`.", 0.9, "fits"),
        SelectedSkill("lib/rester", "rester", "", "# rester\nEnd with `rest`.", 0.8, "fits"),
    )
)


@dataclasses.dataclass(frozen=True)
class ScoredBenchmark:
    """A benchmark with partial scores: ``gain`` adds 25 points, ``spoil`` fails; as in ScienceWorld 100 is success."""

    name: str = "alfworld"
    split: str = "all"
    max_steps: int = 6

    def tasks(self) -> list[Task]:
        identity = hashlib.sha256(b"score").hexdigest()
        return [Task(self.name, self.split, identity, "score", "scored", "Gain as much as you can.")]

    def make_env(self) -> ScoredEnv:
        return ScoredEnv(self.max_steps)

    def points(self, result: StepResult) -> float:
        return max(0.0, result.score)

    def action_help(self) -> str:
        return "gain\nspoil"


class ScoredEnv:
    def __init__(self, max_steps: int) -> None:
        self._max_steps = max_steps
        self.actions: list[str] = []
        self._score = 0.0

    def reset(self, task: Task) -> Observation:
        self.actions, self._score = [], 0.0
        return Observation("Nothing is gained yet.")

    def step(self, action: str) -> StepResult:
        self.actions.append(action)
        before = self._score
        self._score = -100.0 if action == "spoil" else before + 25.0 * (action == "gain")
        ends = {100.0: EndReason.SOLVED, -100.0: EndReason.FAILED}
        reason = ends.get(self._score) or (EndReason.STEP_LIMIT if len(self.actions) == self._max_steps else None)
        won = reason is EndReason.SOLVED
        valid = action in self.admissible_commands()
        return StepResult(action, self._score, self._score - before, reason is not None, won, reason, valid)

    def admissible_commands(self) -> list[str]:
        return ["gain", "spoil"]

    def plan(self) -> list[str]:
        return ["gain"] * int((100 - self._score) // 25)

    def close(self) -> None:
        pass


def says(*actions: str, usage: dict[str, Any] | None = USAGE) -> list[Scripted]:
    return [completion(f"Thought: next is {action}\nAction: {action}", usage=usage) for action in actions]


def client(stub: StubServer, **options: Any) -> OpenAICompatible:
    return OpenAICompatible(
        base_url=stub.url, model="stub-model", api_key_env=None, **({"max_wait_s": 0.01, "max_retries": 2} | options)
    )


def play(
    backbone: Backbone,
    benchmark: Any = CORRIDOR,
    *,
    task: Task | None = None,
    env: TextEnv | None = None,
    selection: Selection = NONE,
    **settings: Any,
) -> Trajectory:
    return run_episode(
        task or benchmark.tasks()[-1],
        env or benchmark.make_env(),
        benchmark,
        backbone,
        selection,
        AgentSettings(**settings),
        episode_id="e1",
        seed=7,
    )


@pytest.fixture
def scored() -> Iterator[ScoredBenchmark]:
    yield ScoredBenchmark()


def prompts_of(stub: StubServer) -> list[list[dict[str, str]]]:
    return [request.body["messages"] for request in stub.chats]


def test_episode_is_played_to_success() -> None:
    with StubServer(says("go right", "go right", "go right", "rest")) as stub:
        played = play(client(stub), selection=TWO)
    assert (played.outcome, played.reward, played.score, played.won) == (EndReason.SOLVED, 100.0, 1.0, True)
    assert (played.env_steps, played.llm_turns, played.invalid_actions, played.skill_lookups) == (4, 4, 0, 0)
    assert played.usage == Usage(400, 256, 40)
    assert (played.task_id, played.task_name, played.benchmark) == (ATTIC.id, ATTIC.name, "corridor")
    assert (played.episode_id, played.seed, played.skills) == ("e1", 7, ("lib/walker", "lib/rester"))
    assert (played.backbone, played.simulated) == ("stub-model", False)
    assert played.first_observation == "You are in the hall. Rest in the attic."
    assert [turn.action for turn in played.turns] == ["go right", "go right", "go right", "rest"]
    assert played.turns[0].thought == "next is go right"
    assert played.turns[0].observation == "You are in the kitchen."
    assert played.seconds >= played.env_seconds >= played.reset_seconds >= 0
    assert played.seconds >= played.llm_seconds > 0


def test_the_episodes_seed_is_sent() -> None:
    with StubServer(says("rest"), default=failure(400, "done")) as stub:
        play(client(stub), task=CORRIDOR.tasks()[0])
    assert stub.chats[0].body["seed"] == 7


@pytest.mark.parametrize("selection", [NONE, TWO])
def test_every_prompt_begins_with_the_one_before(selection: Selection) -> None:
    replies = [*says("go right"), completion("hm"), *says("dance", "go right", "go right", "rest")]
    with StubServer(replies) as stub:
        assert play(client(stub), selection=selection).won
    prompts = prompts_of(stub)
    assert len(prompts) == 6
    for before, after in pairwise(prompts):
        assert after[: len(before)] == before
        assert [message["role"] for message in after[len(before) :]] == ["assistant", "user"]


def test_prompt_holds_commands_skills_task_and_observations() -> None:
    with StubServer(says("go right", "rest")) as stub:
        play(client(stub), task=CORRIDOR.tasks()[1], selection=TWO)
    system, user = prompts_of(stub)[0]
    assert CORRIDOR.action_help() in system["content"]
    walker, rester, task = (
        user["content"].index(text) for text in ("# walker", "# rester", "Task: Rest in the kitchen.")
    )
    assert walker < rester < task
    assert prompts_of(stub)[1][-2:] == [
        {"role": "assistant", "content": "Thought: next is go right\nAction: go right"},
        {"role": "user", "content": "Observation: You are in the kitchen."},
    ]


def test_hidden_reasoning_and_imagined_observations_stay_out_of_the_history() -> None:
    raw = "<think>secret plan</think>Thought: on\nAction: go right\nObservation: You found gold.\nAction: rest"
    with StubServer([completion(raw), *says("rest")]) as stub:
        played = play(client(stub), task=CORRIDOR.tasks()[1])
    assert played.turns[0].reply == raw
    assert prompts_of(stub)[1][-2]["content"] == "Thought: on\nAction: go right"


def test_reply_without_action_costs_a_turn_but_no_env_step() -> None:
    with StubServer([completion("I wonder."), *says("rest")]) as stub:
        played = play(client(stub), task=CORRIDOR.tasks()[0])
    assert (played.env_steps, played.llm_turns, played.invalid_actions) == (1, 2, 1)
    assert (played.turns[0].action, played.turns[0].valid, played.turns[0].observation) == (None, False, NO_ACTION)
    assert prompts_of(stub)[1][-1]["content"] == NO_ACTION
    assert played.won


def test_refused_action_costs_an_env_step_and_counts_as_invalid() -> None:
    with StubServer(says("dance", "rest")) as stub:
        played = play(client(stub), task=CORRIDOR.tasks()[0])
    assert (played.env_steps, played.llm_turns, played.invalid_actions) == (2, 2, 1)
    assert not played.turns[0].valid and played.turns[1].valid


def test_environments_step_limit_ends_the_episode() -> None:
    with StubServer(says(*["go right", "go left"] * 4)) as stub:
        played = play(client(stub))
    assert (played.outcome, played.env_steps, played.reward, played.won) == (EndReason.STEP_LIMIT, 8, 0.0, False)


def test_turns_are_limited_to_twice_the_step_limit() -> None:
    with StubServer(default=completion("no idea")) as stub:
        played = play(client(stub))
    assert (played.outcome, played.llm_turns, played.env_steps) == (EndReason.STEP_LIMIT, 16, 0)
    assert (played.invalid_actions, played.reward, played.score, played.won) == (16, 0.0, 0.0, False)


def test_turn_limit_can_be_set() -> None:
    with StubServer(default=completion("no idea")) as stub:
        played = play(client(stub), max_turns=3)
    assert (played.outcome, played.llm_turns) == (EndReason.STEP_LIMIT, 3)


def test_token_limit_ends_the_episode_with_its_partial_score(scored: ScoredBenchmark) -> None:
    with StubServer(says(*["gain"] * 4)) as stub:
        played = play(client(stub), scored, max_tokens=220)
    assert (played.outcome, played.llm_turns, played.usage.total_tokens) == (EndReason.TOKEN_LIMIT, 2, 220)
    assert (played.reward, played.score, played.won) == (50.0, 50.0, False)


def test_success_with_the_last_token_is_a_success(scored: ScoredBenchmark) -> None:
    with StubServer(says(*["gain"] * 4)) as stub:
        assert play(client(stub), scored, max_tokens=440).outcome is EndReason.SOLVED


def test_wasted_tokens_do_not_count_against_the_limit() -> None:
    with StubServer([completion("", usage=USAGE), *says("rest")]) as stub:
        played = play(client(stub), task=CORRIDOR.tasks()[0], max_tokens=111)
    assert played.won
    assert (played.usage.total_tokens, played.usage.wasted_tokens) == (110, 110)


def test_context_overflow_ends_the_episode_as_token_limit(scored: ScoredBenchmark) -> None:
    with StubServer(says("gain", "gain"), max_prompt=1200) as stub:
        long_skill = SelectedSkill("s", "s", "", "x" * 300, 1.0, "")
        played = play(client(stub), scored, selection=Selection(skills=(long_skill,)), max_turns=50)
    assert played.outcome is EndReason.TOKEN_LIMIT
    assert played.llm_turns == len(stub.chats) - 1
    assert played.reward == 25.0 * min(played.llm_turns, 2)


def test_failure_is_an_outcome_with_the_benchmarks_points(scored: ScoredBenchmark) -> None:
    with StubServer(says("gain", "spoil")) as stub:
        played = play(client(stub), scored)
    assert (played.outcome, played.reward, played.score, played.won) == (EndReason.FAILED, 0.0, -100.0, False)
    assert [turn.score for turn in played.turns] == [25.0, -100.0]


def test_normalised_actions_are_played_counted_and_shown(scored: ScoredBenchmark) -> None:
    env = scored.make_env()
    with StubServer(says("put mug 1 in/on desk 1", "gain")) as stub:
        played = play(client(stub), scored, env=env, max_turns=2)
    assert env.actions == ["move mug 1 to desk 1", "gain"]
    assert [turn.normalised for turn in played.turns] == [True, False]
    assert played.normalised_actions == 1
    assert "Action: move mug 1 to desk 1" in prompts_of(stub)[1][-2]["content"]


def test_reply_cut_by_its_length_limit_is_still_read() -> None:
    cut = completion("Thought: go\nAction: rest", usage=USAGE, finish_reason="length")
    with StubServer([cut]) as stub:
        played = play(client(stub), task=CORRIDOR.tasks()[0])
    assert played.won and played.turns[0].finish_reason == "length"


def test_faults_on_the_way_change_nothing_but_the_waste() -> None:
    faults = [failure(429), failure(500), completion("", usage=USAGE)]
    script = [reply for good in says("go right", "rest") for reply in (*faults, good)]
    task = CORRIDOR.tasks()[1]
    with StubServer(script) as stub:
        disturbed = play(client(stub, max_retries=3), task=task)
    with StubServer(says("go right", "rest")) as stub:
        calm = play(client(stub), task=task)
    assert disturbed.usage == dataclasses.replace(calm.usage, wasted_tokens=220)
    assert [turn.action for turn in disturbed.turns] == [turn.action for turn in calm.turns]
    assert disturbed.outcome is calm.outcome is EndReason.SOLVED


def test_dead_backbone_is_raised_and_finished_turns_have_been_told() -> None:
    told: list[Turn] = []
    with StubServer(says("go right"), default=failure(500)) as stub, pytest.raises(RetriesExhausted):
        run_episode(
            ATTIC,
            CORRIDOR.make_env(),
            CORRIDOR,
            client(stub),
            NONE,
            AgentSettings(),
            episode_id="e",
            seed=0,
            on_turn=told.append,
        )
    assert [turn.action for turn in told] == ["go right"]
    assert told[0].usage.total_tokens == 110


def test_environment_faults_are_raised() -> None:
    class Dying(ScoredEnv):
        def step(self, action: str) -> StepResult:
            raise EnvError("simulator gone")

    with StubServer(says("gain")) as stub, pytest.raises(EnvError, match="simulator gone"):
        play(client(stub), ScoredBenchmark(), env=Dying(3))


def test_simulated_backbone_plays_reproducibly_and_is_marked() -> None:
    def once(seed: int) -> Sequence[str]:
        backbone = SimulatedBackbone(slip_covered=0.2, slip_uncovered=0.5)
        played = run_episode(
            ATTIC, CORRIDOR.make_env(), CORRIDOR, backbone, TWO, AgentSettings(), episode_id=f"e{seed}", seed=seed
        )
        assert played.simulated and played.usage.estimated
        return [turn.reply for turn in played.turns]

    assert once(1) == once(1)
    assert len({tuple(once(seed)) for seed in range(6)}) > 1


def test_trajectory_survives_json() -> None:
    with StubServer([completion("hm"), *says("dance", "rest")]) as stub:
        played = play(client(stub), task=CORRIDOR.tasks()[0], selection=TWO)
    travelled = Trajectory.from_dict(orjson.loads(orjson.dumps(played.to_dict())))
    assert travelled == played
    assert travelled.outcome is EndReason.SOLVED
    assert travelled.turns[0].action is None
    assert isinstance(travelled.turns, tuple) and isinstance(travelled.skills, tuple)


@pytest.mark.parametrize("change", [{"outcome": "bored"}, {"turns": "none"}, {"colour": "red"}])
def test_damaged_trajectory_is_told(change: dict[str, str]) -> None:
    with StubServer(says("rest")) as stub:
        plain = play(client(stub), task=CORRIDOR.tasks()[0]).to_dict()
    with pytest.raises(DataError, match=next(iter(change))):
        Trajectory.from_dict(plain | change)


def test_overflow_is_no_fault_of_the_backbone_interface() -> None:
    with StubServer(max_prompt=10) as stub:
        backbone = client(stub)
        assert play(backbone).outcome is EndReason.TOKEN_LIMIT
        with pytest.raises(ContextOverflow):
            backbone.chat([{"role": "user", "content": "x" * 11}])


@pytest.mark.parametrize(
    "settings", [{"max_turns": 0}, {"max_tokens": 0}, {"env_deadline_s": 0}, {"env_deadline_s": 1e9}, {"max_turn": 5}]
)
def test_senseless_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        AgentSettings(**settings)


def test_settings_are_frozen_and_equal_the_config_file() -> None:
    file = Path(__file__).parents[2] / "conf" / "agent" / "react.yaml"
    assert AgentSettings(**yaml.safe_load(file.read_text())) == AgentSettings()
    with pytest.raises(ValidationError):
        AgentSettings().max_turns = 3
