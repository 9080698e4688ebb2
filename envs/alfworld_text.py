"""ALFWorld's text templates: the commands of a game and what it answers.

A game file carries a grammar in TextWorld's notation: rules with conditions on the facts, whose texts may hold

- ``#rule#``: the first alternative of that rule whose condition holds;
- ``{value}``: words made of an entity's attributes, such as ``{o.name}``;
- ``{value | query}``: the same for every way to satisfy the query;
- ``[{value | query}]``: those as a list, with the rules ``list_empty``, ``list_separator``, ``list_last_separator``.

Values are read as expressions without calls, never evaluated as Python. Everything parsed is kept: the games of a
split differ only in their goal sentence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import BaseModel, TypeAdapter, ValidationError

from skillarena.conf.errors import DataError
from skillarena.envs.alfworld_scene import Binding, Entity, Query, Scene, too_many_tries

_FIX = "use games of alfworld 0.4, or fetch them again with `skillarena data alfworld`"
_DEEPEST = 40
"""Rules within rules; ALFWorld's own texts take six."""
_MOST_TRIES = 200_000
"""Facts looked at and rules filled in for one text; a large kitchen takes some thousands."""
_LONGEST_TEXT = 10_000_000
"""Characters, those of rules within rules counted at each level."""
_LONGEST_VALUE = 200
_MOST_PREDICATES = 30
_SHOWN = 80

_BLOCK = re.compile(
    r'\s*(?:grammar\s*::\s*"""(?P<rules>.*?)"""\s*;'
    r"|action\s+(?P<action>[\w/-]+)\s*\{"
    r'\s*template\s*::\s*"(?P<template>[^"]*)"\s*;'
    r'\s*feedback\s*::\s*"(?P<feedback>[^"]*)"\s*;'
    r'(?:\s*grammar\s*::\s*"""(?P<own>.*?)"""\s*;)?\s*\})',
    re.DOTALL,
)
_SYMBOL = re.compile(
    r"(?P<list>\[)?\{"
    r"(?:#(?P<inner>[\w()/!<>\-\s,.]+)#|(?P<value>[^#|\[\]{}\n<>]++))"
    r"\s*+(?:\|(?P<query>[^;|{}\n\[\]#]+))?"
    r"\}(?(list)\])"
    r"|#(?P<rule>[\w()/!<>\-\s,.]+)#"
    r'|(?P<words>[^;|"<>\[\]#{}]+)'
)
_PREDICATE = re.compile(r"\s*(?P<name>[\w@/-]+)\((?P<parameters>[^()]*)\)\s*")
_GOAL = re.compile(r"Your task is to: (?P<goal>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """One alternative of a grammar rule."""

    text: str
    condition: str = ""
    """A query on the facts; empty holds always."""


@dataclass(frozen=True, slots=True)
class ActionText:
    """The words of an action."""

    template: str
    """What the player types."""
    feedback: str
    """What the game answers."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A part of a text: exactly one of ``words``, ``rule`` and ``value`` is set."""

    words: str = ""
    rule: str = ""
    value: str = ""
    query: str = ""
    """Repeat for every way this holds; empty means once."""
    listed: bool = False


@dataclass(frozen=True, slots=True)
class Grammar:
    """The rules and actions of a game file."""

    rules: dict[str, list[Rule]] = field(default_factory=dict)
    actions: dict[str, ActionText] = field(default_factory=dict)
    """By lower-case name, as in the grounded task."""

    @property
    def goal(self) -> str:
        """The instruction, without ``Your task is to:``."""
        texts = [rule.text.strip() for rule in self.alternatives("task")]
        found = _GOAL.fullmatch(texts[0]) if texts else None
        if found is None:
            raise DataError("the grammar's rule 'task' does not say what the task is", _FIX)
        return found["goal"].strip()

    def render(self, text: str, scene: Scene, bound: Binding) -> str:
        """``text`` with everything filled in.

        Args:
            text: a template.
            scene: the facts and names.
            bound: the objects of the action that the text is about.

        Raises:
            DataError: the template cannot be understood, or would never end.
        """
        return _Writer(self, scene).write(text, bound)

    def predicates(self, text: str) -> Iterator[str]:
        """Every predicate that filling in ``text`` can ask for."""
        waiting, seen = [text], {text}
        while waiting:
            for symbol in symbols(waiting.pop()):
                yield from (predicate for predicate, _ in parse_query(symbol.query))
                for rule in self.alternatives(symbol.rule) if symbol.rule else ():
                    yield from (predicate for predicate, _ in parse_query(rule.condition))
                    if rule.text not in seen:
                        seen.add(rule.text)
                        waiting.append(rule.text)

    def alternatives(self, name: str) -> list[Rule]:
        """What a rule may say, in order. Raises ``DataError`` for an unknown one."""
        if name not in self.rules:
            raise DataError(f"the grammar has no text rule {name!r}", _FIX)
        return self.rules[name]


class _Writer:
    """Fills in one text, with a limit to what a hostile grammar can make of it."""

    def __init__(self, grammar: Grammar, scene: Scene) -> None:
        self._grammar = grammar
        self._scene = scene
        self._tries = iter(range(_MOST_TRIES))
        self._depth = 0
        self._room = _LONGEST_TEXT

    def write(self, text: str, bound: Binding) -> str:
        self._depth += 1
        words = "".join(self._words(symbol, bound) for symbol in symbols(text)) if self._depth <= _DEEPEST else ""
        self._room -= len(words)
        if self._depth > _DEEPEST or self._room < 0:
            raise DataError(f"the text template {text[:_SHOWN]!r} never ends", _FIX)
        self._depth -= 1
        return words

    def _words(self, symbol: Symbol, bound: Binding) -> str:
        if symbol.words:
            return symbol.words
        ways = list(self._bindings(symbol.query, bound)) if symbol.query else [bound]
        items = [self._once(symbol, way) for way in ways]
        if not symbol.listed:
            return "".join(items)
        if not items:
            return self._rule("list_empty", bound)
        if len(items) == 1:
            return items[0]
        first = self._rule("list_separator", bound).join(items[:-1])
        return first + self._rule("list_last_separator", bound) + items[-1]

    def _bindings(self, query: str, bound: Binding) -> Iterator[Binding]:
        return self._scene.bindings(parse_query(query), bound, self._tries)

    def _once(self, symbol: Symbol, bound: Binding) -> str:
        if symbol.rule:
            return self._rule(symbol.rule, bound)
        entities = {name: self._scene.entities[thing] for (name, _), thing in bound.items()}
        return str(_value(_expression(symbol.value), entities, symbol.value))

    def _rule(self, name: str, bound: Binding) -> str:
        if next(self._tries, None) is None:
            raise too_many_tries()
        for rule in self._grammar.alternatives(name):
            if not rule.condition or any(True for _ in self._bindings(rule.condition, bound)):
                return self.write(rule.text, bound)
        raise DataError(f"no alternative of the text rule {name!r} applies", _FIX)


def parse_grammar(text: str) -> Grammar:
    """Read the ``grammar`` field of a game file; raises ``DataError`` when it is not understood."""
    grammar = Grammar()
    position, end = 0, len(text.rstrip())
    while position < end:
        block = _BLOCK.match(text, position)
        if block is None:
            line = text.count("\n", 0, position) + 1
            raise DataError(f"the grammar cannot be read from line {line} on", _FIX)
        if block["action"]:
            grammar.actions[block["action"].lower()] = ActionText(block["template"], block["feedback"])
        grammar.rules.update(_rules(block["rules"] or block["own"] or "{}"))
        position = block.end()
    return grammar


class _Alternative(BaseModel):
    rhs: str
    condition: str = ""


_RULES = TypeAdapter(dict[str, list[_Alternative]])


@lru_cache(maxsize=64)
def _rules(block: str) -> dict[str, list[Rule]]:
    try:
        read = _RULES.validate_json(block)
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join([*map(str, first["loc"]), first["msg"]])
        raise DataError(f"a block of rules in the grammar cannot be read: {problem}", _FIX) from error
    return {name: [Rule(rule.rhs, rule.condition) for rule in alternatives] for name, alternatives in read.items()}


@lru_cache(maxsize=4096)
def symbols(text: str) -> tuple[Symbol, ...]:
    """The parts of a template; raises ``DataError`` at what is no part."""
    text = text.lstrip()  # as TextWorld's parser does
    parts: list[Symbol] = []
    position = 0
    while position < len(text):
        part = _SYMBOL.match(text, position)
        if part is None:
            raise DataError(f"the text template {text[:_SHOWN]!r} cannot be read from character {position} on", _FIX)
        parts.append(
            Symbol(
                words=part["words"] or "",
                rule=part["rule"] or part["inner"] or "",
                value=(part["value"] or "").strip(),
                query=(part["query"] or "").strip(),
                listed=part["list"] is not None,
            )
        )
        position = part.end()
    return tuple(parts)


@lru_cache(maxsize=4096)
def parse_query(text: str) -> Query:
    """Read ``on(o:object, t:table) & clean(o:object)``; an empty text asks for nothing."""
    predicates = []
    parts = text.split("&") if text else []
    if len(parts) > _MOST_PREDICATES:
        raise DataError(f"the text condition {text[:_SHOWN]!r} has more than {_MOST_PREDICATES} parts", _FIX)
    for part in parts:
        found = _PREDICATE.fullmatch(part)
        if found is None:
            raise DataError(f"the text condition {text[:_SHOWN]!r} cannot be read", _FIX)
        pairs = [parameter.partition(":") for parameter in found["parameters"].split(",") if parameter.strip()]
        predicates.append((found["name"], tuple((name.strip(), (kind or name).strip()) for name, _, kind in pairs)))
    return tuple(predicates)


@lru_cache(maxsize=4096)
def _expression(text: str) -> ast.expr:
    if len(text) > _LONGEST_VALUE:
        raise DataError(f"the text value {text[:_SHOWN]!r} is longer than {_LONGEST_VALUE} characters", _FIX)
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # whatever the parser stumbles over
        raise DataError(f"the text value {text!r} cannot be read", _FIX) from error


def _value(node: ast.expr, entities: dict[str, Entity], text: str) -> str | Entity:
    match node:
        case ast.Constant(value=str(words)):
            return words
        case ast.Name(id=name) if name in entities:
            return entities[name]
        case ast.Attribute(value=ast.Name(id=name), attr="id" | "name" | "indefinite" | "definite" as what) if (
            name in entities
        ):
            return str(getattr(entities[name], what))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return str(_value(left, entities, text)) + str(_value(right, entities, text))
        case ast.BoolOp(op=ast.Or(), values=values):
            options = [_value(value, entities, text) for value in values]
            return next((option for option in options if option), options[-1])
        case _:
            raise DataError(f"the text value {text!r} is not understood", _FIX)
