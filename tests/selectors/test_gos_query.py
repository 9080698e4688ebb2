"""Graph of Skills: tokens and queries."""

from __future__ import annotations

import pytest

from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.graph_of_skills.tokens import signature, slug


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hot mug, 3 cups!", {"hot_mug_3_cups", "hot", "mug", "cup"}),
        ("glass", {"glass", "gla"}),  # every trailing s goes, and the slug stays whole
        ("cd", {"cd"}),  # too short for a word, but a slug
        ("the output file", {"the_output_file"}),
        ("with us", {"with_us", "with"}),
        ("--- ?", set()),
        ("目标", set()),
    ],
)
def test_a_signature_holds_the_slug_and_the_words(text: str, tokens: set[str]) -> None:
    assert signature([text]) == tokens


def test_signatures_of_several_texts_are_joined() -> None:
    assert signature(["mug", "Mugs", ""]) == {"mug", "mugs"}
    assert slug("  A  b-C ") == "a_b_c"


def test_an_instruction_becomes_a_query_by_rule() -> None:
    query = Query.of_instruction("put a  hot\nmug in coffeemachine")
    assert query.goal == "put a hot mug in coffeemachine"
    assert query.task_name == "put-a-hot-mug-in-coffeemachine"
    assert query.keywords == ("coffeemachine", "hot", "mug", "put", "put_a_hot_mug_in_coffeemachine")
    assert query.embedded.split("\n") == [query.goal, *query.keywords, query.task_name]
    # The task's name has the same slug as the goal, and keywords add nothing new.
    assert query.tokens == set(query.keywords)


def test_files_in_an_instruction_are_artifacts_and_its_name_is_short() -> None:
    query = Query.of_instruction("Turn data/in.csv and IN.csv and in.csv into one two three four five six")
    assert query.artifacts == ("data/in.csv", "IN.csv")
    assert query.task_name == "turn-data-in-csv-and-in-csv-and"
    assert len(Query.of_instruction("x" * 200).task_name) == 80
    assert Query.of_instruction("a.md.txt.zip .md x" + "y" * 200_000).artifacts == ("a.md.txt",)


@pytest.mark.parametrize("text", ["", "?", "目标"])
def test_an_instruction_without_words_has_no_tokens(text: str) -> None:
    assert Query.of_instruction(text).tokens == set()


def test_a_node_becomes_a_query_from_its_fields() -> None:
    node = Node(
        "Object Heater", "Heats.", "Heats it.", ("mug",), ("hot mug",), ("kitchen",), ("stove",), ("heat",),
        compatibility=("any",), allowed_tools=("Read",), snippet="see a.md",
    )  # fmt: skip
    query = Query.of_node(node)
    assert (query.goal, query.task_name) == ("Heats it.", "object-heater")
    assert (query.domain, query.operations, query.artifacts) == (("kitchen",), ("stove", "heat"), ("a.md",))
    assert query.constraints == ("any", "Read")
    assert set(query.keywords) == signature(node.texts)
    assert query.embedded.split("\n")[:6] == ["Heats it.", "kitchen", "stove", "heat", "a.md", "any"]
