"""Which tasks make sense in which room, and how ALFWorld states them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random

from skillarena.conf.errors import EnvError
from skillarena.envs.alfworld_generator_package import AlfworldPackage
from skillarena.envs.alfworld_generator_rooms import Room

_EVALUATION = ("generated_seen", "generated_unseen")
SPLITS = (*_EVALUATION, "generated_train")
"""The one for training has floor plans and pairs of the seen one, as ALFWorld's own has, but other games."""

TASK_TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)

STATE_CHANGES = {
    "pick_clean_then_place_in_recep": ("Cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("Heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("Coolable", "Fridge"),
}
"""Task type to what the object must allow and the appliance that does it."""

LAMP = "DeskLamp"
LAMP_STANDS = frozenset({"Desk", "Dresser", "Shelf", "SideTable"})


@dataclass(frozen=True, slots=True, order=True)
class Goal:
    """A task before it has a scene: what to bring into which state and where."""

    task_type: str
    object: str
    receptacle: str
    """Type to put the object in or on; empty for a task under the lamp."""
    lamp: str = ""

    @property
    def place(self) -> str:
        """Type of the receptacle or lamp that the object goes to."""
        return self.receptacle or self.lamp

    @property
    def appliance(self) -> str:
        """Type of the appliance that changes the object's state; empty when there is no change."""
        return STATE_CHANGES[self.task_type][1] if self.task_type in STATE_CHANGES else ""

    def sentence(self, package: AlfworldPackage, rng: Random) -> str:
        """One of ALFWorld's own goal sentences for this task, without the full stop."""
        template = rng.choice(list(package.goals[self.task_type]["templates"]))
        return template.format(obj=self.object.lower(), recep=self.receptacle.lower(), toggle=self.lamp.lower())

    def pddl(self, package: AlfworldPackage) -> str:
        """The ``(:goal …)`` section, with the bracket that closes the problem."""
        template = str(package.goals[self.task_type]["pddl"])
        return template.format(obj=self.object, recep=self.receptacle, toggle=self.lamp).replace("#", "-")


def feasible_goals(package: AlfworldPackage, room: Room, task_type: str) -> list[Goal]:
    """Every goal of ``task_type`` that the room's furniture and usual objects allow, sorted."""
    here = {receptacle.type for receptacle in room.receptacles}
    objects = room.object_types
    if task_type == "look_at_obj_in_light":
        lit = LAMP in objects and not here.isdisjoint(LAMP_STANDS)
        return sorted(Goal(task_type, kind, "", LAMP) for kind in objects if lit and here & package.homes(kind))
    if task_type in STATE_CHANGES:
        affordance, appliance = STATE_CHANGES[task_type]
        if appliance not in here:
            return []
        objects, here = objects & package.affordances[affordance], here - {appliance}
    return sorted(Goal(task_type, kind, place) for kind in objects for place in here & package.homes(kind))


def in_split(goal: Goal, split: str) -> bool:
    """Whether the pair of object and place belongs to ``split``: each pair is in one split for evaluation only."""
    pair = hashlib.sha256(f"{goal.object} {goal.place}".encode()).digest()[0]
    return _EVALUATION[pair % len(_EVALUATION)] == split.replace("train", "seen")


def sample_goals(
    package: AlfworldPackage, rooms: Mapping[str, Sequence[Room]], split: str, task_type: str, rng: Random
) -> Iterator[tuple[Room, Goal]]:
    """An endless stream of rooms, each with a goal of ``task_type`` that belongs to ``split``.

    Room kinds take turns, and a goal comes back only when a room offers no fresh one. Raises ``EnvError`` when no
    room of ``rooms`` (by kind) allows the task.
    """
    offers: dict[str, list[tuple[Room, list[Goal]]]] = {}
    for kind in sorted(package.task_rooms[task_type]):
        for room in rooms[kind]:
            if goals := [goal for goal in feasible_goals(package, room, task_type) if in_split(goal, split)]:
                offers.setdefault(kind, []).append((room, goals))
    if not offers:
        raise EnvError(f"No floor plan of the installed alfworld allows {task_type} in {split}.")
    kinds = list(offers)
    rng.shuffle(kinds)
    used: set[Goal] = set()
    for kind in cycle(kinds):
        room, goals = rng.choice(offers[kind])
        goal = rng.choice([goal for goal in goals if goal not in used] or goals)
        used.add(goal)
        yield room, goal
