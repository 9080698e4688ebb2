"""What the installed alfworld package ships and game generation draws on.

Everything is read from the package's files. Importing ``alfworld`` would create a folder in the user's home and set
``ALFWORLD_DATA`` for the whole process, so its two plain data modules are executed by path instead.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType

from skillarena.conf.errors import DataError

INSTALL = "install ALFWorld with: pip install 'skillarena[alfworld]'"


@dataclass(frozen=True, slots=True)
class AlfworldPackage:
    """ALFWorld's game logic, room layouts and common sense about what fits where."""

    domain: str
    """The PDDL domain all games share."""
    grammar: str
    """The text grammar; it holds a placeholder for the goal sentence."""
    layouts: Path
    """Folder of ``FloorPlanN-*.json`` and ``FloorPlanN-layout.npy``."""
    rooms: Mapping[str, tuple[int, ...]]
    """Room kind to its floor plan numbers."""
    test_rooms: frozenset[int]
    """Floor plan numbers that ALFRED keeps for testing; the others are for training."""
    task_rooms: Mapping[str, frozenset[str]]
    """Task type to the room kinds it is played in."""
    goals: Mapping[str, Mapping[str, str | list[str]]]
    """Task type to its goal as ``pddl`` and to the goal sentence's ``templates``."""
    receptacle_types: frozenset[str]
    """Types that stay where they are and hold objects."""
    object_types: frozenset[str]
    """All other types."""
    holds: Mapping[str, frozenset[str]]
    """Receptacle type to the object types that fit into it, slices left out."""
    openable: frozenset[str]
    """Types with a door or lid."""
    containers: frozenset[str]
    """Objects that can hold objects, such as a mug."""
    affordances: Mapping[str, frozenset[str]]
    """``Cleanable``, ``Heatable``, ``Coolable``, ``Toggleable``, ``Sliceable`` to object types."""

    def homes(self, kind: str) -> frozenset[str]:
        """Receptacle types that objects of type ``kind`` fit into."""
        return frozenset(receptacle for receptacle, kinds in self.holds.items() if kind in kinds)


def alfworld_version() -> str:
    """Version of the installed alfworld; raises ``DataError`` when there is none."""
    try:
        return metadata.version("alfworld")
    except metadata.PackageNotFoundError as error:
        raise DataError("Small ALFWorld games cannot be generated: alfworld is not installed.", INSTALL) from error


@cache
def load_package() -> AlfworldPackage:
    """Read the installed package once per process; raises ``DataError`` when it is missing."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise DataError("Small ALFWorld games cannot be generated: alfworld is not installed.", INSTALL)
    root = Path(spec.submodule_search_locations[0])
    constants = _execute(root / "gen" / "constants.py")
    containers = frozenset(constants.MOVABLE_RECEPTACLES_SET)
    receptacle_types = frozenset(constants.RECEPTACLES) - containers
    return AlfworldPackage(
        domain=(root / "data" / "alfred.pddl").read_text(encoding="utf-8"),
        grammar=(root / "data" / "alfred.twl2").read_text(encoding="utf-8"),
        layouts=root / "gen" / "layouts",
        rooms={kind: tuple(numbers) for kind, numbers in constants.SCENE_TYPE.items()},
        test_rooms=frozenset(constants.TEST_SCENE_NUMBERS),
        task_rooms={task_type: frozenset(kinds) for task_type, kinds in constants.GOALS_VALID.items()},
        goals=_execute(root / "gen" / "goal_library.py").gdict,
        receptacle_types=receptacle_types,
        object_types=frozenset(constants.OBJECTS_SET) - receptacle_types,
        holds={
            kind: frozenset(name for name in names if not name.endswith("Sliced"))
            for kind, names in constants.VAL_RECEPTACLE_OBJECTS.items()
            if kind in receptacle_types
        },
        openable=frozenset(constants.OPENABLE_CLASS_SET),
        containers=containers,
        affordances={name: frozenset(types) for name, types in constants.VAL_ACTION_OBJECTS.items()},
    )


def _execute(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_alfworld_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
