"""The skills shipped with the project: complete, honest about the commands they teach, and the project's own words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
LIBRARY = REPOSITORY / "selectors" / "bundled"
REFERENCE = REPOSITORY.parent / "shared" / "data" / "skills"

GROUP_SIZES = {"alfworld": range(18, 23), "scienceworld": range(18, 25), "general": range(40, 61)}

REQUIRED_SECTIONS = {"When to use", "Before you start", "Steps", "Done when"}
ALLOWED_SECTIONS = REQUIRED_SECTIONS | {"Pitfalls", "Example"}

COMMAND_FORMS = {
    "alfworld": {
        "clean": "clean .+ with .+",
        "close": "close .+",
        "cool": "cool .+ with .+",
        "examine": "examine .+",
        "go": "go to .+",
        "heat": "heat .+ with .+",
        "inventory": "inventory",
        "look": "look",
        "move": "move .+ to .+",
        "open": "open .+",
        "take": "take .+ from .+",
        "use": "use .+",
    },
    "scienceworld": {
        "activate": "activate .+",
        "close": "close .+",
        "connect": "connect .+ to .+",
        "deactivate": "deactivate .+",
        "disconnect": "disconnect .+",
        "drop": "drop .+",
        "dunk": "dunk .+ in(to)? .+",
        "examine": "examine .+",
        "focus": "focus on .+",
        "go": "go to .+",
        "inventory": "inventory",
        "look": "look (around|at .+|in .+)",
        "mix": "mix .+",
        "move": "move .+ to .+",
        "number": r"\d+",
        "open": "open .+",
        "pick": "pick up .+",
        "pour": "pour .+ in(to)? .+",
        "put": "put down .+",
        "read": "read .+",
        "task": "task",
        "teleport": "teleport to .+",
        "use": "use .+ on .+",
        "wait": "wait",
        "wait1": "wait1",
    },
}
"""Each benchmark's verbs and the full form of the command; ``number`` is the bare reply to a ScienceWorld prompt."""


@dataclass(frozen=True)
class Document:
    """One bundled skill as it lies on disk."""

    group: str
    folder: str
    text: str

    @property
    def meta(self) -> dict[str, object]:
        """The front matter."""
        return dict(yaml.safe_load(self.text.split("---\n", 2)[1]))

    @property
    def body(self) -> str:
        """Everything after the front matter."""
        return self.text.split("---\n", 2)[2].strip()

    @property
    def sections(self) -> dict[str, str]:
        """Heading to text."""
        pieces = re.split(r"^## (.+)$", self.body, flags=re.MULTILINE)
        return {heading: text.strip() for heading, text in zip(pieces[1::2], pieces[2::2], strict=True)}

    @property
    def covers(self) -> list[str]:
        """Command verbs the skill says it teaches."""
        covers = self.meta["covers"]
        assert isinstance(covers, list)
        return covers

    @property
    def commands(self) -> list[str]:
        """Whatever is set as code: back-ticked spans and indented trace lines."""
        return [*re.findall(r"`([^`]+)`", self.body), *re.findall(r"^ {4}(.+)$", self.body, flags=re.MULTILINE)]


@cache
def documents(*groups: str) -> tuple[Document, ...]:
    """The bundled skills of the groups, in the order of their paths."""
    paths = [path for group in groups for path in sorted((LIBRARY / group).glob("*/SKILL.md"))]
    return tuple(Document(path.parts[-3], path.parts[-2], path.read_text(encoding="utf-8")) for path in paths)


def every_document() -> tuple[Document, ...]:
    return documents(*GROUP_SIZES)


def benchmark_documents() -> tuple[Document, ...]:
    return documents(*COMMAND_FORMS)


def word_runs(text: str, length: int) -> set[tuple[str, ...]]:
    """All runs of ``length`` consecutive words, lower case, punctuation left out."""
    words = re.findall(r"[a-z0-9']+", text.lower())
    return set(zip(*(words[start:] for start in range(length)), strict=False))


def prose(text: str) -> str:
    """The text without commands and simulator output, which are nobody's wording: code and quoted replies."""
    return re.sub(r"`[^`]*`|^ {4}.*$|\"[^\"\n]*\"", " . ", text, flags=re.MULTILINE)


def label(document: Document) -> str:
    return f"{document.group}/{document.folder}"


@pytest.mark.parametrize("group", GROUP_SIZES)
def test_group_has_its_number_of_skills(group: str) -> None:
    assert len(documents(group)) in GROUP_SIZES[group]


def test_library_holds_nothing_but_skill_documents() -> None:
    files = {path.relative_to(LIBRARY).as_posix() for path in LIBRARY.rglob("*") if path.is_file()}
    assert files == {f"{label(document)}/SKILL.md" for document in every_document()}


def test_names_are_unique_and_match_their_folders() -> None:
    names = [document.meta["name"] for document in every_document()]
    assert names == [document.folder for document in every_document()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("document", every_document(), ids=label)
def test_front_matter_is_complete(document: Document) -> None:
    keys = {"name", "description"} | ({"covers"} if document.group in COMMAND_FORMS else set())
    assert set(document.meta) == keys
    name, description = document.meta["name"], document.meta["description"]
    assert isinstance(name, str)
    assert isinstance(description, str)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", name)
    assert 1 <= len(re.findall(r"[.!?](?= |$)", description)) <= 3
    assert 12 <= len(description.split()) <= 60


@pytest.mark.parametrize("document", every_document(), ids=label)
def test_sections_are_known_and_filled(document: Document) -> None:
    assert document.body.startswith("## When to use\n")
    assert REQUIRED_SECTIONS <= set(document.sections) <= ALLOWED_SECTIONS
    assert document.body.count("\n## ") + 1 == len(document.sections), "a heading occurs twice"
    assert all(document.sections.values())
    assert re.match(r"1\. ", document.sections["Steps"])


@pytest.mark.parametrize("document", every_document(), ids=label)
def test_text_is_plain_and_bounded(document: Document) -> None:
    assert document.text.isascii()
    assert document.text.endswith("\n")
    assert not re.search(r"\t|[ ]$|https?:|<|\n\n\n", document.text, flags=re.MULTILINE)
    assert 120 <= len(document.body.split()) <= 450
    for state in ("Before you start", "Done when"):
        assert 3 <= len(document.sections[state].split()) <= 45


def test_some_benchmark_skills_require_nothing() -> None:
    for benchmark in COMMAND_FORMS:
        assert any(skill.sections["Before you start"] == "Nothing is required." for skill in documents(benchmark))


@pytest.mark.parametrize("document", benchmark_documents(), ids=label)
def test_covered_verbs_are_taught_by_a_written_command(document: Document) -> None:
    forms = COMMAND_FORMS[document.group]
    assert document.covers
    assert len(set(document.covers)) == len(document.covers)
    assert set(document.covers) <= set(forms)
    for verb in document.covers:
        assert any(re.fullmatch(forms[verb], command) for command in document.commands), f"{verb} is never shown"


@pytest.mark.parametrize("benchmark", COMMAND_FORMS)
def test_every_verb_is_covered_by_some_skill(benchmark: str) -> None:
    covered = {verb for document in documents(benchmark) for verb in document.covers}
    assert covered == set(COMMAND_FORMS[benchmark])


@pytest.mark.parametrize("benchmark", COMMAND_FORMS)
def test_no_skill_claims_more_than_half_of_the_verbs(benchmark: str) -> None:
    assert max(len(document.covers) for document in documents(benchmark)) <= len(COMMAND_FORMS[benchmark]) / 2


@pytest.mark.parametrize(
    "document", [skill for skill in benchmark_documents() if "## Example" in skill.body], ids=label
)
def test_example_traces_use_real_command_forms(document: Document) -> None:
    forms = COMMAND_FORMS[document.group]
    lines = [line.strip() for line in document.sections["Example"].splitlines() if line.strip()]
    commands = [line for line in lines if line.split()[0] in forms or line.isdigit()]
    assert commands
    for command in commands:
        verb = "number" if command.isdigit() else command.split()[0]
        assert re.fullmatch(forms[verb], command), command


def test_distractors_carry_no_benchmark_names() -> None:
    for document in documents("general"):
        assert not re.search(r"alfworld|scienceworld", document.text, flags=re.IGNORECASE), label(document)


def test_no_two_skills_are_near_duplicates() -> None:
    runs = [(label(document), word_runs(document.body, 5)) for document in every_document()]
    for (first, a), (second, b) in combinations(runs, 2):
        assert len(a & b) / len(a | b) < 0.3, f"{first} and {second} share most of their text"


def test_wording_is_not_taken_from_the_reference_skills() -> None:
    if not REFERENCE.is_dir():
        pytest.skip(f"reference skills are not at {REFERENCE}")
    paths = sorted(REFERENCE.rglob("SKILL.md"))
    assert paths
    own = {run: label(document) for document in every_document() for run in word_runs(prose(document.text), 8)}
    names = {document.folder for document in every_document()}
    for path in paths:
        assert path.parent.name not in names
        shared = own.keys() & word_runs(path.read_text(encoding="utf-8", errors="replace"), 8)
        assert not shared, {own[run]: " ".join(run) for run in shared}
