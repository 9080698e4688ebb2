from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.orchestration.action_parser import parse_reply
from skillarena.orchestration.dialects import ALFWORLD, MAX_COMMAND, SCIENCEWORLD, Dialect

PLAIN = Dialect()


@pytest.mark.parametrize(
    "reply",
    [
        "Thought: The mug is there.\nAction: go to desk 1",
        "Thought: The mug is there. Action: go to desk 1",
        "thought: The mug is there.\naction: go to desk 1",
        "THOUGHT: The mug is there.\nACTION: go to desk 1",
        "Thought: The mug is there.\nAction: go to desk 1.",
        "Thought: The mug is there.\nAction: `go to desk 1`",
        'Thought: The mug is there.\nAction: "go to desk 1"',
        "Thought: The mug is there.\nAction: 'go to desk 1'.",
        "Thought: The mug is there.\nAction: [go to desk 1]",
        "Thought: The mug is there.\nAction: <go to desk 1>",
        "Thought: The mug is there.\nAction: > go to desk 1",
        "**Thought:** The mug is there.\n**Action:** go to desk 1",
        "**Thought**: The mug is there.\n**Action**: **`go to desk 1`**",
        "Thought: The mug is there.\n- Action: go to desk 1",
        "## Thought: The mug is there.\n## Action: go to desk 1",
        "1. Thought: The mug is there.\n2. Action: go to desk 1",
        "Thought 1: The mug is there.\nAction 1: go to desk 1",
        "Thought: The mug is there.\nAction: 1. go to desk 1",
        "Thought: The mug is there.\nAction:\ngo to desk 1",
        "Thought: The mug is there.\nAction:\n```\ngo to desk 1\n```",
        "```\nThought: The mug is there.\nAction: go to desk 1\n```",
        "Thought: The mug is there.\nAction: go to desk 1\nObservation: You arrive.\nAction: look",
        "Thought: The mug is there.\nAction: go to desk 1 Observation: You arrive.",
        "Thought: The mug is there.\nActions:\n1. go to desk 1\n2. take mug 1 from desk 1",
        "Thought: The mug is there.\nNext action: go to   desk 1",
        "Thought: The mug is there.\r\nAction: go to desk 1\r\n",
        "<think>Action: look\nThe mug</think>\nThought: The mug is there.\nAction: go to desk 1",
        "Action: look\n</think>\nThought: The mug is there.\nAction: go to desk 1",
        "Thought: The mug is there.\nAction: go to desk 1\n<think>Now I",
        "The mug is there.\n\ngo to desk 1",
        "The mug is there.\n> go to desk 1",
        "The mug is there.\n`go to desk 1`",
        '{"thought": "The mug is there.", "action": "go to desk 1"}',
        '```json\n{"Thought": "The mug is there.", "Action": "go to desk 1"}\n```',
        'The mug is there. {"action": "go to desk 1", "arguments": {}}',
        'Thought: The mug is there.\nAction: go to desk 1\nAction: {"action": "look"',
    ],
)
def test_one_action_is_found_whatever_the_form(reply: str) -> None:
    parsed = parse_reply(reply, ALFWORLD)
    assert parsed.action == "go to desk 1"
    assert parsed.thought == "The mug is there."
    assert not parsed.normalised


def test_labelled_line_wins_over_a_label_quoted_in_the_thought() -> None:
    parsed = parse_reply("Thought: my last action: open desk 1 failed\nAction: look", ALFWORLD)
    assert parsed.action == "look"


def test_json_cut_by_the_length_limit_is_still_read() -> None:
    assert parse_reply('{"thought": "on", "action": "go to desk 1', ALFWORLD).action == "go to desk 1"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   \n\t ",
        "I am not sure what to do next.",
        "Thought: I should find the mug.",
        "Thought: I should go to desk 1 and look around there.",
        "Open the fridge, then look for an apple.",
        "Action:",
        "Action:\n\n",
        "Action: ``",
        "Action: Observation: You see nothing.",
        "<think>Action: look</think>",
        "<think>I wonder. Action: look",
        '{"action": null}',
        '{"action": {"name": "look"}}',
        f"Action: {'go ' * 200}",
    ],
)
def test_reply_without_an_action_is_none(reply: str) -> None:
    parsed = parse_reply(reply, ALFWORLD)
    assert parsed.action is None
    assert not parsed.normalised


@pytest.mark.parametrize(
    ("said", "played"),
    [
        ("put mug 1 in/on desk 1", "move mug 1 to desk 1"),
        ("put mug 1 in desk 1", "move mug 1 to desk 1"),
        ("put mug 1 on desk 1", "move mug 1 to desk 1"),
        ("put mug 1 into desk 1", "move mug 1 to desk 1"),
        ("Put Mug 1 In/On Desk 1.", "move mug 1 to desk 1"),
        ("Go to desk 1", "go to desk 1"),
    ],
)
def test_alfworld_spelling_is_normalised_and_marked(said: str, played: str) -> None:
    for reply in (f"Thought: ok\nAction: {said}", said):
        parsed = parse_reply(reply, ALFWORLD)
        assert (parsed.action, parsed.normalised) == (played, True)


@pytest.mark.parametrize("said", ["move mug 1 to desk 1", "put mug 1 down", "use desklamp 1", "open fridge 1"])
def test_other_alfworld_commands_stay_as_they_are(said: str) -> None:
    parsed = parse_reply(f"Action: {said}", ALFWORLD)
    assert (parsed.action, parsed.normalised) == (said, False)


@pytest.mark.parametrize("dialect", [SCIENCEWORLD, PLAIN])
def test_put_is_no_business_of_other_benchmarks(dialect: Dialect) -> None:
    parsed = parse_reply("Action: put Mug in desk", dialect)
    assert (parsed.action, parsed.normalised) == ("put Mug in desk", False)


@pytest.mark.parametrize(
    "command",
    ["0", "focus on red wire", "use thermometer in inventory on metal pot (containing lead)", "look around", "wait1"],
)
def test_scienceworld_commands_need_no_label(command: str) -> None:
    assert parse_reply(f"That is next.\n{command}", SCIENCEWORLD).action == command


def test_unlabelled_text_is_no_action_where_the_commands_are_unknown() -> None:
    assert parse_reply("go left", PLAIN).action is None
    assert parse_reply("Action: go left", PLAIN).action == "go left"


@pytest.mark.parametrize(
    "hostile",
    [
        "*" * 50_000,
        "action " * 7_000,
        "action:" * 7_000,
        "Action: " + "`" * 50_000,
        "<think>" * 7_000,
        "</think>" * 7_000,
        "{" * 50_000,
        '{"a":' * 10_000,
        '{"action": ' * 5_000,
        "```\n" * 12_000,
        "\n" * 50_000,
        " " * 50_000,
        "- " * 25_000,
        "1. " * 16_000,
        "put " * 12_500,
        "Action: put " + "a in " * 60,
        "go to a\u0000" * 6_000,
        "go to " + "a" * 50_000,
        "take a from\n" * 4_000,
        "look\r" * 10_000,
        "Thought: " + "thought " * 6_000,
        "observation:" * 4_000,
    ],
)
def test_hostile_replies_are_read_in_bounded_time(hostile: str) -> None:
    for dialect in (ALFWORLD, SCIENCEWORLD, PLAIN):
        started = time.process_time()
        parse_reply(hostile, dialect)
        assert time.process_time() - started < 0.5


PIECES = st.sampled_from(
    [
        *("Thought:", "Action:", "Observation:", "<think>", "</think>", '{"action": "', '"}'),
        *("**", "`", "```", "1.", "- ", " ", "\n", "\ud800", "\u2028", "\x00", "："),
        *("go to desk 1", "put a 1 in b 2"),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.text(max_size=20), max_size=40).map("".join))
def test_any_text_gives_a_sendable_action_or_none(reply: str) -> None:
    for dialect in (ALFWORLD, SCIENCEWORLD, PLAIN):
        parsed = parse_reply(reply, dialect)
        assert parse_reply(reply, dialect) == parsed
        if parsed.action is None:
            assert not parsed.normalised
            continue
        assert 0 < len(parsed.action) <= MAX_COMMAND
        assert parsed.action == " ".join(parsed.action.split())
        assert parsed.action.isprintable()


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(["go to desk 1", "take mug 1 from desk 1", "look"]), st.text(alphabet="abc .,;\n", max_size=50))
def test_a_well_formed_reply_always_gives_its_action(command: str, thought: str) -> None:
    assert parse_reply(f"Thought: {thought}\nAction: {command}", ALFWORLD).action == command
