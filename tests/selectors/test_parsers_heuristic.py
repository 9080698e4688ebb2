"""The parser without a model: ALFWorld's wordings, ScienceWorld's descriptions, documents, and any other text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selector_contract import task

from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.instruction_structure import MAX_SUBTASKS
from skillarena.selectors.interface import ParsedTask, Skill
from skillarena.selectors.library import SkillLibrary

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def parse(goal: str) -> ParsedTask:
    return HeuristicParser().parse_task(task(goal))


def parse_skill(description: str, body: str = "", name: str = "a-skill") -> tuple[str | None, str, bool]:
    parsed = HeuristicParser().parse_skill(Skill("id", name, description, body))
    return parsed.precondition, parsed.completion, parsed.fallback


# --- ALFWorld


@pytest.mark.parametrize(
    ("goal", "subtasks"),
    [
        ("put a candle in toilet.", ["candle", "toilet"]),
        ("put some egg on microwave.", ["egg", "microwave"]),
        ("look at book under the desklamp.", ["book", "desklamp"]),
        ("examine the alarmclock with the desklamp.", ["alarmclock", "desklamp"]),
        ("put two watch in dresser.", ["watch", "dresser"]),
        ("find two pen and put them in drawer.", ["pen", "drawer"]),
        ("put a clean pan in stoveburner.", ["pan", "Clean", "clean pan"]),
        ("clean some ladle and put it in drawer.", ["ladle", "Clean", "clean ladle"]),
        ("put a hot mug in coffeemachine.", ["mug", "Heat", "hot mug"]),
        ("heat some apple and put it in fridge.", ["apple", "Heat", "hot apple"]),
        ("put a cool tomato in microwave.", ["tomato", "Cool", "cool tomato"]),
        ("cool some pot and put it in diningtable.", ["pot", "Cool", "cool pot"]),
    ],
)
@pytest.mark.parametrize("wrapped", ["{}", "Your task is to: {}", "  {}\n"])
def test_every_wording_of_alfworld_gives_its_stages(goal: str, subtasks: list[str], wrapped: str) -> None:
    parsed = parse(wrapped.format(goal))
    assert not parsed.fallback
    assert len(parsed.subtasks) == len(subtasks)
    assert all(word in subtask for word, subtask in zip(subtasks, parsed.subtasks, strict=True))
    assert len(parsed.states) == len(parsed.subtasks) + 1
    assert all(text[0].isupper() and text.endswith(".") for text in (*parsed.subtasks, *parsed.states))


def test_obtaining_heating_and_placing_are_three_states_apart() -> None:
    parsed = parse("put a hot mug in coffeemachine.")
    assert [
        word in state for word, state in zip(["unknown", "found", "heated", "placed"], parsed.states, strict=True)
    ] == [True] * 4


def test_articles_fit_the_noun() -> None:
    assert "an apple" in parse("put some apple in fridge.").subtasks[0]
    assert "a mug" in parse("put some mug in desk.").subtasks[0]


def test_all_goals_of_the_real_benchmark_are_parsed_by_their_wording() -> None:
    listing = SHARED / "alfworld_tasks.json"
    if not listing.exists():
        pytest.skip(f"reference data is not at {listing}")
    stages = {"look_at_obj_in_light": 2, "pick_and_place_simple": 2, "pick_two_obj_and_place": 2}
    entries = [entry for split in json.loads(listing.read_text()).values() for entry in split]
    assert len(entries) == 474
    for entry in entries:
        parsed = parse(entry["goal"])
        assert (len(parsed.subtasks), parsed.fallback) == (stages.get(entry["task_type"], 3), False), entry["goal"]


# --- ScienceWorld (descriptions as the simulator words them) and other ordered instructions


@pytest.mark.parametrize(
    ("goal", "subtasks"),
    [
        (
            "Your task is to boil water. For compounds without a boiling point, combusting the substance is also "
            "acceptable. First, focus on the substance. Then, take actions that will cause it to change its state of "
            "matter.",
            [
                "Find and focus on the water.",
                "Boil water; take actions that will cause it to change its state of matter.",
            ],
        ),
        (
            "Your task is to change the state of matter of ice cream. First, focus on the substance. Then, take "
            "actions that will cause it to change its state of matter.",
            [
                "Find and focus on the ice cream.",
                "Change the state of matter of ice cream; take actions that will cause it to change its state of "
                "matter.",
            ],
        ),
        (
            "Your task is to find a(n) non-living thing. First, focus on the thing. Then, move it to the red box in "
            "the kitchen.",
            [
                "Find a non-living thing and focus on it.",
                "Move the non-living thing to the red box in the kitchen.",
            ],
        ),
        (
            "Your task is to find a(n) animal. First, focus on the thing. Then, move it to the red box in the kitchen.",
            ["Find an animal and focus on it.", "Move the animal to the red box in the kitchen."],
        ),
        (
            "Your task is to use chemistry to create green-blue paint. When you are part-way done, focus on the "
            "intermediate (secondary color) paint you created.  When you are completely done, focus on the green "
            "paint.",
            [
                "Use chemistry to create green-blue paint; part-way, focus on the intermediate (secondary color) paint "
                "you created.",
                "Focus on the green paint.",
            ],
        ),
        (
            "Your task is to grow a apple. This will require growing several plants, and them being crosspollinated to "
            "produce fruit.  Seeds can be found in the kitchen. To complete the task, focus on the grown apple.",
            ["Grow an apple.", "Focus on the grown apple."],
        ),
        (
            "Your task is to find the animal with the longest life span, then the shortest life span. First, focus on "
            "the animal with the longest life span.  Then, focus on the animal with the shortest life span. The "
            "animals are in the 'outside' location.",
            [
                "Find the animal with the longest life span and focus on it.",
                "Find the animal with the shortest life span and focus on it.",
            ],
        ),
        (
            "Your task is to determine if aluminum foil is electrically conductive. The aluminum foil is located "
            "around the workshop. First, focus on the aluminum foil. If it is electrically conductive, place it in the "
            "red box. If it is electrically nonconductive, place it in the green box.",
            [
                "Find and focus on the aluminum foil.",
                "Determine if aluminum foil is electrically conductive.",
                "Decide by the result: if it is electrically conductive, place it in the red box; if it is "
                "electrically nonconductive, place it in the green box.",
            ],
        ),
        (
            "Your task is to measure the melting point of lead, which is located around the kitchen. First, focus on "
            "the thermometer. Next, focus on the lead. If the melting point of lead is above 50.0 degrees celsius, "
            "focus on the red box. If the melting point of lead is below 50.0 degrees celsius, focus on the green box. "
            "The boxes are located around the kitchen.",
            [
                "Find and focus on the thermometer, and then on the lead.",
                "Measure the melting point of lead, which is located around the kitchen.",
                "Decide by the result: if the melting point of lead is above 50.0 degrees celsius, focus on the red "
                "box; if the melting point of lead is below 50.0 degrees celsius, focus on the green box.",
            ],
        ),
        (
            "Your task is to focus on the 4 life stages of the turtle, starting from earliest to latest.",
            ["Focus on the 4 life stages of the turtle, starting from earliest to latest."],
        ),
        (
            "First, open the file. Then write a summary. Finally, send it.",
            ["Open the file.", "Write a summary.", "Send it."],
        ),
        ("Take the cup and then wash it", ["Take the cup.", "Wash it."]),
        ("1. Sow seeds\n2. Water them\n3. Wait", ["Sow seeds.", "Water them.", "Wait."]),
    ],
)
def test_ordered_instructions_give_their_steps(goal: str, subtasks: list[str]) -> None:
    parsed = parse(goal)
    assert list(parsed.subtasks) == subtasks
    assert len(parsed.states) == len(subtasks) + 1
    assert not parsed.fallback
    for subtask, state in zip(parsed.subtasks, parsed.states[1:], strict=True):
        assert subtask[1:] in state


def test_many_steps_are_merged_into_few_stages_in_order() -> None:
    steps = [f"Step number {i}" for i in range(11)]
    parsed = parse("\n".join(f"{i + 1}. {step}" for i, step in enumerate(steps)))
    assert len(parsed.subtasks) == MAX_SUBTASKS
    joined = " ".join(parsed.subtasks)
    positions = [joined.index(f"number {i}") for i in range(11)]
    assert positions == sorted(positions)


@pytest.mark.parametrize("goal", ["sing", "Make me a sandwich!", "", " \n", "The boxes are in the kitchen."])
def test_an_instruction_without_structure_is_one_marked_subtask(goal: str) -> None:
    parsed = parse(goal)
    assert parsed.fallback
    assert parsed.subtasks == (goal.strip(),)
    assert len(parsed.states) == 2
    assert parsed.states[0] != parsed.states[1]


@given(
    st.text()
    | st.lists(st.sampled_from(["First,", "then", "If a, b.", "Your task is to", "\n- ", "focus on", "x; "])).map(
        " ".join
    )
)
def test_any_text_has_one_more_state_than_subtasks(goal: str) -> None:
    parsed = parse(goal)
    assert 1 <= len(parsed.subtasks) <= MAX_SUBTASKS
    assert len(parsed.states) == len(parsed.subtasks) + 1
    assert parse(goal) == parsed


# --- documents


@pytest.mark.parametrize(
    "title", ["Prerequisites", "## Before you start", "1. Requirements", "Preconditions", "**Prerequisites:**"]
)
def test_a_section_on_requirements_gives_the_precondition(title: str) -> None:
    heading = title if title.startswith(("#", "*")) else f"### {title}"
    items = "- The **mug** is [held](x.md).\n- A `microwave` exists.\n- More."
    body = f"# Use\nText.\n\n{heading}\n{items}\n\n## Steps\n1. Go."
    assert parse_skill("Heats a mug.", body)[0] == "The mug is held. A microwave exists."


@pytest.mark.parametrize("said", ["None", "none.", "No special requirements.", "Nothing, just go."])
def test_a_section_that_requires_nothing_gives_no_precondition(said: str) -> None:
    assert parse_skill("Use when holding a mug. Heats an object.", f"## Prerequisites\n{said}")[0] is None


@pytest.mark.parametrize(
    ("description", "precondition"),
    [
        ("Heats food. Use when you are holding an object and need to warm it.", "You are holding an object."),
        ("Picks things up. Use this skill when the agent has located a cup.", "The agent has located a cup."),
        ("Places boxes. Use after a measurement is taken.", "After a measurement is taken."),
        (
            "Reads recipes. The skill assumes the recipe is in reach, allowing a quick look.",
            "This is given: the recipe is in reach.",
        ),
        ("Finds things. Use when the agent needs to find an object.", None),
        ("Finds things. Use when an object is not in inventory and not yet found.", None),
        ("Measures. Use when it must be known if water has boiled.", None),
        ("Cleans a specified object in a sink.", "The object to work on has been obtained."),
        ("Searches for an object.", None),
        ("Moves about. It requires the room name as input.", None),
    ],
)
def test_a_description_implies_what_must_be_there(description: str, precondition: str | None) -> None:
    assert parse_skill(description)[0] == precondition


@pytest.mark.parametrize(
    ("description", "body", "completion"),
    [
        ("Use when hungry. Cooks rice.", "", "Cooks rice."),
        ("Cooks rice. Takes rice as input and outputs a full bowl.", "", "Cooks rice. The result is a full bowl."),
        ("Cooks rice.", "## Done when\nThe rice is soft.\n\nMore.", "Cooks rice. The rice is soft."),
        ("Cooks rice.", "## Post-Condition\n\n## Result\n> quote\n\nSoft rice.", "Cooks rice. Soft rice."),
        ("", "## Purpose\nCook rice well. And more.", "Cook rice well."),
        ("Use when hungry.", "", "Use when hungry."),
        ("Cooks rice.", "```\n# Result\nnot a heading\n```", "Cooks rice."),
    ],
)
def test_the_completion_says_what_is_achieved_and_what_it_leaves(description: str, body: str, completion: str) -> None:
    assert parse_skill(description, body)[1:] == (completion, False)


@pytest.mark.parametrize(("name", "body"), [("a-skill", ""), ("a-skill", "## Steps\n1. Go.")])
def test_a_document_that_says_nothing_of_its_purpose_is_a_marked_fallback(name: str, body: str) -> None:
    assert parse_skill("", body, name) == (None, name, True)


@given(
    st.text(),
    st.text()
    | st.lists(
        st.sampled_from(["# Result", "## Prerequisites", "- a.", "```", "**Bold:**", "| t |", "Use when holding."])
    ).map("\n".join),
)
def test_any_document_has_a_completion(description: str, body: str) -> None:
    precondition, completion, _ = parse_skill(description, body)
    assert completion.strip()
    assert precondition is None or precondition.strip()


def test_bundled_skills_all_say_what_they_achieve() -> None:
    library = SkillLibrary.load(["bundled"])
    parsed = {skill.id: HeuristicParser().parse_skill(skill) for skill in library.skills}
    assert len(parsed) > 0
    assert [name for name, parse in parsed.items() if parse.fallback] == []
