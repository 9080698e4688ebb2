"""Sub-tasks and states from the sentence structure of an instruction.

Made for ScienceWorld's task descriptions ("Your task is to GOAL. First, … Then, … If …, … When you are done, …"), but
any instruction with an order of steps will do. Sentences that only inform ("The boxes are …") are no sub-tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from skillarena.selectors.interface import ParsedTask

MAX_SUBTASKS = 4
"""Longer sequences are merged into this many stages."""

_STEP_END = re.compile(r"(?<=[.!?;])\s+|,?(?<!\s)\s+and then\s+")
"""Tried at the start of a run of blanks only: starts within it find no more, but take quadratic time."""
_LONGEST_SUBJECT = 200
_GOAL = re.compile(r"your task is to:?\s+(.+)", re.IGNORECASE)
_PARTWAY = re.compile(r"when you are part-?way (?:done|finished),\s*(.+)", re.IGNORECASE)
_ORDERED = re.compile(
    r"(?:first|second|third|then|next|after that|afterwards?|finally|lastly)(?:ly)?\b,?\s*"
    r"(?:you (?:should|must) )?(.+)",
    re.IGNORECASE,
)
_FINISH = re.compile(r"(?:when|once|after|to (?:complete|finish))\b[^,]*,\s*(.+)", re.IGNORECASE)
_CONDITION = re.compile(r"if\b.+,.+", re.IGNORECASE)
_INFORMATION = re.compile(
    r"(?:the|an?|this|these|those|that|it|there|for|you|some|all|any|note|please note)\b"
    r"|\w+ (?:is|are|was|were|can|could|may|might|will|has|have)\b",
    re.IGNORECASE,
)
_FOCUS = re.compile(r"(?:find and )?focus on\s+", re.IGNORECASE)
_SEARCH = re.compile(r"(?:find|locate|search for)\s+", re.IGNORECASE)
_VAGUE = re.compile(r"\bthe (?:thing|substance)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"(?:change the state of matter of|\w+)\s+(?:an? |some |the )?(?P<subject>[\w' -]+)", re.IGNORECASE
)


@dataclass
class _Instruction:
    """What an instruction's sentences say, by their role; each entry is an imperative without its final stop."""

    goal: str = ""
    partway: list[str] = field(default_factory=list)
    ordered: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    finish: list[str] = field(default_factory=list)


def parse_instruction(text: str) -> ParsedTask | None:
    """Sub-tasks in order with the states between them; None when the text shows no structure at all."""
    instruction = _read(_sentences(text))
    steps = list(_stages_of_work(instruction))
    if not instruction.goal and len(steps) < 2:
        return None
    subtasks = tuple(_sentence(step) for step in _merged(steps, MAX_SUBTASKS))
    start = f"Nothing has been done yet to {_lower(instruction.goal or steps[0])}."
    return ParsedTask(subtasks, (start, *(f"This much is done: {_lower(subtask)}" for subtask in subtasks)))


def _sentences(text: str) -> list[str]:
    lines = (re.sub(r"^\s*(?:[-*]|\d+[.)])\s+", "", line) for line in text.splitlines())
    parts = (part for line in lines for part in _STEP_END.split(line))
    plain = (re.sub(r"\ba(?:\(n\))? (?=([aeiou])?)", lambda m: "an " if m[1] else "a ", part) for part in parts)
    return [sentence for part in plain if (sentence := " ".join(part.split()).rstrip(" .!?;"))]


def _read(sentences: Sequence[str]) -> _Instruction:
    result = _Instruction()
    roles = ((_GOAL, None), (_PARTWAY, result.partway), (_ORDERED, result.ordered), (_FINISH, result.finish))
    for sentence in sentences:
        for pattern, role in roles:
            found = pattern.fullmatch(sentence)
            if found and role is not None:
                role.append(found[1])
            elif found:
                result.goal = found[1]
            if found:
                break
        else:
            if _CONDITION.fullmatch(sentence):
                result.conditions.append(_lower(sentence))
            elif not _INFORMATION.match(sentence):
                result.ordered.append(sentence)
    return result


def _stages_of_work(said: _Instruction) -> Iterator[str]:
    """Preparation, work, decision and finish, each as one imperative; steps that belong together are merged."""
    steps = [_VAGUE.sub(f"the {_subject(said.goal)}", step) for step in said.ordered]
    focus = [_FOCUS.sub("", step, count=1) for step in takewhile(_FOCUS.match, steps)]
    rest = steps[len(focus) :]
    if said.goal and _SEARCH.match(said.goal):
        yield from _search(said.goal, focus, rest)
    else:
        if focus:
            yield f"find and focus on {', and then on '.join(focus)}"
        if said.goal:
            yield "; ".join([said.goal, *rest, *(f"part-way, {step}" for step in said.partway)])
        else:
            yield from rest
    if said.conditions:
        yield f"decide by the result: {'; '.join(said.conditions)}"
    yield from said.finish


def _search(goal: str, focus: Sequence[str], rest: Sequence[str]) -> Iterator[str]:
    if len(focus) > 1:
        yield from (f"find {found} and focus on it" for found in focus)
    else:
        yield f"{goal} and focus on it" if focus else goal
    yield from (re.sub(r"\bit\b", f"the {_subject(goal)}", step, count=1) for step in rest)


def _subject(goal: str) -> str:
    """What the goal is about: "find an animal" -> "animal"."""
    found = _SUBJECT.match(goal)
    return found["subject"] if found and len(found["subject"]) <= _LONGEST_SUBJECT else "object"


def _merged(steps: Sequence[str], at_most: int) -> list[str]:
    if len(steps) <= at_most:
        return list(steps)
    groups = np.array_split(np.arange(len(steps)), at_most)
    return ["; ".join(steps[i] for i in group) for group in groups]


def _sentence(step: str) -> str:
    return f"{step[0].upper()}{step[1:]}."


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]
