"""ALFWorld's own stack, put together as ``AlfredTWEnv.init_env`` does for evaluation."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock


@dataclass(frozen=True)
class StockStep:
    """What the stock stack says after a command."""

    observation: str
    score: float
    done: bool
    won: bool
    commands: list[str]
    facts: list[tuple[str, ...]]
    """Predicate and visible names of every fact, sorted; empty where facts were not asked for."""


class StockGames:
    """Game files in the stock stack; each object maps one more copy of the planner library.

    Args:
        paths: game files; a reset goes on to the next one, in an order of the stack's own.
        max_steps: commands in an episode.
        facts: ask for the facts, too, which makes each step a little slower.
    """

    def __init__(self, paths: Sequence[str], max_steps: int, *, facts: bool = False) -> None:
        import textworld
        import textworld.gym
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

        infos = textworld.EnvInfos(won=True, admissible_commands=True, facts=facts, extras=["gamefile"])
        game = textworld.gym.register_games(
            paths,
            infos,
            batch_size=1,
            asynchronous=False,
            max_episode_steps=max_steps,
            wrappers=[AlfredDemangler(shuffle=False), AlfredInfos],
        )
        self._env: Any = textworld.gym.make(game)

    def reset(self) -> StockStep:
        """Load the next game and start it."""
        observations, infos = self._env.reset()
        return _step(observations[0], 0, False, infos)

    def step(self, command: str) -> StockStep:
        """Play one command."""
        observations, scores, dones, infos = self._env.step([command])
        return _step(observations[0], scores[0], dones[0], infos)


def _step(observation: str, score: float, done: bool, infos: dict[str, Any]) -> StockStep:
    facts = sorted((fact.name, *(thing.name for thing in fact.arguments)) for fact in infos.get("facts", [[]])[0])
    return StockStep(observation, score, done, infos["won"][0], infos["admissible_commands"][0], facts)


@contextmanager
def stock_alfworld() -> Iterator[None]:
    """Inside, ``StockGames`` can be used; afterwards the process's arguments and environment are as before."""
    with (
        # Importing alfworld makes and sets a folder otherwise, and the translator overwrites the arguments.
        mock.patch.dict(os.environ, {"ALFWORLD_DATA": tempfile.gettempdir()}),
        mock.patch.object(sys, "argv", list(sys.argv)),
    ):
        yield
