"""ALFWorld's goal sentences as sub-tasks and states.

ALFWorld words its six kinds of tasks with a handful of templates, so a pattern for each says exactly what is asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from skillarena.selectors.interface import ParsedTask


@dataclass(frozen=True, slots=True)
class _Form:
    """One way to word a goal, and what it takes; the texts may use the pattern's groups by name."""

    pattern: re.Pattern[str]
    start: str
    """The state before anything is done."""
    steps: tuple[tuple[str, str], ...]
    """Sub-tasks, each with the state it leads to."""


def _form(pattern: str, start: str, *steps: tuple[str, str]) -> _Form:
    words = {
        "PUT": r"(?:put|place|move)",
        "A": r"(?:(?:a|an|some|the|one) )?",
        "OBJ": r"(?P<obj>[\w ]+?)",
        "IN": r"(?P<where>in/on|in|into|on|onto|inside)",
        "RECEP": r"(?P<recep>[\w ]+?)",
    }
    return _Form(re.compile(pattern.format_map(words), re.IGNORECASE), start, steps)


_TREATMENTS = {
    "heat": ("hot", "Heat the {obj} with a heating appliance such as the microwave.", "heated"),
    "cool": ("cool", "Cool the {obj} with a cooling appliance such as the fridge.", "cooled"),
    "clean": ("clean", "Clean the {obj} with water at a washing place such as the sinkbasin.", "cleaned"),
}


def _treatment_forms(verb: str, adjective: str, how: str, treated: str) -> tuple[_Form, ...]:
    steps = (
        ("Find {a_obj} and take it from its current location.", "The {obj} has been found and picked up."),
        (how, f"The {{obj}} that was picked up has been {treated}."),
        (
            f"Put the {adjective} {{obj}} {{where}} the {{recep}}.",
            f"The {adjective} {{obj}} has been placed {{where}} the {{recep}}.",
        ),
    )
    start = "The location of the {obj} is still unknown and nothing has been picked up."
    return (
        _form(f"{{PUT}} {{A}}{adjective} {{OBJ}} {{IN}} {{A}}{{RECEP}}", start, *steps),
        _form(f"{verb} {{A}}{{OBJ}} and {{PUT}} it {{IN}} {{A}}{{RECEP}}", start, *steps),
    )


_FORMS: tuple[_Form, ...] = (
    *(form for verb, words in _TREATMENTS.items() for form in _treatment_forms(verb, *words)),
    *(
        _form(
            pattern,
            "No {obj} has been found yet and the {recep} holds none of the two.",
            (
                "Find the first of two objects of the same kind, {a_obj}, and carry it to the {recep}.",
                "The first {obj} has been placed {where} the {recep} and the second is still missing.",
            ),
            (
                "Find the second object of the same kind, another {obj}, and carry it to the {recep}.",
                "Both {obj} objects have been placed {where} the {recep}.",
            ),
        )
        for pattern in ("{PUT} two {OBJ} {IN} {A}{RECEP}", "find two {OBJ} and {PUT} them {IN} {A}{RECEP}")
    ),
    _form(
        "(?:look at|examine) {A}{OBJ} (?:under|with|using|by) {A}{RECEP}",
        "The location of the {obj} is still unknown and nothing has been picked up.",
        ("Find {a_obj} and take it from its current location.", "The {obj} has been found and picked up."),
        (
            "Find the {recep}, turn it on and look at the {obj} under its light.",
            "The {recep} is switched on and the {obj} has been looked at under its light.",
        ),
    ),
    _form(
        "{PUT} {A}{OBJ} {IN} {A}{RECEP}",
        "The location of the {obj} is still unknown and nothing has been picked up.",
        ("Find {a_obj} and take it from its current location.", "The {obj} has been found and picked up."),
        ("Put the {obj} {where} the {recep}.", "The {obj} has been placed {where} the {recep}."),
    ),
)


_LONGEST_GOAL = 1000
"""Characters; ALFWorld's goals have less than a hundred, and the forms take quadratic time."""


def parse_goal(goal: str) -> ParsedTask | None:
    """Sub-tasks and states of a goal in ALFWorld's wording, with or without "Your task is to:"; None for other text."""
    bare = re.sub(r"^your task is to:?\s*", "", " ".join(goal.split()), flags=re.IGNORECASE).rstrip(" .")
    for form in _FORMS if len(bare) <= _LONGEST_GOAL else ():
        found = form.pattern.fullmatch(bare)
        if found:
            names = {key: value.lower() for key, value in found.groupdict().items()}
            names["a_obj"] = ("an " if names["obj"][0] in "aeiou" else "a ") + names["obj"]
            return ParsedTask(
                subtasks=tuple(subtask.format_map(names) for subtask, _ in form.steps),
                states=tuple(state.format_map(names) for state in (form.start, *(after for _, after in form.steps))),
            )
    return None
