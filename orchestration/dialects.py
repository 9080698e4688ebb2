"""How the commands of each benchmark are written. Everything benchmark-specific about actions is in this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

MAX_COMMAND = 300
"""Longest text, in characters, that is taken for a command."""

_ARGUMENT = r"[^\s.,:;=!?\"`|*][^.,:;=!?\"`|*]{0,79}"


@dataclass(frozen=True)
class Dialect:
    """The commands of one benchmark.

    A form is the text of a command with ``*`` where a name (or a placeholder such as ``{object}``) stands, and ``#``
    where a number stands.
    """

    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Verb to the forms that use it, other spellings included. Empty: nothing is known, a verb is just word one."""
    rewrites: tuple[tuple[re.Pattern[str], str], ...] = ()
    """Spellings the simulator does not know, and the template of the command they stand for."""
    lower_case: bool = False
    """True when the simulator knows lower-case commands only."""
    idle: tuple[str, ...] = ("look",)
    """Commands that change nothing; the first one shows the surroundings."""
    opening: re.Pattern[str] | None = None
    """Finds the list of places in the first observation (group 1)."""
    place: re.Pattern[str] | None = None
    """Finds one place in that list (group 1)."""
    travel: str = "go to {}"
    """Command that leads to a place."""

    @cached_property
    def _verbs(self) -> list[str]:
        return list(self.forms)

    @cached_property
    def _command(self) -> re.Pattern[str]:
        """One group ``v{i}`` for each verb, so that a match tells its verb."""
        groups = (f"(?P<v{i}>{'|'.join(map(_as_regex, self.forms[verb]))})" for i, verb in enumerate(self._verbs))
        return re.compile("|".join(groups), re.IGNORECASE)

    def verb(self, text: str) -> str | None:
        """The verb of ``text`` when all of it is one command; None when it is none."""
        if len(text) > MAX_COMMAND:
            return None
        if not self.forms:
            return next(iter(text.lower().split()), None)
        match = self._command.fullmatch(text)
        return self._verbs[int(str(match.lastgroup)[1:])] if match else None

    def normalise(self, command: str) -> str:
        """The simulator's own spelling of ``command``; unchanged when nothing is known about it."""
        if self.lower_case:
            command = command.lower()
        for pattern, template in self.rewrites:
            if match := pattern.fullmatch(command):
                return match.expand(template)
        return command

    def places(self, text: str) -> list[str]:
        """Places the last opening description in ``text`` lists; empty when there is none."""
        if self.opening is None or self.place is None:
            return []
        listed = self.opening.findall(text)
        return self.place.findall(listed[-1]) if listed else []


ALFWORLD = Dialect(
    forms={
        "go to": ("go to *",),
        "take": ("take * from *",),
        "move": ("move * to *", "put * in/on *", "put * into *", "put * onto *", "put * in *", "put * on *"),
        "open": ("open *",),
        "close": ("close *",),
        "use": ("use *",),
        "clean": ("clean * with *",),
        "heat": ("heat * with *",),
        "cool": ("cool * with *",),
        "slice": ("slice * with *",),
        "examine": ("examine *",),
        "look": ("look",),
        "inventory": ("inventory",),
        "help": ("help",),
    },
    # The grammar before ALFWorld 0.4 said `put X in/on Y`, and most published prompts still do: now a lost step.
    rewrites=((re.compile(r"put (.{1,80}?) (?:in/on|into|onto|in|on) (.{1,80})"), r"move \1 to \2"),),
    lower_case=True,
    idle=("look", "inventory"),
    opening=re.compile(r"looking quickly around you, you see ([^.]{1,4000})\.", re.IGNORECASE),
    place=re.compile(r"\ban? ([a-z]{1,40} \d{1,3})\b"),
)

SCIENCEWORLD = Dialect(
    forms={
        "go to": ("go to *",),
        "teleport to": ("teleport to *",),
        "open": ("open *",),
        "close": ("close *",),
        "pick up": ("pick up *",),
        "put down": ("put down *",),
        "move": ("move * to *",),
        "focus on": ("focus on *",),
        "use": ("use * on *", "use *"),
        "activate": ("activate *",),
        "deactivate": ("deactivate *",),
        "connect": ("connect * to *",),
        "disconnect": ("disconnect *",),
        "pour": ("pour * into *", "pour * in *"),
        "dunk": ("dunk * into *", "dunk * in *"),
        "mix": ("mix *",),
        "read": ("read *",),
        "eat": ("eat *",),
        "flush": ("flush *",),
        "examine": ("examine *",),
        "look at": ("look at *",),
        "look in": ("look in *",),
        "look around": ("look around",),
        "inventory": ("inventory",),
        "task": ("task",),
        "reset": ("reset task",),
        "wait": ("wait",),
        "wait1": ("wait1",),
        "choose": ("#",),  # the answer to "Ambiguous request"
    },
    idle=("look around", "inventory"),
)


def _as_regex(form: str) -> str:
    return re.escape(form).replace(r"\*", _ARGUMENT).replace(r"\#", r"\d{1,3}")


_DIALECTS = {"alfworld": ALFWORLD, "scienceworld": SCIENCEWORLD}
_PLAIN = Dialect()


def dialect_of(benchmark: str) -> Dialect:
    """The dialect of a benchmark by name; a plain one, without forms and rewrites, for unknown benchmarks."""
    return _DIALECTS.get(benchmark, _PLAIN)
