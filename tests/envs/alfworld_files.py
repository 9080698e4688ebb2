"""Hand-made ALFWorld game files and scenes, as small as the tests allow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skillarena.envs.alfworld_scene import Scene
from skillarena.envs.alfworld_translation import Translation

GRAMMAR = '''
grammar :: """
    {{
        "intro": [{{"rhs": "Welcome!\\n\\n#task#"}}],
        "task": [{{"rhs": "Your task is to: {goal}"}}]
    }}
""";

action look {{
    template :: "look";
    feedback :: "You see nothing.";
}}
'''

PROBLEM = """
(define (problem plan_{name})
  (:domain alfred)
  (:init (atLocation agent1 loc_bar_1))
  (:goal (and (exists (?o - object) (isClean ?o))))
)
"""


def write_game(
    split: Path,
    name: str,
    *,
    task_type: str = "pick_and_place_simple",
    folder: str = "",
    leave_out: str = "",
    **changes: Any,
) -> Path:
    """Write both files of a game that can be listed, though not played; returns the path of ``game.tw-pddl``.

    Args:
        split: folder of the split.
        name: makes the PDDL problem different from others.
        task_type: for ``traj_data.json``.
        folder: TASK/TRIAL; made from the task type and ``name`` when empty.
        leave_out: a field that the game file should lack.
        changes: fields of the game file.
    """
    content = {
        "pddl_domain": "(define (domain alfred))",
        "grammar": GRAMMAR.format(goal=f"find {name}."),
        "pddl_problem": PROBLEM.format(name=name),
        "solvable": True,
        "walkthrough": ["look"],
    } | changes
    content.pop(leave_out, None)
    path = split / (folder or f"{task_type}-{name}/trial_{name}") / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    path.with_name("traj_data.json").write_text(json.dumps({"task_type": task_type}), encoding="utf-8")
    return path


def make_scene(facts: str) -> Scene:
    """A scene out of lines such as ``inreceptacle mug_bar_1 desk_bar_1``; symbols get their types from the facts."""
    initial = [line.split() for line in facts.strip().splitlines()]
    kinds = {"receptacletype": "receptacle", "objecttype": "object", "receptacleatlocation": "receptacle"}
    objects: dict[str, str] = {}
    for predicate, *arguments in initial:
        for argument in arguments:
            objects.setdefault(argument, "location" if argument.startswith("loc_bar") else "object")
        if predicate in kinds:
            objects[arguments[0]] = kinds[predicate]
    supertypes = {kind: [kind, "object"] for kind in ("object", "receptacle", "location", "agent")}
    return Scene(
        Translation(sas="", objects=objects, supertypes=supertypes, parameters={}, changing=[], initial=initial)
    )
