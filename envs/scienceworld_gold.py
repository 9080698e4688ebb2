"""Reference plans from ScienceWorld's own solutions, found apart from the played simulator and kept on disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillarena.envs.interface import Task
from skillarena.envs.json_file import read_json, write_json
from skillarena.envs.scienceworld_gold_data import shipped_paths
from skillarena.envs.scienceworld_jvm import JvmOptions
from skillarena.envs.scienceworld_replies import is_refusal
from skillarena.envs.scienceworld_tasks import FULL_SCORE, Scene
from skillarena.envs.scienceworld_world import World

logger = logging.getLogger(__name__)


class GoldPaths:
    """Gold paths of tasks: the shipped ones, and others found when they are first asked for.

    The simulator's own path opens doors that are open already and goes on after the task is solved. What is kept
    here ends with the solution and leaves out what was refused, as long as it still solves the task then.

    Args:
        folder: where they are kept, one file a task; several processes may share it.
        jvm: how to start the simulator, should a path be missing.
        deadline_s: seconds that the simulator may take for one path; a later answer ends the Java process.
        shipped: paths by task id that need not be found; None takes those of the standard tasks.
    """

    def __init__(
        self, folder: Path, jvm: JvmOptions, deadline_s: float, shipped: Mapping[str, list[str]] | None = None
    ) -> None:
        self._shipped = shipped_paths() if shipped is None else shipped
        self._folder = folder
        self._jvm = jvm
        self._deadline_s = deadline_s
        self._world: World | None = None
        self._latest: tuple[str, list[str]] = ("", [])

    def path(self, task: Task) -> list[str]:
        """The gold actions of ``task`` from its start. Raises ``DataError`` or ``EnvError`` when none can be found."""
        if task.id in self._shipped:
            return self._shipped[task.id]
        if self._latest[0] != task.id:
            file = self._folder / f"{task.id}.json"
            actions = _actions_in(file)
            if actions is None:
                actions = self._find(Scene.of(task))
                write_json(file, {"name": task.name, "source": task.source, "actions": actions})
            self._latest = (task.id, actions)
        return self._latest[1]

    def close(self) -> None:
        """Free the simulator that finds paths. Safe to call twice."""
        if self._world is not None:
            self._world.close()
            self._world = None

    def _find(self, scene: Scene) -> list[str]:
        started = time.monotonic()
        if self._world is not None and not self._world.usable:
            self.close()
        if self._world is None:
            self._world = World(self._jvm, self._deadline_s)
        best = _replay(self._world, scene, self._world.gold_path(scene))
        if best.refused:
            shorter = _replay(self._world, scene, best.carried_out)
            best = max(best, shorter, key=lambda replay: (replay.score, -len(replay.actions)))
        seconds = time.monotonic() - started
        logger.info("found the gold path of %s: %d actions, %.1f s", scene.name, len(best.actions), seconds)
        if best.score < FULL_SCORE:
            logger.warning("the gold path of %s reaches a score of %d only", scene.name, best.score)
        return best.actions


@dataclass(frozen=True, slots=True)
class _Replay:
    """What became of a sequence of actions, played from the start of a task."""

    actions: list[str]
    """The actions up to the end of the episode."""
    carried_out: list[str]
    """Those of them that were not refused."""
    score: int
    """Score after the last one, -100 to 100."""

    @property
    def refused(self) -> bool:
        return len(self.carried_out) < len(self.actions)


def _replay(world: World, scene: Scene, actions: Sequence[str]) -> _Replay:
    world.load(scene)
    world.step("look around")
    played: list[str] = []
    carried_out: list[str] = []
    score = 0
    for action in actions:
        observation, score, completed = world.step(action)
        played.append(action)
        if not is_refusal(observation):
            carried_out.append(action)
        if completed or score < 0:
            break
    return _Replay(played, carried_out, score)


def _actions_in(file: Path) -> list[str] | None:
    kept = read_json(file)
    actions = kept.get("actions") if isinstance(kept, dict) else None
    sound = isinstance(actions, list) and all(isinstance(action, str) for action in actions)
    return actions if sound else None
