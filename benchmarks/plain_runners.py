"""Runners as one writes them in an afternoon, with this project's agent, client and environments.

    python benchmarks/plain_runners.py lockstep|threads|processes LOAD_AS_JSON PORT

prints the episodes as JSON. ``threads`` is a thread pool, ``processes`` a process pool with a process for each episode
at once, ``lockstep`` plays batches turn by turn: no episode takes its next turn before all of the batch have ended
theirs, and no batch begins before the last one is over. As the simulators are not thread-safe, the environments of one
process take turns, like in the real workers.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict

from alfworld_games import official
from slow_provider import END_TOKENS
from uneven_episodes import Episode, Load

from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.interface import Task
from skillarena.orchestration.agent import run_episode
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.interface import Backbone, EpisodeContext, Message, Reply
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.guarded_env import EnvLane, GuardedEnv
from skillarena.selectors.interface import Selection

SPLIT = "valid_seen" if official() else "generated_seen"
_DEADLINE_S = 600.0
Unit = tuple[Task, int]
"""A task and the seed of its cell."""


def benchmark_of(load: Load) -> AlfworldBenchmark:
    """The games."""
    return AlfworldBenchmark(split=SPLIT, limit=load.games)


class Player:
    """One process's part of a runner: a lane for its environments, of which each thread keeps one.

    Args:
        load: what is played.
        backbone: what answers.
    """

    def __init__(self, load: Load, backbone: Backbone) -> None:
        self.backbone = backbone
        self._benchmark = benchmark_of(load)
        self._settings = AgentSettings.model_validate({"max_tokens": END_TOKENS})
        self._lane = EnvLane()
        self._own = threading.local()

    def play(self, unit: Unit) -> Episode:
        """Play one episode."""
        if not hasattr(self._own, "env"):
            self._own.env = GuardedEnv(self._benchmark.make_env, deadline_s=_DEADLINE_S, lane=self._lane)
        task, seed = unit
        start = time.time()
        trajectory = run_episode(
            task,
            self._own.env,
            self._benchmark,
            self.backbone,
            Selection(),
            self._settings,
            episode_id=f"{task.id} {seed}",
            seed=seed,
        )
        return Episode(start, time.time(), trajectory.llm_turns, trajectory.env_seconds)


def threads(load: Load, port: int, units: Sequence[Unit]) -> list[Episode]:
    """A thread pool."""
    player = Player(load, _client(port))
    with ThreadPoolExecutor(load.at_once) as pool:
        return list(pool.map(player.play, units))


def processes(load: Load, port: int, units: Sequence[Unit]) -> list[Episode]:
    """A process pool. The processes are forks, so that they share what is imported already."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(load.at_once, context, _make_player, (load, port)) as pool:
        return list(pool.map(_play, units))


def lockstep(load: Load, port: int, units: Sequence[Unit]) -> list[Episode]:
    """Batches, turn by turn."""
    client = _client(port)
    episodes: list[Episode] = []
    player = Player(load, client)
    with ThreadPoolExecutor(load.at_once) as pool:
        for first in range(0, len(units), load.at_once):
            batch = units[first : first + load.at_once]
            turnstile = Turnstile(len(batch))
            player.backbone = _InStep(client, turnstile)

            def play(unit: Unit, turnstile: Turnstile = turnstile) -> Episode:
                try:
                    return player.play(unit)
                finally:
                    turnstile.leave()

            episodes += pool.map(play, batch)
    return episodes


class Turnstile:
    """Lets nobody through before all of those left have come."""

    def __init__(self, members: int) -> None:
        self._members = members
        self._waiting = 0
        self._rounds = 0
        self._changed = threading.Condition()

    def pass_through(self) -> None:
        """Wait for the others."""
        with self._changed:
            now = self._rounds
            self._waiting += 1
            self._open_if_all_are_here()
            self._changed.wait_for(lambda: self._rounds > now)

    def leave(self) -> None:
        """Come no more."""
        with self._changed:
            self._members -= 1
            self._open_if_all_are_here()

    def _open_if_all_are_here(self) -> None:
        if self._waiting and self._waiting >= self._members:
            self._waiting = 0
            self._rounds += 1
            self._changed.notify_all()


class _InStep:
    """A backbone that all episodes of a batch ask at the same time."""

    def __init__(self, inner: Backbone, turnstile: Turnstile) -> None:
        self.name = inner.name
        self.simulated = inner.simulated
        self.check = inner.check
        self.close = inner.close
        self._inner = inner
        self._turnstile = turnstile

    def chat(self, messages: Sequence[Message], episode: EpisodeContext | None = None) -> Reply:
        self._turnstile.pass_through()
        return self._inner.chat(messages, episode)


_player: Player


def _make_player(load: Load, port: int) -> None:
    global _player
    _player = Player(load, _client(port))


def _play(unit: Unit) -> Episode:
    return _player.play(unit)


def _client(port: int) -> OpenAICompatible:
    return OpenAICompatible(base_url=f"http://127.0.0.1:{port}/v1", model="slow", api_key_env=None)


RUNNERS: dict[str, Callable[[Load, int, Sequence[Unit]], list[Episode]]] = {
    "lockstep": lockstep,
    "threads": threads,
    "processes": processes,
}


def main(name: str, plain_load: str, port: str) -> None:
    """Play and print."""
    load = Load(**json.loads(plain_load))
    tasks = benchmark_of(load).tasks()
    units = [(task, seed) for seed in range(load.seeds) for task in tasks]
    print(json.dumps([asdict(episode) for episode in RUNNERS[name](load, int(port), units)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
