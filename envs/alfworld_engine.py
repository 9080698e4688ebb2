"""Plays a grounded ALFWorld game: Fast Downward's library keeps the state, the game's grammar gives the words."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.alfworld_scene import Binding, Scene
from skillarena.envs.alfworld_text import Grammar
from skillarena.envs.alfworld_translation import Translation

_idle_libraries: list[Any] = []
"""Loaded and free. A library is never unloaded: unloading a second copy makes Python crash when it ends."""


@dataclass(frozen=True, slots=True)
class _Operator:
    """A grounded action, with what about it stays the same for the whole game."""

    id: int
    effects: int
    """Facts it can change."""
    action: str
    bound: Binding
    command: str
    """What the player types."""


class AlfworldEngine:
    """One private copy of the planner library, reused for game after game; for one thread at a time.

    Raises:
        EnvError: the library cannot be loaded.
    """

    def __init__(self) -> None:
        self._library = _idle_libraries.pop() if _idle_libraries else _load_library()
        from fast_downward import Atom, Operator

        self._operator, self._atom = Operator, Atom
        self._operator_ints = ctypes.sizeof(Operator) // ctypes.sizeof(ctypes.c_int)

    def load(self, translation: Translation, grammar: Grammar) -> str:
        """Start a game and return its opening text; raises ``DataError`` when its parts do not fit each other."""
        self._parameters = translation.parameters
        self._grammar = grammar
        self._operators: dict[int, _Operator] = {}
        self._check(translation)
        self._library.load_sas(translation.sas.encode())
        self.scene = Scene(translation)
        self._offers = self._applicable()
        return grammar.render("#intro#", self.scene, {})

    def commands(self) -> list[str]:
        """Everything the game accepts now, sorted."""
        return sorted(self._offers)

    def step(self, command: str) -> str | None:
        """Play a command and return the answer, or None when the game does not accept it and nothing changed."""
        operator = self._offers.get(command.strip())
        if operator is None:
            return None
        effects = (self._atom * operator.effects)()
        self._library.apply_operator(operator.id, effects)
        self.scene.apply(effect.name for effect in effects)
        self._offers = self._applicable()
        return self._grammar.render(self._grammar.actions[operator.action].feedback, self.scene, operator.bound)

    def won(self) -> bool:
        """Whether the goal is reached now."""
        return bool(self._library.check_goal())

    def winning_part(self, commands: Sequence[str]) -> list[str]:
        """``commands`` up to the one that reaches the goal from here, or nothing when they do not; the game stays put.

        Commands behind the win happen: in some games a thing lies in two receptacles at once, and is already where it
        should be when another one gives it up.
        """
        here = self._library.get_state_id()
        try:
            for number, command in enumerate(commands, start=1):
                operator = self._applicable().get(command)
                if operator is None:
                    return []
                self._library.apply_operator(operator.id, None)
                if self.won():
                    return list(commands[:number])
            return []
        finally:
            self._library.set_state_id(here)

    def close(self) -> None:
        """Leave the library to the next engine; this one cannot be used any more."""
        self._library.cleanup()
        _idle_libraries.append(self._library)

    def _check(self, translation: Translation) -> None:
        for action in translation.parameters:
            if action not in self._grammar.actions:
                raise DataError(f"the game's grammar has no words for the action {action!r}", "leave the game out")
            asked = set(self._grammar.predicates(self._grammar.actions[action].template))
            # A command's words are kept for the whole game, so they must not depend on what changes in it.
            if changing := asked.intersection(translation.changing):
                raise DataError(
                    f"commands for {action!r} depend on {sorted(changing)}, which change in the game",
                    "leave the game out",
                )

    def _applicable(self) -> dict[str, _Operator]:
        count = self._library.get_applicable_operators_count()
        found = (self._operator * count)()
        self._library.get_applicable_operators(found)
        # The ids alone, read as a stride of integers: most operators were met in an earlier state.
        ids = (ctypes.c_int * (count * self._operator_ints)).from_buffer(found)[:: self._operator_ints]
        offers: dict[str, _Operator] = {}
        for index, number in enumerate(ids):
            operator = self._operators.get(number) or self._met(found[index])
            offers.setdefault(operator.command, operator)
        return offers

    def _met(self, found: Any) -> _Operator:
        action, *things = found.name.split()
        pairs = zip(self._parameters[action], things, strict=True)
        bound = {(parameter, kind): thing for (parameter, kind), thing in pairs}
        command = self._grammar.render(self._grammar.actions[action].template, self.scene, bound)
        operator = _Operator(found.id, found.nb_effect_atoms, action, bound, command)
        self._operators[operator.id] = operator
        return operator


def _load_library() -> Any:
    import fast_downward

    try:
        return fast_downward.load_lib()
    except (OSError, RuntimeError) as error:
        raise EnvError(
            f"ALFWorld's planner library cannot be loaded: {error}",
            "set TMPDIR to a folder with space that allows running programs",
        ) from error
