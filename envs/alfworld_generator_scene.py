"""Furnishing a room for one goal: a few of its receptacles, the wanted objects, and distractors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from random import Random

from skillarena.envs.alfworld_generator_goals import LAMP_STANDS, Goal
from skillarena.envs.alfworld_generator_package import AlfworldPackage
from skillarena.envs.alfworld_generator_rooms import Pose, Receptacle, Room, object_id

RECEPTACLES = (8, 14)
OBJECTS = (10, 20)
PER_RECEPTACLE = 4
"""Most objects in one place, so that texts stay short."""
PER_DISTRACTOR_TYPE = 2
HIDDEN_SHARE = 0.5
"""How often a wanted object is behind a door when there is one it fits behind."""


@dataclass(frozen=True, slots=True)
class Thing:
    """An object and where it lies at the start."""

    type: str
    id: str
    place: Receptacle


@dataclass(frozen=True, slots=True)
class Scene:
    """A furnished room."""

    receptacles: tuple[Receptacle, ...]
    things: tuple[Thing, ...]
    start: Pose
    """Where the agent stands at first, away from every receptacle."""


def furnish(package: AlfworldPackage, room: Room, goal: Goal, rng: Random) -> Scene | None:
    """A random scene in which ``goal`` is not reached yet; None when this draw leaves the objects no place."""
    receptacles = _choose_receptacles(room, goal, rng)
    filling = _Filling(package, receptacles, rng)
    wanted = rng.randint(2, 3) if goal.task_type == "pick_two_obj_and_place" else rng.randint(1, 2)
    sources = package.homes(goal.object) - {goal.receptacle, goal.appliance}
    placed = [filling.put(goal.object, sources, hide=rng.random() < HIDDEN_SHARE) for _ in range(wanted)]
    if goal.lamp:
        placed.append(filling.put(goal.lamp, LAMP_STANDS))
    if not all(placed) or not room.floor:
        return None
    distractors = sorted(room.object_types - {goal.object}) * PER_DISTRACTOR_TYPE
    rng.shuffle(distractors)
    size = rng.randint(*OBJECTS)
    for kind in distractors:
        if len(filling.things) < size:
            filling.put(kind, package.homes(kind))
    return Scene(tuple(receptacles), tuple(filling.things), rng.choice(room.floor))


def _choose_receptacles(room: Room, goal: Goal, rng: Random) -> list[Receptacle]:
    """What the goal needs, then one of each type, then any others, up to a random size; sorted by id."""
    pool = list(room.receptacles)
    rng.shuffle(pool)
    needed = {goal.receptacle, goal.appliance} | (LAMP_STANDS if goal.lamp else frozenset())
    first = {receptacle.type: receptacle for receptacle in reversed(pool)}
    pool.sort(key=lambda receptacle: (receptacle is not first[receptacle.type], receptacle.type not in needed))
    return sorted(pool[: rng.randint(*RECEPTACLES)], key=lambda receptacle: receptacle.id)


class _Filling:
    """Objects put into receptacles so far."""

    def __init__(self, package: AlfworldPackage, receptacles: list[Receptacle], rng: Random) -> None:
        self.things: list[Thing] = []
        self._package = package
        self._receptacles = receptacles
        self._rng = rng
        self._load: Counter[Receptacle] = Counter()

    def put(self, kind: str, homes: Collection[str], *, hide: bool = False) -> bool:
        """Put one object of type ``kind`` into a receptacle of a type in ``homes``; False when all of them are full.

        ``hide`` prefers places behind a door.
        """
        places = [place for place in self._receptacles if place.type in homes and self._load[place] < PER_RECEPTACLE]
        closed = [place for place in places if place.type in self._package.openable]
        if not places:
            return False
        place = self._rng.choice(closed if hide and closed else places)
        self._load[place] += 1
        self.things.append(Thing(kind, self._new_id(kind, place), place))
        return True

    def _new_id(self, kind: str, place: Receptacle) -> str:
        """An unused id near the receptacle's centre; ids decide the numbers in visible names."""
        taken = {thing.id for thing in self.things}
        x, height, z = place.position
        while True:
            position = (x + self._rng.randint(-30, 30), height + 5, z + self._rng.randint(-30, 30))
            if (found := object_id(kind, position)) not in taken:
                return found
