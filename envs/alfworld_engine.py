"""Plays a grounded ALFWorld game: Fast Downward's library keeps the state, the game's grammar gives the words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.alfworld_scene import Binding, Scene
from skillarena.envs.alfworld_text import Grammar
from skillarena.envs.alfworld_translation import Translation

_idle_libraries: list[Any] = []
"""Loaded and free. A library is never unloaded: unloading a second copy makes Python crash when it ends."""


class AlfworldEngine:
    """One private copy of the planner library, reused for game after game; for one thread at a time.

    Raises:
        EnvError: the library cannot be loaded.
    """

    def __init__(self) -> None:
        self._library = _idle_libraries.pop() if _idle_libraries else _load_library()
        from fast_downward import Atom, Operator

        self._operator, self._atom = Operator, Atom

    def load(self, translation: Translation, grammar: Grammar) -> str:
        """Start a game and return its opening text; raises ``DataError`` when its parts do not fit each other."""
        self._parameters = translation.parameters
        self._grammar = grammar
        self._words: dict[str, str] = {}
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
        action, bound = self._action(operator.name)
        effects = (self._atom * operator.nb_effect_atoms)()
        self._library.apply_operator(operator.id, effects)
        self.scene.apply(effect.name for effect in effects)
        self._offers = self._applicable()
        return self._grammar.render(self._grammar.actions[action].feedback, self.scene, bound)

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

    def _applicable(self) -> dict[str, Any]:
        operators = (self._operator * self._library.get_applicable_operators_count())()
        self._library.get_applicable_operators(operators)
        offers: dict[str, Any] = {}
        for operator in operators:
            offers.setdefault(self._command(operator.name), operator)
        return offers

    def _command(self, name: str) -> str:
        if name not in self._words:
            action, bound = self._action(name)
            self._words[name] = self._grammar.render(self._grammar.actions[action].template, self.scene, bound)
        return self._words[name]

    def _action(self, name: str) -> tuple[str, Binding]:
        action, *things = name.split()
        pairs = zip(self._parameters[action], things, strict=True)
        return action, {(parameter, kind): thing for (parameter, kind), thing in pairs}


def _load_library() -> Any:
    import fast_downward

    try:
        return fast_downward.load_lib()
    except (OSError, RuntimeError) as error:
        raise EnvError(
            f"ALFWorld's planner library cannot be loaded: {error}",
            "set TMPDIR to a folder with space that allows running programs",
        ) from error
