"""What SPEM reads out of a command: its kind, the things it names, those it changes."""

from __future__ import annotations

import pytest

from skillarena.selectors.spem.commands import Kind, mentions, parse_command, parse_commands


@pytest.mark.parametrize(
    ("text", "kind", "target", "names", "changes"),
    [
        ("go to desk 1", Kind.MOVE, "desk 1", "desk 1", "desk 1"),
        ("take mug 1 from desk 1", Kind.CHANGE, "mug 1", "mug 1|desk 1", "mug 1"),
        ("move mug 1 to desk 2", Kind.CHANGE, "mug 1", "mug 1|desk 2", "mug 1|desk 2"),
        ("put mug 1 in/on desk 2", Kind.CHANGE, "mug 1", "mug 1|desk 2", "mug 1|desk 2"),
        ("heat mug 1 with microwave 1", Kind.CHANGE, "mug 1", "mug 1|microwave 1", "mug 1"),
        ("Examine the Mug 1", Kind.LOOK, "mug 1", "mug 1", "mug 1"),
        ("inventory", Kind.LOOK, "", "", ""),
        ("look around", Kind.LOOK, "", "", ""),
        ("pick up metal pot", Kind.CHANGE, "metal pot", "metal pot", "metal pot"),
        ("pour cup in inventory into pot", Kind.CHANGE, "cup", "cup|pot", "cup|pot"),
        ("connect battery anode to red wire terminal 1", Kind.CHANGE, "battery anode",
         "battery anode|red wire terminal 1", "battery anode|red wire terminal 1"),
        ("wait1", Kind.WAIT, "", "", ""),
        ("", Kind.CHANGE, "", "", ""),
    ],
)  # fmt: skip
def test_a_command_names_things(text: str, kind: Kind, target: str, names: str, changes: str) -> None:
    command = parse_command(text)
    assert (command.kind, command.target) == (kind, target)
    assert command.names == frozenset(filter(None, names.split("|")))
    assert command.changes == frozenset(filter(None, changes.split("|")))


def test_rooms_are_walked_to_and_furniture_is_within_reach() -> None:
    ways = {text: parse_command(text).needs_way for text in ("go to kitchen", "go to desk 1", "teleport to kitchen")}
    assert ways == {"go to kitchen": True, "go to desk 1": False, "teleport to kitchen": False}
    assert not parse_command("take mug").needs_way


def test_a_number_answers_the_question_before() -> None:
    first, second = parse_commands(["pick up seed in jar", "0"])
    assert second == first
    assert parse_commands(["0"])[0].names == frozenset()


def test_names_are_found_as_whole_words() -> None:
    assert mentions("On the desk 1, you see a Mug 1.", "mug 1")
    assert not mentions("You see a mug 12.", "mug 1")
    assert not mentions("You see a smug 1", "mug 1")
