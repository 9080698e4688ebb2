"""What ScienceWorld's tasks ask for, in the simulator's words; kept on disk, since each takes building a world."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from pathlib import Path

from skillarena.envs.json_file import read_json, write_json
from skillarena.envs.scienceworld_jvm import JvmOptions
from skillarena.envs.scienceworld_tasks import Scene
from skillarena.envs.scienceworld_world import World

_PROGRESS_SECONDS = 3.0

logger = logging.getLogger(__name__)


def goals_of(scenes: Sequence[Scene], file: Path, jvm: JvmOptions, deadline_s: float) -> dict[Scene, str]:
    """The goal of each scene.

    Args:
        scenes: scenes with the same simplifications.
        file: where goals for these simplifications and this version of the simulator are kept; new ones are added.
        jvm: how to start the simulator, should goals be missing.
        deadline_s: seconds any answer of the simulator may take.

    Raises:
        EnvError: goals are missing and the simulator does not work.
    """
    known = kept_goals(file)
    missing = [scene for scene in scenes if scene.name not in known]
    if missing:
        known |= _ask(missing, jvm, deadline_s)
        write_json(file, known)
    return {scene: known[scene.name] for scene in scenes}


def kept_goals(file: Path) -> dict[str, str]:
    """Goals by the name of their scene, as far as the file holds any. Raises ``EnvError`` when it cannot be read."""
    kept = read_json(file)
    goals = kept.items() if isinstance(kept, dict) else ()
    return {name: goal for name, goal in goals if isinstance(goal, str) and goal}


def _ask(scenes: Sequence[Scene], jvm: JvmOptions, deadline_s: float) -> dict[str, str]:
    logger.info("reading %d ScienceWorld task descriptions, once for this machine", len(scenes))
    goals: dict[str, str] = {}
    told = time.monotonic()
    world = World(jvm, deadline_s)
    try:
        for scene in scenes:
            world.load(scene)
            goals[scene.name] = world.description().strip()
            if time.monotonic() - told > _PROGRESS_SECONDS:
                told = time.monotonic()
                logger.info("ScienceWorld task descriptions: %d of %d", len(goals), len(scenes))
    finally:
        world.close()
    return goals
