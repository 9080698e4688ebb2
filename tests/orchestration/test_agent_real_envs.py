"""The agent loop on the real simulators."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from stub_server import USAGE, StubServer, completion

from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.interface import Benchmark, EndReason
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.orchestration.agent import run_episode
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.interface import Backbone
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.simulated import SimulatedBackbone
from skillarena.orchestration.dialects import ALFWORLD, SCIENCEWORLD
from skillarena.orchestration.guarded_env import EnvLane, GuardedEnv
from skillarena.orchestration.trajectory import Trajectory
from skillarena.selectors.interface import SelectedSkill, Selection

pytestmark = pytest.mark.slow

TEACHES_ALL = SelectedSkill(
    id="all",
    name="all",
    description="",
    text="`go to X` `take X from Y` `move X to Y` `open X` `use X` `clean X with Y` `heat X with Y` `cool X with Y`",
    score=1.0,
    reason="",
)


@pytest.fixture(scope="module")
def lane() -> Iterator[EnvLane]:
    made = EnvLane()
    yield made
    made.close()


@pytest.fixture(scope="module")
def alfworld(tmp_path_factory: pytest.TempPathFactory) -> AlfworldBenchmark:
    return AlfworldBenchmark(split="generated_seen", limit=6, cache_dir=str(tmp_path_factory.mktemp("alfworld")))


@pytest.fixture(scope="module")
def alfworld_env(alfworld: AlfworldBenchmark, lane: EnvLane) -> Iterator[GuardedEnv]:
    env = GuardedEnv(alfworld.make_env, deadline_s=120, lane=lane)
    yield env
    env.close()


@pytest.fixture(scope="module")
def scienceworld(tmp_path_factory: pytest.TempPathFactory) -> ScienceWorldBenchmark:
    folder = str(tmp_path_factory.mktemp("scienceworld"))
    return ScienceWorldBenchmark(split="seen", task_types=["find-non-living-thing"], limit=1, cache_dir=folder)


@pytest.fixture(scope="module")
def scienceworld_env(scienceworld: ScienceWorldBenchmark, lane: EnvLane) -> Iterator[GuardedEnv]:
    env = GuardedEnv(scienceworld.make_env, deadline_s=300, lane=lane)
    yield env
    env.close()


def play_all(
    env: GuardedEnv, benchmark: Benchmark, backbone: Backbone, skills: tuple[SelectedSkill, ...] = (), seed: int = 0
) -> list[Trajectory]:
    return [
        run_episode(
            task,
            env,
            benchmark,
            backbone,
            Selection(skills=skills),
            AgentSettings(),
            episode_id=task.id,
            seed=seed,
        )
        for task in benchmark.tasks()
    ]


def test_simulated_backbone_without_slips_solves_every_alfworld_game(
    alfworld: AlfworldBenchmark, alfworld_env: GuardedEnv
) -> None:
    played = play_all(alfworld_env, alfworld, SimulatedBackbone(slip_covered=0, slip_uncovered=0))
    assert len(played) == 6
    assert all(episode.outcome is EndReason.SOLVED and episode.reward == 100 for episode in played)
    assert all(episode.env_steps == episode.llm_turns and not episode.invalid_actions for episode in played)


def test_simulated_backbone_slips_on_alfworld_and_does_better_with_a_skill(
    alfworld: AlfworldBenchmark, alfworld_env: GuardedEnv
) -> None:
    backbone = SimulatedBackbone()
    bare = [episode for seed in range(5) for episode in play_all(alfworld_env, alfworld, backbone, (), seed)]
    helped = [
        episode for seed in range(5) for episode in play_all(alfworld_env, alfworld, backbone, (TEACHES_ALL,), seed)
    ]
    assert 0 < sum(episode.won for episode in bare) < sum(episode.won for episode in helped)
    assert any("go to" in (turn.action or "") and "elsewhere" in turn.thought for e in bare for turn in e.turns)
    assert play_all(alfworld_env, alfworld, backbone)[0].turns[0].action == bare[0].turns[0].action


def test_old_put_commands_are_played_as_moves_on_alfworld(
    alfworld: AlfworldBenchmark, alfworld_env: GuardedEnv
) -> None:
    for task in alfworld.tasks():
        alfworld_env.reset(task)
        plan = alfworld_env.plan()
        said = [re.sub(r"^move (.+) to (.+)$", r"put \1 in/on \2", action) for action in plan]
        with StubServer([completion(f"Thought: on\nAction: {action}", usage=USAGE) for action in said]) as stub:
            backbone = OpenAICompatible(base_url=stub.url, model="stub-model", api_key_env=None)
            episode = run_episode(
                task, alfworld_env, alfworld, backbone, Selection(), AgentSettings(), episode_id="e", seed=0
            )
        assert episode.won, task.name
        assert episode.normalised_actions == sum(action.startswith("move ") for action in plan)
        assert [turn.action for turn in episode.turns] == plan


def test_simulated_backbone_solves_scienceworld_in_spite_of_slips(
    scienceworld: ScienceWorldBenchmark, scienceworld_env: GuardedEnv
) -> None:
    backbone = SimulatedBackbone(slip_covered=0.3, slip_uncovered=0.3)
    (episode,) = play_all(scienceworld_env, scienceworld, backbone)
    assert (episode.outcome, episode.reward, episode.score) == (EndReason.SOLVED, 100.0, 100.0)
    slips = [turn for turn in episode.turns if "elsewhere" in turn.thought]
    assert slips and all(turn.action in SCIENCEWORLD.idle and turn.valid for turn in slips)


def test_idle_commands_are_understood_and_change_nothing(
    alfworld: AlfworldBenchmark,
    alfworld_env: GuardedEnv,
    scienceworld: ScienceWorldBenchmark,
    scienceworld_env: GuardedEnv,
) -> None:
    for env, benchmark, dialect in ((alfworld_env, alfworld, ALFWORLD), (scienceworld_env, scienceworld, SCIENCEWORLD)):
        first = env.reset(benchmark.tasks()[0])
        plan = env.plan()
        for command in dialect.idle:
            result = env.step(command)
            assert result.valid and not result.done and result.reward == 0
        assert env.plan() == plan
        if dialect is ALFWORLD:
            assert dialect.places(first.text)


def test_every_command_of_the_help_and_of_plans_has_a_known_verb(
    alfworld: AlfworldBenchmark,
    alfworld_env: GuardedEnv,
    scienceworld: ScienceWorldBenchmark,
    scienceworld_env: GuardedEnv,
) -> None:
    for env, benchmark, dialect in ((alfworld_env, alfworld, ALFWORLD), (scienceworld_env, scienceworld, SCIENCEWORLD)):
        forms = [line.split(":")[0].replace("NUMBER", "0") for line in benchmark.action_help().splitlines()]
        assert [form for form in forms if dialect.verb(form) is None] == []
        for task in benchmark.tasks():
            env.reset(task)
            assert [action for action in env.plan() if dialect.verb(action) is None] == []
