"""Rooms as the packaged layouts describe them: receptacles with ids, positions and standing points."""

from __future__ import annotations

import json
from dataclasses import dataclass

from skillarena.envs.alfworld_generator_package import AlfworldPackage

GRID_CM = 25
"""ALFRED's navigation grid."""

SMALLEST_ROOM = 8
"""Floor plans with fewer receptacles leave too little to search."""


@dataclass(frozen=True, slots=True)
class Pose:
    """Where the agent stands: grid cells, quarter turns, and the camera's tilt in degrees."""

    x: int
    z: int
    turn: int
    tilt: int


@dataclass(frozen=True, slots=True)
class Receptacle:
    """A piece of furniture or an appliance."""

    type: str
    position: tuple[int, int, int]
    """Centre (x, height, z) in centimetres."""
    pose: Pose
    """Where the agent stands to use it; neighbours may share one."""

    @property
    def id(self) -> str:
        """ALFRED's object id, for example ``Sink|-01.90|+00.97|-01.50|SinkBasin``."""
        if self.type.endswith("Basin"):
            return f"{object_id(self.type.removesuffix('Basin'), self.position)}|{self.type}"
        return object_id(self.type, self.position)


@dataclass(frozen=True, slots=True)
class Room:
    """A floor plan before anything is put into it."""

    number: int
    receptacles: tuple[Receptacle, ...]
    object_types: frozenset[str]
    """Types of objects that ALFRED puts into this room."""
    floor: tuple[Pose, ...]
    """Free standing points that belong to no receptacle."""


def object_id(kind: str, position: tuple[int, int, int]) -> str:
    """ALFRED's id of a thing of type ``kind`` at ``position`` (x, height, z in centimetres)."""
    return "|".join([kind, *(f"{'-' if cm < 0 else '+'}{abs(cm) // 100:02d}.{abs(cm) % 100:02d}" for cm in position)])


def load_rooms(package: AlfworldPackage, *, unseen: bool) -> dict[str, list[Room]]:
    """All floor plans with enough receptacles, by room kind.

    ``unseen`` picks the floor plans that ALFRED keeps for testing, otherwise the others.
    """
    return {
        kind: [
            room
            for number in numbers
            if (number in package.test_rooms) == unseen
            and len((room := load_room(package, number)).receptacles) >= SMALLEST_ROOM
        ]
        for kind, numbers in package.rooms.items()
    }


def load_room(package: AlfworldPackage, number: int) -> Room:
    """Read floor plan ``number``.

    The layouts give a vetted standing point for most receptacles. A type that the room has but the layouts give no
    point for (a toaster, say) stands once at a free point of the floor.
    """
    points: dict[str, list[float]] = json.loads(_text(package, number, "openable"))
    names: set[str] = set(json.loads(_text(package, number, "objects")))
    known = [_parse(key, point) for key, point in sorted(points.items())]
    known = [receptacle for receptacle in known if receptacle.type in package.receptacle_types]
    floor = _free_floor(package, number, {(receptacle.pose.x, receptacle.pose.z) for receptacle in known})
    missing = sorted((names & package.receptacle_types) - {receptacle.type for receptacle in known})
    step = max(1, len(floor) // (len(missing) + 1))
    stands = floor[step - 1 :: step][: len(missing)]
    added = [_in_front_of(pose, kind) for kind, pose in zip(missing, stands, strict=True)]
    return Room(
        number=number,
        receptacles=tuple(known + added),
        object_types=frozenset(names & package.object_types),
        floor=tuple(pose for pose in floor if pose not in stands),
    )


def _text(package: AlfworldPackage, number: int, what: str) -> str:
    return (package.layouts / f"FloorPlan{number}-{what}.json").read_text(encoding="utf-8")


def _parse(key: str, point: list[float]) -> Receptacle:
    """``Sink|-01.90|+00.97|-01.50|SinkBasin`` and (x, z in metres, rotation, tilt in degrees) as a receptacle."""
    kind, x, height, z, *part = key.split("|")
    position = (_cm(float(x)), _cm(float(height)), _cm(float(z)))
    metres_x, metres_z, rotation, tilt = point
    pose = Pose(_cm(metres_x) // GRID_CM, _cm(metres_z) // GRID_CM, int(rotation) // 90, int(tilt))
    return Receptacle(part[0] if part else kind, position, pose)


def _free_floor(package: AlfworldPackage, number: int, taken: set[tuple[int, int]]) -> list[Pose]:
    import numpy as np

    cells = np.load(package.layouts / f"FloorPlan{number}-layout.npy", allow_pickle=False)
    grid = sorted({(_cm(float(x)) // GRID_CM, _cm(float(z)) // GRID_CM) for x, z in cells})
    return [Pose(x, z, turn=0, tilt=30) for x, z in grid if (x, z) not in taken]


def _in_front_of(pose: Pose, kind: str) -> Receptacle:
    return Receptacle(kind, (pose.x * GRID_CM, 90, pose.z * GRID_CM + 50), pose)


def _cm(metres: float) -> int:
    return round(metres * 100)
