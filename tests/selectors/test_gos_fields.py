"""Graph of Skills: a skill as a node."""

from __future__ import annotations

from pathlib import Path

from skillarena.selectors.graph_of_skills.fields import Node, clip, read_node
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.skill_file import parse_skill_file


def node(body: str, front: str = "", description: str = "Heats a mug. Then waits.") -> Node:
    document = f"---\nname: heater\ndescription: {description}\n{front}\n---\n{body}"
    skill = parse_skill_file(document.encode(), fallback_name="x")
    return read_node(Skill("id", skill.name, skill.description, skill.body, fields=skill.fields))


def test_a_plain_document_gives_name_description_capability_and_snippet_only() -> None:
    assert node("# Steps\n\n\n\n1. Heat\t\tit.") == Node(
        "heater",
        "Heats a mug. Then waits.",
        "Heats a mug.",
        snippet="# heater\n\nHeats a mug. Then waits.\n\n# Steps\n\n1. Heat it.",
    )


def test_sections_are_read_by_title_whatever_their_level_and_case() -> None:
    read = node("# INPUTS\n- a mug\n* a microwave\nignored\n### Output\nA hot mug.\n\nSteam.\n## Tags\n- kitchen\n")
    assert read.inputs == ("a mug", "a microwave")
    assert read.outputs == ("A hot mug.", "Steam.")
    assert read.tags == ("kitchen",)


def test_a_section_ends_at_the_next_heading_of_any_level_and_only_the_first_counts() -> None:
    read = node("## Results\none\n#### Note\ntwo\n## Returns\nthree\n## Results\nfour")
    assert read.outputs == ("one",)


def test_only_whole_titles_name_a_section() -> None:
    read = node("## Example\nx\n## When to Use\ny\n## Inputs and outputs\nz\n## Use when\nwarm")
    assert (read.examples, read.inputs) == (("warm",), ())


def test_an_empty_section_gives_nothing() -> None:
    assert node("## Inputs\n\n## Outputs").inputs == ()


def test_front_matter_comes_before_sections_for_inputs_and_outputs() -> None:
    read = node("## Inputs\n- from the body", front="inputs: [mug, microwave]\noutput: hot mug, steam; smell")
    assert read.inputs == ("mug", "microwave")
    assert read.outputs == ("hot mug", "steam", "smell")


def test_tags_tooling_and_examples_are_joined_from_all_places_without_repeats() -> None:
    read = node(
        "## Tools\n- Microwave\n- tongs\n## Examples\n- heat the mug",
        front=(
            "tags:\n  - Kitchen\n  - heat\ncategory: kitchen\nmetadata:\n  tags: [home, HEAT]\n  tooling: microwave\n"
            "allowed-tools: Read, Bash\nexample_tasks:\n  task: boil"
        ),
    )
    assert read.tags == ("Kitchen", "heat", "home")
    assert read.tooling == ("microwave", "Read", "Bash", "tongs")
    assert read.examples == ("task: boil", "heat the mug")
    assert read.allowed_tools == ("Read", "Bash")
    assert "\n\nAllowed tools: Read, Bash\n\n" in read.snippet


def test_a_capability_is_given_or_the_first_sentence() -> None:
    assert node("x", front="summary: Warms things.").capability == "Warms things."
    assert node("x", front="metadata:\n  summary: Warms up.").capability == "Warms up."
    assert node("x", description="No stop").capability == "No stop"


def test_broken_or_growing_yaml_in_an_entry_is_plain_text() -> None:
    assert node("x", front="tags: '[a, b'").tags == ("[a", "b")
    aliases = "a: &a [x, x]\nb: &b [*a, *a]\ntags: [*b, *b, *b]"
    assert node("x", front=aliases).tags == ("[*b", "*b", "*b]")


def test_a_skill_without_description_is_a_node_too() -> None:
    read = read_node(Skill("id", "name", "", ""))
    assert (read.capability, read.snippet, read.embedded) == ("", "# name", "[Skill] name\n[SNIPPET] # name")


def test_the_embedded_text_names_each_filled_field() -> None:
    read = Node("n", "d", "c", inputs=("a", "b"), tooling=("t",), snippet="s")
    assert read.embedded == "[Skill] n\n[DESCRIPTION] d\n[CAPABILITY] c\n[INPUTS] a\nb\n[TOOLING] t\n[SNIPPET] s"


def test_clipping_leaves_at_most_the_wanted_characters() -> None:
    assert clip("abcdef", 6) == "abcdef"
    assert clip("abc def", 6) == "abc..."
    assert [clip("abcdef", chars) for chars in (4, 3, 2, 0)] == ["a...", "...", "..", ""]
    assert len(node("word " * 1000).snippet) <= 900


def test_front_matter_comes_through_a_library_and_is_part_of_its_fingerprint(tmp_path: Path) -> None:
    fingerprints = set()
    for tags in ("tags:\n    - a\n    - b: [c]\n", "tags: [a]\n", ""):
        (tmp_path / "SKILL.md").write_text(f"---\nname: n\ndescription: d\n{tags}---\nx")
        library = SkillLibrary.load([tmp_path])
        fingerprints.add(library.fingerprint)
        if not tags:
            assert library.skills[0].fields == ()
        elif "b" in tags:
            assert read_node(library.skills[0]).tags == ("a", "b: ['c']")
    assert len(fingerprints) == 3
