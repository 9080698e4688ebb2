"""Reading one skill document: good ones, the defects that are common in public collections, and hostile ones."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.selectors.skill_file import MAX_BYTES, SkillFile, SkillFileError, make_skill_file, parse_skill_file

ODD_SKILLS = Path(__file__).resolve().parents[3] / "shared" / "data" / "odd_skills"


def read(text: str | bytes) -> SkillFile:
    return parse_skill_file(text if isinstance(text, bytes) else text.encode(), fallback_name="folder-name")


def test_reads_name_description_and_body() -> None:
    document = "---\nname: wash-dishes\ndescription: Washes dishes by hand.\n---\n\n# Wash dishes\n\nUse warm water.\n"
    assert read(document) == SkillFile("wash-dishes", "Washes dishes by hand.", "# Wash dishes\n\nUse warm water.")


@pytest.mark.parametrize(
    ("front", "name", "description"),
    [
        ("name: a\ndescription: Two ways: fast, slow\nlicense: x", "a", "Two ways: fast, slow"),
        ("name: a\ndescription: [DRAFT] Not done yet.", "a", "[DRAFT] Not done yet."),
        ("name: a\ndescription: | Lost its block.\nlicense: x", "a", ""),
        ("name: a\ndescription: >- Lost: its block.", "a", ""),
        ("name: a\ndescription: |\n  First line.\n\n    Second, deeper.", "a", "First line. Second, deeper."),
        ("name: a\ndescription: >\n  Folded\n  text.", "a", "Folded text."),
        ("name: a\ndescription: Broken: on\n  two lines: here", "a", "Broken: on two lines: here"),
        ('name: a\nother: x: y\ndescription: "Quoted: \\"yes\\""', "a", 'Quoted: "yes"'),
        ("name: 'a': b\ndescription: 'x", "'a': b", "'x"),
        ("name: no\ndescription: 2024-01-01", "no", "2024-01-01"),
        ("name: 007\ndescription: 1e3", "007", "1e3"),
        ("name: [todo]\ndescription: [What it does, when]", "[todo]", "[What it does, when]"),
        ("name: {{ name }}\ndescription: {{ text }}", "{{ name }}", "{{ text }}"),
        ("name: wash\\_up\ndescription: d", "wash_up", "d"),
        ("Name: Upper\nDESCRIPTION: Case", "Upper", "Case"),
        ("slug: box\ndisplay_name: The Box\nsummary: Opens it.", "box", "Opens it."),
        ("name: form\nabout: Asks for help", "form", "Asks for help"),
        ("name: null\ndescription: ~", "folder-name", ""),
        ("name: twice\nname: again\ndescription: d", "again", "d"),
        ("name: a\nversion: 1\nversion: 2\ndescription: d", "a", "d"),
        ("name: !!python/object/apply:os.getcwd []\ndescription: !x d", "!!python/object/apply:os.getcwd []", "d"),
        ("base: &t Shared text\nname: a\ndescription: *t", "a", "Shared text"),
        ("name: a\ndescription: *missing", "a", "*missing"),
        ("description: d\nargument-hint: [x] [y]", "folder-name", "d"),
        ("# a comment\nname: a\n\n# another\ndescription: d", "a", "d"),
        ("name: tränen-trockner\ndescription: Hilft — bei: allem 🎈", "tränen-trockner", "Hilft — bei: allem 🎈"),
    ],
)
def test_front_matter_is_read_as_its_author_meant_it(front: str, name: str, description: str) -> None:
    skill = read(f"---\n{front}\n---\n\nThe body.\n")
    assert (skill.name, skill.description, skill.body) == (name, description, "The body.")


@pytest.mark.parametrize(
    "document",
    [
        "\ufeff---\nname: a\ndescription: d\n---\nB",
        "\n \n---\nname: a\ndescription: d\n---\nB",
        "--- \nname: a\ndescription: d\n---\t\nB",
        "---\r\n\r\nname: a\r\n\r\ndescription: d\r\n\r\n---\r\nB",
        "---\rname: a\rdescription: d\r---\rB",
        "---\nname: a\ndescription: |\n  d\n  ---\nB",
        "---\nna\x00me: a\x1b\ndescription: \u202ed\u2066\n---\nB\x07",
    ],
)
def test_fences_line_ends_and_invisible_characters_do_not_matter(document: str) -> None:
    assert read(document) == SkillFile("a", "d", "B")
    assert read(document.encode("utf-8")) == read(document)


def test_utf_16_with_a_byte_order_mark_is_read() -> None:
    assert read("---\nname: ä\ndescription: d\n---\nB".encode("utf-16")) == SkillFile("ä", "d", "B")


def test_stray_bytes_cost_only_themselves() -> None:
    skill = read("---\nname: a\ndescription: Über ".encode() + b"caf\xe9 \x93x\x94\n---\nB\x81")
    assert (skill.description, skill.body) == ("Über café “x”", "B\ufffd")


def test_unclosed_front_matter_ends_at_the_first_heading() -> None:
    skill = read("---\nname: a\ndescription: d\n\n# Title\n\nSome text.\n\n---\n\nEnd.\n")
    assert skill == SkillFile("a", "d", "# Title\n\nSome text.\n\n---\n\nEnd.")


def test_unclosed_front_matter_does_not_swallow_a_body_that_looks_like_yaml() -> None:
    assert read("---\nname: a\ndescription: d\n\n# Title\n\nNote: text\n") == SkillFile(
        "a", "d", "# Title\n\nNote: text"
    )


def test_a_document_may_end_within_its_front_matter() -> None:
    assert read("---\nname: a\ndescription: From &quot;a&quot; to: b") == SkillFile("a", "From &quot;a&quot; to: b", "")


def test_a_second_front_matter_block_belongs_to_the_body() -> None:
    skill = read("---\nname: a/b\ndescription: d\n---\n\nExample:\n\n---\nname: other\n---\n")
    assert (skill.name, skill.body) == ("a/b", "Example:\n\n---\nname: other\n---")


def test_a_rule_at_the_top_is_no_front_matter() -> None:
    text = "---\nJust words, and nothing else\n---\n\n# Real title"
    assert read(text) == SkillFile("Real title", "", text)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("Intro.\n\n# The title\n\n# Second", "The title"),
        ("## Only a section", "folder-name"),
        ("```bash\n# a comment\n```\n# Outside\n", "Outside"),
        ("\\# Escaped", "Escaped"),
        ("No heading at all", "folder-name"),
    ],
)
def test_a_missing_name_comes_from_the_title_or_the_file(body: str, name: str) -> None:
    assert read(body) == SkillFile(name, "", body.strip())


@pytest.mark.parametrize("document", ["", "\n \n", "---\n---\n", "---\nlicense: MIT\n---\n\n", "\ufeff\x00", "---"])
def test_a_document_without_content_is_refused(document: str) -> None:
    with pytest.raises(SkillFileError, match="no name, no description and no text"):
        read(document)


def test_a_document_over_the_size_limit_is_refused() -> None:
    assert read(b"x" * MAX_BYTES).body == "x" * MAX_BYTES
    with pytest.raises(SkillFileError, match="larger than 5,000,000 bytes"):
        read(b"x" * (MAX_BYTES + 1))


@pytest.mark.parametrize(
    "hostile",
    [
        "name: a\nx: " + "[" * 10_000,
        "name: a\nx: " + "[" * 2_000_000,
        "name: a\nx:\n" + "".join("  " * depth + "- y:\n" for depth in range(120)),
        "name: a\nx0: &x0 [l,l]\n" + "".join(f"x{i}: &x{i} [*x{i - 1}, *x{i - 1}]\n" for i in range(1, 60)),
        "name: a\nx: &x [*x]",
        "name: a: b\n" * 200_000,
        "name: a\n" + "#" * 1_000_000,
        'name: a\nx: "' + "\\" * 10_000,
    ],
    ids=["deep", "deep and long", "deep blocks", "alias bomb", "alias loop", "many entries", "comment", "escapes"],
)
def test_hostile_front_matter_is_read_in_bounded_time(hostile: str) -> None:
    start = time.process_time()
    skill = read(f"---\n{hostile}\n---\nB")
    assert skill.body.endswith("B")
    assert skill.name in ("a", "a: b")
    assert time.process_time() - start < 20  # unbounded reading takes minutes


@pytest.mark.skipif(not ODD_SKILLS.is_dir(), reason="the collection of odd skills is not beside this checkout")
def test_every_odd_skill_gives_what_is_reasonable() -> None:
    index = json.loads((ODD_SKILLS / "INDEX.json").read_text(encoding="utf-8"))
    assert len(index) == 25
    for entry in index:
        skill = parse_skill_file((ODD_SKILLS / entry["file"]).read_bytes(), fallback_name=entry["file"])
        assert skill.description == (entry["reasonable_description"] or ""), entry["file"]
        if entry["reasonable_name"] is not None:
            assert skill.name == entry["reasonable_name"], entry["file"]
        assert skill.name, entry["file"]


def check_tidy(skill: SkillFile) -> None:
    assert skill.name
    for line in (skill.name, skill.description):
        assert line == " ".join(line.split())
    whole = skill.name + skill.description + skill.body
    assert not any(character in whole for character in "\x00\x1b\r\ufeff\u202e\ud800")
    whole.encode("utf-8")
    assert make_skill_file(skill.name, skill.description, skill.body, fallback_name="x") == skill


PIECES = st.sampled_from(
    [
        "---",
        "\n",
        " ",
        ":",
        "name",
        "description",
        "|",
        ">",
        "[",
        "{",
        "&a",
        "*a",
        '"',
        "'",
        "#",
        "\\",
        "\t",
        "\r",
        "\x00",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(PIECES | st.text(max_size=3), max_size=40).map(
            lambda pieces: ("---\n" + "".join(pieces)).encode("utf-8", errors="surrogatepass")
        ),
    )
)
def test_any_bytes_give_a_tidy_skill_or_one_reason(data: bytes) -> None:
    try:
        skill = read(data)
    except SkillFileError as error:
        assert str(error)
    else:
        check_tidy(skill)


@settings(max_examples=100, deadline=None)
@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Cn")), min_size=1, max_size=300),
    st.sampled_from(["'", '"', "|", ">", None]),
)
def test_well_formed_yaml_is_never_changed(text: str, style: str | None) -> None:
    front = yaml.safe_dump({"name": "n", "description": text}, allow_unicode=True, default_style=style, width=40)
    skill = read(f"---\n{front}---\nB")
    loaded = yaml.safe_load(front)["description"]
    assert skill == SkillFile("n", " ".join(str(loaded).split()), "B")
