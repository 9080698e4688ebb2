"""Playing ScienceWorld tasks."""

from __future__ import annotations

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.interface import EndReason, Observation, StepResult, Task
from skillarena.envs.scienceworld_gold import GoldPaths
from skillarena.envs.scienceworld_jvm import JvmOptions
from skillarena.envs.scienceworld_replies import is_question, is_refusal
from skillarena.envs.scienceworld_tasks import FULL_SCORE, Scene
from skillarena.envs.scienceworld_world import World

_CANCEL = "999"
"""A choice that no question offers, which cancels the action that was asked about."""


class ScienceWorldEnv:
    """A ``TextEnv`` whose observations, scores and ends equal the stock wrapper's, action by action.

    It differs in what it does not do: build the world twice for a reset, or fetch lists that nobody asked for. Several
    environments of one process share a Java process, isolated from each other; a late answer ends that process and
    with it their episodes, and the next reset starts a new one.

    Args:
        jvm: how to start the Java process.
        call_deadline_s: seconds any answer of the simulator may take.
        max_steps: actions in an episode; the simulator's own limit counts something else.
        gold: source of reference plans.
    """

    def __init__(self, *, jvm: JvmOptions, call_deadline_s: float, max_steps: int, gold: GoldPaths) -> None:
        self._jvm = jvm
        self._call_deadline_s = call_deadline_s
        self._max_steps = max_steps
        self._gold = gold
        self._world: World | None = None
        self._task: Task | None = None
        self._running = False
        self._played: list[str] = []
        self._asked = False
        self._score = 0

    def reset(self, task: Task) -> Observation:
        """Start ``task``. Raises ``DataError`` when the simulator has no such task, else ``EnvError``."""
        self._task, self._running, self._played, self._asked = None, False, [], False
        scene = Scene.of(task)
        world = self._usable_world()
        world.load(scene)
        text, self._score, _ = world.step("look around")
        if self._score < 0:
            raise DataError(f"ScienceWorld cannot play {task.name}: {text}", "check the simplifications")
        self._task, self._running = task, True
        return Observation(text)

    def step(self, action: str) -> StepResult:
        """Play one action; what counts as a failure of the action is in ``scienceworld_replies``."""
        if self._world is None or not self._running:
            raise EnvError("no ScienceWorld episode is running", "reset the environment first")
        action = action.encode("utf-8", "replace").decode("utf-8")  # no half characters: they cannot be sent
        self._running = False  # unless the simulator answers
        text, score, completed = self._world.step(action)
        self._played.append(action)
        self._asked = is_question(text)
        reward, self._score = score - self._score, score
        end = self._end_reason(completed)
        self._running = end is None
        return StepResult(
            observation=text,
            score=float(score),
            reward=float(reward),
            done=end is not None,
            won=end is EndReason.SOLVED,
            end_reason=end,
            valid=not is_refusal(text),
        )

    def admissible_commands(self) -> list[str]:
        """What the simulator would carry out now, sorted; after an ambiguous request, the numbers it accepts."""
        if self._world is None or self._task is None:
            raise EnvError("no ScienceWorld task is loaded", "reset the environment first")
        return self._world.valid_actions()

    def plan(self) -> list[str]:
        """What is left of the task's gold path: an action played in its turn advances it, others leave it alone.

        So after a slip that matters the rest may lead nowhere, and it may be longer than the steps that are left. If
        another action made the simulator ask a question, the plan starts with cancelling that. The first plan of a
        task takes seconds, at worst a minute; it is remembered on disk.
        """
        if self._task is None:
            raise EnvError("no ScienceWorld task is loaded", "reset the environment first")
        gold = self._gold.path(self._task)
        done, followed = 0, True
        for action in self._played:
            followed = done < len(gold) and action == gold[done]
            done += followed
        rest = gold[done:]
        return [_CANCEL, *rest] if self._asked and not followed else rest

    def close(self) -> None:
        """Free the simulator; the last environment of a process ends the Java process."""
        self._running, self._task = False, None
        if self._world is not None:
            self._world.close()
            self._world = None
        self._gold.close()

    def _end_reason(self, completed: bool) -> EndReason | None:
        if self._score < 0:  # a wrong focus: the simulator itself would go on
            return EndReason.FAILED
        if completed:
            return EndReason.SOLVED if self._score == FULL_SCORE else EndReason.FAILED
        return EndReason.STEP_LIMIT if len(self._played) >= self._max_steps else None

    def _usable_world(self) -> World:
        if self._world is not None and not self._world.usable:
            self._world.close()
            self._world = None
        if self._world is None:
            self._world = World(self._jvm, self._call_deadline_s)
        return self._world
