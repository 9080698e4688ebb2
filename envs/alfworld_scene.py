"""What is true in an ALFWorld game now, and how its things are called."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from skillarena.conf.errors import DataError
from skillarena.envs.alfworld_translation import Translation

_FIX = "use games of alfworld 0.4, or fetch them again with `skillarena data alfworld`"

Placeholder = tuple[str, str]
"""Name and type of a variable in a query or an action."""
Binding = dict[Placeholder, str]
"""The object that stands for each placeholder."""
Query = tuple[tuple[str, tuple[Placeholder, ...]], ...]
"""Predicates that must hold together, each with its placeholders."""


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing as the text templates see it."""

    id: str
    """PDDL symbol."""
    name: str
    """Visible name, such as ``mug 2``."""
    indefinite: str = "a"
    definite: str = "the"

    def __str__(self) -> str:
        return self.name


class Scene:
    """The facts of a running game.

    Like ALFWorld's own state it knows the facts of the problem and what actions changed since. A negative fact
    (``not_istoggled``) is there only when an action made it so, which is what ALFWorld's texts depend on.

    Args:
        translation: the game, at its start.
    """

    def __init__(self, translation: Translation) -> None:
        self._types = translation.objects
        self._supertypes = translation.supertypes
        self._facts: dict[str, set[tuple[str, ...]]] = {}
        for predicate, *arguments in translation.initial:
            self._facts.setdefault(predicate, set()).add(tuple(arguments))
        mentioned = {argument for facts in self._facts.values() for fact in facts for argument in fact}
        self.entities = {symbol: Entity(symbol, name) for symbol, name in visible_names(mentioned).items()}

    def facts(self, predicate: str) -> list[tuple[str, ...]]:
        """Arguments of every fact of ``predicate``, sorted."""
        return sorted(self._facts.get(predicate, ()))

    def apply(self, effects: Iterable[str]) -> None:
        """Take in what an action changed, in the planner's order."""
        for effect in effects:
            predicate, arguments = _parse(effect)
            opposite = predicate.removeprefix("not_") if predicate.startswith("not_") else f"not_{predicate}"
            self._facts.setdefault(opposite, set()).discard(tuple(arguments))
            self._facts.setdefault(predicate, set()).add(tuple(arguments))

    def bindings(self, query: Query, bound: Binding, tries: Iterator[object]) -> Iterator[Binding]:
        """Every way to extend ``bound`` so that ``query`` holds; different placeholders get different objects.

        Args:
            query: what must hold.
            bound: objects that are chosen already.
            tries: gives something for every fact that may be looked at.

        Raises:
            DataError: the query asks for more or fewer objects than a fact has, or takes too many tries.
        """
        if not query:
            yield bound
            return
        (predicate, placeholders), rest = query[0], query[1:]
        found: Iterable[tuple[str, ...]] = self._facts.get(predicate, ())
        if len(next(iter(found), placeholders)) != len(placeholders):
            raise DataError(f"a text condition asks {predicate} of {len(placeholders)} things", _FIX)
        for position, placeholder in enumerate(placeholders):
            if placeholder in bound:  # far cheaper here than one binding at a time: most facts are about other things
                found = [fact for fact in found if fact[position] == bound[placeholder]]
        for arguments in sorted(found):
            if next(tries, None) is None:
                raise too_many_tries()
            extended = self._extend(bound, placeholders, arguments)
            if extended is not None:
                yield from self.bindings(rest, extended, tries)

    def _extend(
        self, bound: Binding, placeholders: tuple[Placeholder, ...], arguments: tuple[str, ...]
    ) -> Binding | None:
        extended = dict(bound)
        for placeholder, argument in zip(placeholders, arguments, strict=True):
            if placeholder in extended:
                if extended[placeholder] != argument:
                    return None
            elif argument in extended.values() or placeholder[1] not in self._supertypes[self._types[argument]]:
                return None
            else:
                extended[placeholder] = argument
        return extended


def too_many_tries() -> DataError:
    """The error for a text that a game cannot mean."""
    return DataError("a text of the game's grammar takes too long to fill in", _FIX)


def visible_names(symbols: Iterable[str]) -> dict[str, str]:
    """Names as ALFWorld shows them: the kind of thing and a number, counted down in the order of the symbols.

    Symbols without a position (types and the agent) keep their own name with a blank behind it.
    """
    kinds: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for symbol in sorted(symbols):
        kind, mark, _ = symbol.partition("_bar_")
        if mark:
            kinds.setdefault(f"{kind}basin" if "basin" in symbol else kind, []).append(symbol)
        else:
            names[symbol] = f"{symbol} "
    for kind, members in kinds.items():
        for number, symbol in zip(range(len(members), 0, -1), members, strict=True):
            names[symbol] = f"{kind} {number}"
    return names


def _parse(atom: str) -> tuple[str, list[str]]:
    """Split ``Atom on(a, b)`` or ``NegatedAtom on(a, b)`` into the predicate and its arguments."""
    sign, _, rest = atom.partition(" ")
    predicate, _, arguments = rest.removesuffix(")").partition("(")
    return (f"not_{predicate}" if sign == "NegatedAtom" else predicate), arguments.split(", ") if arguments else []
