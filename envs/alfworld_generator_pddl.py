"""A scene and its goal as a PDDL problem of ALFWorld's domain."""

from __future__ import annotations

from collections.abc import Iterable

from skillarena.envs.alfworld_generator_goals import Goal
from skillarena.envs.alfworld_generator_package import AlfworldPackage
from skillarena.envs.alfworld_generator_rooms import Pose
from skillarena.envs.alfworld_generator_scene import Scene

_ESCAPES = str.maketrans({"-": "_minus_", "|": "_bar_", "+": "_plus_", ".": "_dot_"})


def problem(package: AlfworldPackage, scene: Scene, goal: Goal) -> str:
    """The problem's text: the kinds of facts that ALFWorld's own problems have. Equal scenes give equal texts."""
    objects = "\n".join(f"        {line}" for line in _declarations(package, scene))
    facts = "\n".join(f"        ({fact})" for fact in _facts(package, scene))
    return f"""
(define (problem plan_generated)
    (:domain alfred)
    (:objects
{objects}
    )
    (:init
{facts}
    )
{goal.pddl(package)}"""


def _declarations(package: AlfworldPackage, scene: Scene) -> Iterable[str]:
    yield "agent1 - agent"
    # All types, used or not: the domain's actions name some of them.
    yield from (f"{name}Type - otype" for name in sorted(package.object_types))
    yield from (f"{name}Type - rtype" for name in sorted(package.receptacle_types))
    yield from (f"{_symbol(thing.id)} - object" for thing in scene.things)
    yield from (f"{_symbol(receptacle.id)} - receptacle" for receptacle in scene.receptacles)
    poses = {receptacle.pose: None for receptacle in scene.receptacles} | {scene.start: None}
    yield from (f"{_location(pose)} - location" for pose in poses)


def _facts(package: AlfworldPackage, scene: Scene) -> Iterable[str]:
    yield f"atLocation agent1 {_location(scene.start)}"
    for receptacle in scene.receptacles:
        symbol = _symbol(receptacle.id)
        yield f"receptacleType {symbol} {receptacle.type}Type"
        yield f"receptacleAtLocation {symbol} {_location(receptacle.pose)}"
        if receptacle.type in package.openable:
            yield f"openable {symbol}"
    present = sorted({thing.type for thing in scene.things})
    for kind in sorted({receptacle.type for receptacle in scene.receptacles}):
        yield from (f"canContain {kind}Type {name}Type" for name in present if name in package.holds.get(kind, ()))
    for thing in scene.things:
        symbol = _symbol(thing.id)
        yield f"objectType {symbol} {thing.type}Type"
        yield f"objectAtLocation {symbol} {_location(thing.place.pose)}"
        yield f"inReceptacle {symbol} {_symbol(thing.place.id)}"
        if thing.type not in package.affordances["Toggleable"]:
            yield f"pickupable {symbol}"
        if thing.type in package.containers:
            yield f"isReceptacleObject {symbol}"
        for affordance in sorted(package.affordances):
            if thing.type in package.affordances[affordance]:
                yield f"{affordance.lower()} {symbol}"


def _symbol(identifier: str) -> str:
    return identifier.translate(_ESCAPES)


def _location(pose: Pose) -> str:
    return _symbol(f"loc|{pose.x}|{pose.z}|{pose.turn}|{pose.tilt}")
