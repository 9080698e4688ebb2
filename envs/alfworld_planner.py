"""Finds a way to solve an ALFWorld game from any state, for the six kinds of goals that ALFWorld has.

Fast Downward's own planner, as it comes with ALFWorld, searches without a heuristic and takes minutes in a large
kitchen. ALFWorld's goals need no search: once it is chosen which things are used, each step follows from the last.
So every choice is drafted on the facts of the game, and the shortest draft is the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

from skillarena.envs.alfworld_scene import Scene

_CHANGES = {
    "isclean": ("cleanable", "sinkbasintype", "clean"),
    "ishot": ("heatable", "microwavetype", "heat"),
    "iscool": ("coolable", "fridgetype", "cool"),
}
"""Wanted state to what a thing must allow for it, the type of appliance, and the verb."""

_CONDITION = re.compile(r"\((\w+) (\?\w+)(?: ([?\w]+))?\)")
_KNOWN = {"objecttype", "receptacletype", "inreceptacle", "toggleable", "istoggled", "receptacleatlocation"}
_KNOWN |= {"atlocation", "holds", "cleanable", "heatable", "coolable", *_CHANGES}


@dataclass(frozen=True, slots=True)
class Goal:
    """What a game asks for, in lower-case PDDL symbols."""

    thing: str
    """Type of the object to bring, or to hold under the lamp."""
    count: int = 1
    """How many of them."""
    place: str = ""
    """Type of receptacle to bring it to; empty for a lamp goal."""
    state: str = ""
    """``isclean``, ``ishot``, ``iscool``, or empty."""
    lamp: str = ""
    """Type of lamp to turn on; empty for the others."""


def read_goal(problem: str) -> Goal | None:
    """The goal of a PDDL problem, or None when it is not one of ALFWorld's kinds."""
    _, _, text = problem.lower().partition("(:goal")
    found = [match.groups() for match in _CONDITION.finditer(text)]
    if not {predicate for predicate, _, _ in found} <= _KNOWN:
        return None
    lamps = {variable for predicate, variable, _ in found if predicate == "istoggled"}
    types = {variable: kind for predicate, variable, kind in found if predicate == "objecttype"}
    things = [kind for variable, kind in types.items() if variable not in lamps]
    lamp_types = [kind for variable, kind in types.items() if variable in lamps]
    places = {kind for predicate, _, kind in found if predicate == "receptacletype"}
    states = [predicate for predicate, _, _ in found if predicate in _CHANGES]
    if len(set(things)) != 1 or len(places) + len(lamp_types) != 1 or len(states) > 1 or len(things) > 2:
        return None
    return Goal(things[0], len(things), "".join(places), "".join(states), "".join(lamp_types))


def find_plan(goal: Goal, scene: Scene) -> list[str]:
    """The shortest way from the present state, in visible names; empty when there is none."""
    drafts = _lamp_drafts(goal, scene) if goal.lamp else _delivery_drafts(goal, scene)
    ways = [draft.commands for draft in drafts if draft.possible]
    return min(ways, key=lambda way: (len(way), way), default=[])


def _delivery_drafts(goal: Goal, scene: Scene) -> Iterator[_Draft]:
    room = _Room(scene)
    allows, appliance_type, verb = _CHANGES.get(goal.state, ("", "", ""))
    fit, done = room.having(allows), room.having(goal.state)
    things = [thing for thing in room.of_type(goal.thing) if not goal.state or thing in fit]
    appliances = room.of_type(appliance_type) if appliance_type else [""]
    for place, chosen, appliance in product(room.of_type(goal.place), permutations(things, goal.count), appliances):
        draft = _Draft(room)
        for thing in chosen:
            ready = not goal.state or thing in done
            if ready and draft.lies_in(thing, place):
                continue
            draft.take(thing)
            if not ready:
                draft.change(verb, appliance)
            if not draft.lies_in(thing, place):
                draft.put(place)
        yield draft


def _lamp_drafts(goal: Goal, scene: Scene) -> Iterator[_Draft]:
    room = _Room(scene)
    for thing, lamp in product(room.of_type(goal.thing), room.of_type(goal.lamp)):
        draft = _Draft(room)
        draft.take(thing)
        draft.light(lamp)
        yield draft


class _Room:
    """The facts that plans depend on, by object."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self.names = {symbol: entity.name for symbol, entity in scene.entities.items()}
        self.kind = self._pairs("objecttype") | self._pairs("receptacletype")
        self.location = self._pairs("receptacleatlocation")
        self.allowed = set(scene.facts("cancontain"))
        self.places: dict[str, list[str]] = {}
        for thing, place in scene.facts("inreceptacle"):
            self.places.setdefault(thing, []).append(place)
        self.held = next((thing for _, thing in scene.facts("holds")), "")
        self.here = next((location for _, location in scene.facts("atlocation")), "")
        self.closed = self.having("openable") - self.having("opened")
        self.portable = self.having("pickupable")
        self.lit = self.having("istoggled")

    def _pairs(self, predicate: str) -> dict[str, str]:
        return {fact[0]: fact[1] for fact in self._scene.facts(predicate)}

    def having(self, predicate: str) -> set[str]:
        return {fact[0] for fact in self._scene.facts(predicate)}

    def of_type(self, kind: str) -> list[str]:
        return sorted(symbol for symbol, type_ in self.kind.items() if type_ == kind)


class _Draft:
    """A plan in the making: what would be where after ``commands``."""

    def __init__(self, room: _Room) -> None:
        self.commands: list[str] = []
        self.possible = True
        self._room = room
        self._places = {thing: list(places) for thing, places in room.places.items()}
        self._held = room.held
        self._here = room.here
        self._closed = set(room.closed)

    def lies_in(self, thing: str, place: str) -> bool:
        return place in self._places.get(thing, ())

    def take(self, thing: str) -> None:
        if self._held == thing:
            return
        if self._held:
            self._put_away()
        place = self._nearest(thing)
        if thing not in self._room.portable:
            self.possible = False
        self._open(place)
        if not self.possible:
            return
        self._say("take {} from {}", thing, place)
        self._places[thing].remove(place)
        self._held = thing

    def put(self, place: str) -> None:
        if not self._fits(place):
            self.possible = False
        self._open(place)
        self._say("move {} to {}", self._held, place)
        self._places.setdefault(self._held, []).append(place)
        self._held = ""

    def change(self, verb: str, appliance: str) -> None:
        self._go(appliance)
        self._say(f"{verb} {{}} with {{}}", self._held, appliance)

    def light(self, lamp: str) -> None:
        self._go(self._nearest(lamp))
        if lamp not in self._room.lit:
            self._say("use {}", lamp)

    def _put_away(self) -> None:
        fitting = [place for place in self._room.location if self._fits(place)]
        if not fitting:
            self.possible = False
            return
        self.put(min(fitting, key=lambda place: (not self._is_here(place), place in self._closed, place)))

    def _nearest(self, thing: str) -> str:
        """A receptacle that holds the thing; a thing can be in two at once, when one stands on the other."""
        reachable = [place for place in self._places.get(thing, ()) if place in self._room.location]
        return min(reachable, key=lambda place: (not self._is_here(place), place), default="")

    def _fits(self, place: str) -> bool:
        kind = self._room.kind
        return (kind.get(place), kind.get(self._held)) in self._room.allowed

    def _is_here(self, place: str) -> bool:
        return self._room.location.get(place) == self._here

    def _go(self, place: str) -> None:
        if place not in self._room.location:
            self.possible = False
        elif not self._is_here(place):
            self._say("go to {}", place)
            self._here = self._room.location[place]

    def _open(self, place: str) -> None:
        self._go(place)
        if place in self._closed:
            self._say("open {}", place)
            self._closed.remove(place)

    def _say(self, form: str, *things: str) -> None:
        self.commands.append(form.format(*(self._room.names.get(thing, "") for thing in things)))
