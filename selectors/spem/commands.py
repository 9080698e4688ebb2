"""What a command of a text world names: its object, what it changes, where it leads. One grammar for all benchmarks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a command is for."""

    MOVE = "move"
    """The agent goes somewhere else."""
    LOOK = "look"
    """It only tells something."""
    WAIT = "wait"
    """Time passes."""
    CHANGE = "change"
    """Everything else: it may change the things it names."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command's words by their part in it; names are lower case without articles."""

    verb: str
    kind: Kind
    target: str = ""
    """The first thing named; of a move, the place. Empty when nothing is named."""
    names: frozenset[str] = frozenset()
    """All things named."""
    changes: frozenset[str] = frozenset()
    """The target and the things that something is put or used on; sources and instruments stay as they are."""

    @property
    def needs_way(self) -> bool:
        """Whether it leads to a room, which is reached through the rooms before it.

        A place with a number is a piece of furniture within reach of the whole room, and who teleports walks no way.
        """
        return self.kind is Kind.MOVE and self.verb != "teleport" and not self.target[-1:].isdigit()


RESET = "reset"
"""Verb that gives up all progress."""
TAKING = frozenset({"take", "pick", "get"})
PUTTING = frozenset({"move", "put", "drop"})
SWITCHING = frozenset({"use", "activate", "turn"})

_KINDS = {
    **dict.fromkeys(("go", "goto", "walk", "teleport"), Kind.MOVE),
    **dict.fromkeys(("look", "examine", "inventory", "read", "task", "help"), Kind.LOOK),
    **dict.fromkeys(("wait", "wait1"), Kind.WAIT),
}
_UNDONE_BY = {
    "open": ("close",),
    "activate": ("deactivate",),
    "take": ("move", "put"),
    "pick": ("put", "drop"),
}
_OPENS_PART = frozenset(
    {"to", "into", "onto", "in/on", "on", "in", "from", "with", "using", "under", "at", "up", "down"}
)
_RECEIVES = frozenset({"to", "into", "onto", "in/on", "on"})
"""Words before what is changed although it is not the target."""
_SKIPPED = frozenset({"the", "a", "an", "around", "of"})
_NO_THING = frozenset({"", "inventory"})


def parse_commands(actions: Sequence[str]) -> list[Command]:
    """Commands of an episode in order. A bare number answers the question that the command before led to."""
    commands: list[Command] = []
    for action in actions:
        answers = action.strip().isdigit() and commands
        commands.append(commands[-1] if answers else parse_command(action))
    return commands


def parse_command(action: str) -> Command:
    """One command; any text is one."""
    verb, *words = action.lower().split() or [""]
    parts: list[tuple[str, list[str]]] = [("", [])]
    for word in words:
        if word in _OPENS_PART:
            parts.append((word, []))
        elif word not in _SKIPPED:
            parts[-1][1].append(word)
    things = [(opening, name) for opening, said in parts if (name := " ".join(said)) not in _NO_THING]
    target = things[0][1] if things else ""
    changes = [target, *(name for opening, name in things[1:] if opening in _RECEIVES)] if target else []
    names = frozenset(name for _, name in things)
    return Command(verb, _KINDS.get(verb, Kind.CHANGE), target, names, frozenset(changes))


def undoes(later: Command, earlier: Command) -> bool:
    """Whether a command takes back an earlier one, if nothing happened between them and both are given in one place."""
    return (
        later.verb in _UNDONE_BY.get(earlier.verb, ())
        and later.target == earlier.target != ""
        and later.names == earlier.names
    )


def mentions(text: str, name: str) -> bool:
    """Whether a text names a thing, in whole words."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None
