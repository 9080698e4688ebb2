"""A real vLLM on the CPU, hosted by a Ray actor, answers real episodes with SmolLM2."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
import yaml
from backbone_contract import BackboneContract, context
from stand_in_server import wait_until

from skillarena.conf.errors import BackboneError, ContextOverflow
from skillarena.envs.interface import EndReason
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.assembly import build
from skillarena.orchestration.backbones.interface import Backbone, Usage
from skillarena.orchestration.cluster import connected
from skillarena.orchestration.jobs import EpisodeJob
from skillarena.orchestration.serving.fleet import Fleet
from skillarena.orchestration.settings import ClusterSettings
from skillarena.orchestration.trajectory import Trajectory
from skillarena.orchestration.workers import Played, RolloutWorker
from skillarena.selectors.interface import Selection

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

CONF = Path(__file__).parents[2] / "conf" / "backbone" / "smollm2.yaml"
SMOLLM2 = yaml.safe_load(CONF.read_text()) | {"max_tokens": 24}
BENCHMARKS = {
    "alfworld": {
        "_target_": "skillarena.envs.alfworld.AlfworldBenchmark",
        "split": "generated_seen",
        "limit": 2,
    },
    "scienceworld": {
        "_target_": "skillarena.envs.scienceworld.ScienceWorldBenchmark",
        "split": "seen",
        "task_types": ["find-non-living-thing"],
        "limit": 2,
    },
}
START_S = 600
COUNTERS = {
    "prompt": "vllm:prompt_tokens_total",
    "completion": "vllm:generation_tokens_total",
    "cached": "vllm:prefix_cache_hits_total",
    "looked up": "vllm:prefix_cache_queries_total",
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet whose SmolLM2 server is up."""
    settings = ClusterSettings()
    with connected(settings, cpus=4):
        made = Fleet(settings, tmp_path_factory.mktemp("servers"))
        try:
            made.ensure(SMOLLM2)
            assert wait_until(lambda: made.ready(SMOLLM2), START_S)
            yield made
        finally:
            made.stop()
        assert wait_until(lambda: not engines(), 15), "an engine was left behind"


@pytest.fixture(scope="module")
def worker(fleet: Fleet, cache: str) -> Any:
    """A rollout worker that plays two episodes at a time."""
    import ray

    remote: Any = ray.remote(RolloutWorker)
    return remote.options(max_concurrency=2).remote(cache_dir=cache, secrets={}, endpoints=fleet.endpoints)


def jobs(cache: str, max_turns: int) -> list[EpisodeJob]:
    """Two episodes of each benchmark, in turn."""
    made = []
    for section in BENCHMARKS.values():
        benchmark = build(section, "benchmark", cache_dir=cache)
        for task in benchmark.tasks():
            agent = AgentSettings(max_turns=max_turns)
            made.append(EpisodeJob(section, SMOLLM2, agent, task, Selection(), f"{task.id} {max_turns}", 0))
    return [made[index] for index in (0, 2, 1, 3)]


def trajectory_of(answer: Any) -> Trajectory:
    assert isinstance(answer.result, Played), answer.result
    return answer.result.trajectory


def address(fleet: Fleet) -> str:
    """Where the server is."""
    backbone = build(SMOLLM2, "backbone")
    assert fleet.endpoints is not None
    endpoint = fleet.endpoints.assign(backbone.server_spec().name, "the test")
    assert endpoint is not None
    return endpoint.url.removesuffix("/v1")


def counted(fleet: Fleet) -> Counter[str]:
    """The server's own counters."""
    text = httpx.get(f"{address(fleet)}/metrics", timeout=30).text
    values = {}
    for name, metric in COUNTERS.items():
        found = re.findall(rf"^{metric}\{{.*\}} ([\d.e+]+)$", text, re.MULTILINE)
        assert found, f"the server has no {metric}"
        values[name] = round(sum(map(float, found)))
    return Counter(values)


def engines() -> list[psutil.Process]:
    """Engine processes of all vLLM servers that this process has started."""
    return [process for process in psutil.process_iter() if is_engine(process)]


def is_engine(process: psutil.Process) -> bool:
    try:
        named = any("EngineCore" in word for word in process.cmdline())
        return named and bool(process.environ().get("SKILLARENA_SERVER"))
    except (psutil.Error, OSError):  # it has ended
        return False


def test_token_usage_of_real_episodes_equals_the_servers_own_counters(fleet: Fleet, worker: Any, cache: str) -> None:
    import ray

    before = counted(fleet)
    assert before["prompt"] > 0 and before["completion"] == 1  # the one question at the start
    running = [worker.play.remote(job) for job in jobs(cache, max_turns=4)]
    played = [trajectory_of(answer) for answer in ray.get(running, timeout=800)]

    assert [episode.benchmark for episode in played] == ["alfworld", "scienceworld"] * 2
    assert all(episode.outcome is EndReason.STEP_LIMIT and episode.llm_turns == 4 for episode in played)
    assert not any(episode.simulated for episode in played)
    usage = sum((turn.usage for episode in played for turn in episode.turns), Usage())
    counters = counted(fleet) - before
    assert usage.wasted_tokens == 0 and not usage.estimated
    assert usage.prompt_tokens == counters["prompt"] == counters["looked up"]
    assert usage.completion_tokens == counters["completion"]
    assert usage.cached_tokens == counters["cached"]
    for episode in played:  # every turn but the first finds the conversation so far in the cache
        cached = [turn.usage.cached_tokens for turn in episode.turns]
        assert cached == sorted(cached) and cached[-1] > 0


class TestContract(BackboneContract):
    @pytest.fixture
    def backbone(self, fleet: Fleet) -> Iterator[Backbone]:
        made = build(SMOLLM2, "backbone", endpoints=fleet.endpoints)
        yield made
        made.close()


def test_a_prompt_that_does_not_fit_is_an_overflow(fleet: Fleet) -> None:
    backbone = build(SMOLLM2, "backbone", endpoints=fleet.endpoints)
    with pytest.raises(ContextOverflow):
        backbone.chat([{"role": "user", "content": "word " * 9000}], context("long"))
    backbone.close()


def test_a_server_that_refuses_its_arguments_is_told_with_vllms_own_words(fleet: Fleet) -> None:
    broken = SMOLLM2 | {"engine_args": {"no-such-flag": True}}
    fleet.ensure(broken)
    with pytest.raises(BackboneError, match=r"ended with code 2.*unrecognized arguments: --no-such-flag"):
        wait_until(lambda: fleet.ready(broken), 120)
    assert fleet.ready(SMOLLM2)


def test_an_episode_outlives_the_death_of_the_engine(fleet: Fleet, worker: Any, cache: str) -> None:
    import ray

    before = counted(fleet)
    running = worker.play.remote(jobs(cache, max_turns=12)[0])
    assert wait_until(lambda: (counted(fleet) - before)["completion"] > 30, 120)  # in its second turn or later
    (engine,) = engines()
    engine.send_signal(signal.SIGKILL)
    killed_at = time.monotonic()
    episode = trajectory_of(ray.get(running, timeout=600))
    assert episode.outcome in (EndReason.STEP_LIMIT, EndReason.SOLVED, EndReason.FAILED)
    assert episode.llm_turns == 12
    assert time.monotonic() - killed_at > 5  # it waited for the restart
    assert fleet.ready(SMOLLM2)
    assert list(fleet.restarts.values()) == [1]
