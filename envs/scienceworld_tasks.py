"""ScienceWorld's tasks: scenes, their identities, and the fixed splits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from skillarena.conf.errors import ConfigError, DataError, EnvError, nearest
from skillarena.envs.interface import Task

BENCHMARK = "scienceworld"
SPLITS = ("seen", "unseen", "train")
SIMPLIFICATIONS = ("noElectricalAction", "openContainers", "openDoors", "selfWateringFlowerPots", "teleportAction")
EASY = "easy"
"""The simulator's bundle of all but ``openContainers``; electrical tasks keep their electrical actions in it."""
FULL_SCORE = 100
"""The score of a solved task."""

_SPLIT_FILE = Path(__file__).parent / "data" / "scienceworld_splits.json"


@dataclass(frozen=True, slots=True)
class Scene:
    """What the simulator needs to build one task's world."""

    task: str
    """Task name in the simulator, for example ``boil``."""
    variation: int
    """Which of the task's variations: other substances, places and objects."""
    simplifications: str
    """Canonical, see ``canonical_simplifications``."""

    @property
    def name(self) -> str:
        """For example ``boil/14``."""
        return f"{self.task}/{self.variation}"

    @property
    def electrical(self) -> bool:
        """True when the task cannot be solved without electrical actions."""
        return "power-component" in self.task or "conductivity" in self.task

    def to_task(self, split: str, version: str) -> Task:
        """The task without its goal, for ``version`` of the simulator."""
        content = {
            "task": self.task,
            "variation": self.variation,
            "simplifications": self.simplifications,
            "simulator": f"scienceworld {version}",
        }
        canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return Task(
            benchmark=BENCHMARK,
            split=split,
            id=hashlib.sha256(canonical.encode()).hexdigest(),
            name=self.name,
            task_type=self.task,
            goal="",
            source={"task": self.task, "variation": self.variation, "simplifications": self.simplifications},
        )

    @classmethod
    def of(cls, task: Task) -> Scene:
        """The scene in a task's source. Raises ``DataError`` when there is none."""
        name, variation = task.source.get("task"), task.source.get("variation")
        simplifications = task.source.get("simplifications")
        if not (isinstance(name, str) and isinstance(variation, int) and isinstance(simplifications, str)):
            raise DataError(
                f"task {task.name!r} is no ScienceWorld task: its source is {task.source}",
                "use tasks of the scienceworld benchmark",
            )
        return cls(name, variation, simplifications)


def scenes(split: str, simplifications: str) -> list[Scene]:
    """All scenes of a split. Raises ``ConfigError`` for an unknown split or simplifications that do not fit a task."""
    if split not in SPLITS:
        hint = nearest(split, SPLITS)
        raise ConfigError(f"unknown ScienceWorld split {split!r}{hint}", f"choose one of {', '.join(SPLITS)}")
    canonical = canonical_simplifications(simplifications)
    pairs: dict[str, list[int]] = json.loads(_SPLIT_FILE.read_text(encoding="utf-8"))[split]
    return [Scene(task, variation, canonical) for task, variations in pairs.items() for variation in variations]


def canonical_simplifications(text: str) -> str:
    """``easy``, or a comma-separated selection of ``SIMPLIFICATIONS`` in their order; empty for none.

    Raises:
        ConfigError: an unknown simplification, or ``easy`` together with others.
    """
    names = {name.strip() for name in text.split(",") if name.strip()}
    if names == {EASY}:
        return EASY
    for name in sorted(names):
        if name not in SIMPLIFICATIONS:
            known = (EASY, *SIMPLIFICATIONS)
            fix = f"give easy, or some of {', '.join(SIMPLIFICATIONS)} with commas between, or nothing"
            raise ConfigError(f"unknown or misplaced simplification {name!r}{nearest(name, known)}", fix)
    return ",".join(name for name in SIMPLIFICATIONS if name in names)


def simulator_version() -> str:
    """Version of the installed simulator. Raises ``EnvError`` when there is none."""
    try:
        return metadata.version("scienceworld")
    except metadata.PackageNotFoundError as error:
        raise EnvError("the package scienceworld is not installed", "pip install 'skillarena[scienceworld]'") from error
