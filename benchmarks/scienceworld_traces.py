"""Whether ScienceWorld plays the same with and without its quicker classes (``envs/scienceworld_quick.py``).

    python benchmarks/scienceworld_traces.py

The first task of each type in each split is played by its gold path (at most 50 actions), then at random, 70 actions in
all. Compared are observations, scores, ends and the lists of valid actions, byte for byte. Takes four minutes.
"""

from __future__ import annotations

from contextlib import closing
from random import Random
from unittest.mock import patch

import typer

from skillarena.envs import scienceworld_jvm
from skillarena.envs.interface import Task, TextEnv
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_tasks import SPLITS

_ACTIONS, _GOLD = 70, 50

Trace = list[tuple[list[str], str, str, float, bool]]
"""Valid actions, the action, its observation, the score, and whether the episode is over."""


def traces(tasks: list[Task]) -> list[Trace]:
    """Play."""
    with closing(ScienceWorldBenchmark(max_steps=10_000).make_env()) as env:
        return [_trace(env, task) for task in tasks]


def _trace(env: TextEnv, task: Task) -> Trace:
    rng = Random(task.id)  # noqa: S311 (no secret)
    env.reset(task)
    plan = env.plan()[:_GOLD]
    env.reset(task)  # a plan may be found by playing
    trace: Trace = []
    for number in range(_ACTIONS):
        valid = env.admissible_commands()
        action = plan[number] if number < len(plan) else rng.choice(valid or ["look around"])
        result = env.step(action)
        trace.append((valid, action, result.observation, result.score, result.done))
        if result.done:
            break
    return trace


def main() -> None:
    """Exit code 1 when anything differs."""
    first: dict[tuple[str, str], Task] = {}
    for split in SPLITS:
        for task in ScienceWorldBenchmark(split=split).tasks():
            first.setdefault((task.task_type, split), task)
    tasks = list(first.values())
    quick = traces(tasks)
    with patch.object(scienceworld_jvm, "quick_jar", lambda simulator: None):
        usual = traces(tasks)
    different = [task.name for task, one, other in zip(tasks, quick, usual, strict=True) if one != other]
    typer.echo(f"{len(tasks)} tasks, {sum(map(len, quick)):,} steps; different: {', '.join(different) or 'none'}")
    raise typer.Exit(bool(different))


if __name__ == "__main__":
    typer.run(main)
