"""ALFWorld's own stack, put together as ``AlfredTWEnv.init_env`` does for evaluation."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest


@dataclass(frozen=True)
class StockStep:
    """What the stock stack says after a command."""

    observation: str
    score: float
    done: bool
    won: bool
    commands: list[str]


class StockGame:
    """One game file in the stock stack; each object maps one more copy of the planner library."""

    def __init__(self, path: str, max_steps: int) -> None:
        import textworld
        import textworld.gym
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler, AlfredInfos

        infos = textworld.EnvInfos(won=True, admissible_commands=True, extras=["gamefile"])
        game = textworld.gym.register_games(
            [path],
            infos,
            batch_size=1,
            asynchronous=False,
            max_episode_steps=max_steps,
            wrappers=[AlfredDemangler(shuffle=False), AlfredInfos],
        )
        self._env: Any = textworld.gym.make(game)

    def reset(self) -> tuple[str, list[str]]:
        observations, infos = self._env.reset()
        return observations[0], infos["admissible_commands"][0]

    def step(self, command: str) -> StockStep:
        observations, scores, dones, infos = self._env.step([command])
        return StockStep(observations[0], scores[0], dones[0], infos["won"][0], infos["admissible_commands"][0])


@contextmanager
def stock_alfworld() -> Iterator[None]:
    """Inside, ``StockGame`` can be used; afterwards the process's arguments and environment are as before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ALFWORLD_DATA", tempfile.gettempdir())  # importing alfworld makes and sets a folder otherwise
        patch.setattr(sys, "argv", list(sys.argv))  # the translator overwrites it
        yield
