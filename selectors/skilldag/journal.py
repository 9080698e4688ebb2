"""The memory: which first graph it builds on, and an append-only journal of episodes and their edits.

One JSON object a line. The first names the library and the first graph; then comes a line for every episode that was
learned from, each followed by lines for its edits, those refused included. A line holds a hash over itself and all
lines before it. The graph is the first graph with all edits carried out again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

import orjson

from skillarena.conf.errors import DataError
from skillarena.selectors.live import Lesson
from skillarena.selectors.skilldag.edges import GraphError
from skillarena.selectors.skilldag.graph import SkillGraph
from skillarena.selectors.skilldag.history import Edit, History

_FORMAT = "skilldag/1"
_ANOTHER = "use the library, embedder and selector options with which it was made, or start without a memory"
_DAMAGED = "restore it from where it was written, or start without a memory"


@dataclass(frozen=True, slots=True)
class FirstGraph:
    """What a memory builds on."""

    library: str
    """Fingerprint of the skill library."""
    digest: str
    """Of the cold-started graph, which depends on library, embedder and options."""
    graph: SkillGraph
    """Never changed: histories start from forks."""


@dataclass(frozen=True, slots=True)
class EpisodeLine:
    """An episode that was learned from."""

    benchmark: str
    split: str
    task_id: str
    won: bool
    reward: float
    """0 to 100 points."""
    base: int
    """Revision that the episode started from."""


@dataclass(frozen=True, slots=True)
class Journal:
    """A memory, read and carried out again."""

    history: History
    episodes: tuple[EpisodeLine, ...]
    edits: int
    """All edits, those refused included."""
    last_hash: str


def empty_memory(first: FirstGraph) -> bytes:
    """The memory before any episode."""
    return _lines("", [{"format": _FORMAT, "library": first.library, "graph": first.digest}])


def read_episodes(memory: bytes) -> list[EpisodeLine]:
    """The episodes in a memory, whatever library it belongs to. Raises ``DataError`` when it is damaged."""
    return [_episode(content) for content, _ in _contents(memory) if "won" in content]


def check_library(memory: bytes, fingerprint: str) -> None:
    """Raise ``DataError`` unless a memory was made with this library; cheaper than reading all of it."""
    header, _ = next(_contents(memory))
    if header.get("library") != fingerprint:
        raise DataError("this SkillDAG memory was made with another skill library", _ANOTHER)


def read_memory(memory: bytes, first: FirstGraph) -> Journal:
    """The journal in a memory, its graph included.

    Raises:
        DataError: it is damaged, or belongs to another library or first graph.
    """
    lines = _contents(memory)
    header, last_hash = next(lines)
    for key, known, what in (("library", first.library, "skill library"), ("graph", first.digest, "first graph")):
        if header.get(key) != known:
            raise DataError(f"this SkillDAG memory was made with another {what}", _ANOTHER)
    history, episodes, edits = History(first.graph.fork()), list[EpisodeLine](), 0
    for content, line_hash in lines:
        last_hash = line_hash
        if "won" in content:
            episodes.append(_episode(content))
            continue
        edits += 1
        if content.get("refused") is None:
            _repeat(content, history)
    return Journal(history, tuple(episodes), edits, last_hash)


def learn(memory: bytes, lessons: Sequence[Lesson], first: FirstGraph) -> bytes:
    """The memory with the lessons of some episodes appended, its only writer.

    Every edit is checked again against the graph as earlier ones have left it. One that no longer fits is kept in the
    journal as refused, with the reason; so is what builds on it.

    Raises:
        DataError: the memory is damaged or foreign, or a lesson is none of SkillDAG's or starts from a later memory.
    """
    journal = read_memory(memory, first)
    added: list[dict[str, Any]] = []
    edits = journal.edits
    for lesson in lessons:
        episode, lesson_edits = _from_lesson(lesson, journal.history.revision)
        added.append(asdict(episode))
        names: dict[str, str] = {}
        for own_name, edit in lesson_edits:
            edits += 1
            names[own_name] = f"e{edits}"
            edit = Edit(edit.action, edit.reason, edit.change, tuple(names.get(name, name) for name in edit.undoes))
            added.append(_carry_out(edit, names[own_name], lesson.task_id, journal.history))
    return memory + _lines(journal.last_hash, added)


def lesson_content(base: int, won: bool, reward: float, edits: Iterable[tuple[str, Edit]]) -> dict[str, Any]:
    """What a lesson holds: the session's edits in order, each with the name that the session knows it by."""
    return {
        "base": base,
        "won": won,
        "reward": reward,
        "edits": [{"entry": name, **edit.as_json()} for name, edit in edits],
    }


def _from_lesson(lesson: Lesson, revision: int) -> tuple[EpisodeLine, list[tuple[str, Edit]]]:
    content = lesson.content
    try:
        outcome = bool(content["won"]), float(content["reward"]), int(content["base"])
        episode = EpisodeLine(lesson.benchmark, lesson.split, lesson.task_id, *outcome)
        edits = [(str(fields["entry"]), Edit.from_json(fields)) for fields in content["edits"]]
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"the lesson of task {lesson.task_id} is none of SkillDAG's ({error})", _DAMAGED) from error
    if episode.base > revision:
        raise DataError(
            f"the lesson of task {lesson.task_id} starts from revision {episode.base}, and the memory has {revision}",
            "merge it into the memory that its episode started from, or a later one",
        )
    return episode, edits


def _carry_out(edit: Edit, name: str, task_id: str, history: History) -> dict[str, Any]:
    """Commit an edit if it fits; its line says what became of it."""
    refused = None
    try:
        history.commit(edit, name, task_id)
    except GraphError as error:
        refused = {"code": error.code, "message": error.message}
    return {
        "entry": name,
        "task_id": task_id,
        **edit.as_json(),
        "refused": refused,
        "revision": history.revision,
    }


def _repeat(content: dict[str, Any], history: History) -> None:
    """Carry out an edit of the journal again, with what came of it then."""
    try:
        edit = Edit.from_json(content)
        history.commit(edit, content["entry"], content["task_id"])
        fits = content["revision"] == history.revision
    except (GraphError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"edit {content.get('entry')} of this SkillDAG memory cannot be repeated: {error}", _DAMAGED
        ) from error
    if not fits:
        raise DataError(f"revisions of this SkillDAG memory have gaps at edit {content['entry']}", _DAMAGED)


def _episode(content: dict[str, Any]) -> EpisodeLine:
    try:
        return EpisodeLine(**content)
    except TypeError as error:
        raise DataError(f"an episode of this SkillDAG memory is out of form: {error}", _DAMAGED) from error


def _lines(last_hash: str, contents: Iterable[dict[str, Any]]) -> bytes:
    lines = []
    for content in contents:
        last_hash = _hash(last_hash, content)
        lines.append(orjson.dumps({**content, "hash": last_hash}, option=orjson.OPT_APPEND_NEWLINE))
    return b"".join(lines)


def _contents(memory: bytes) -> Iterator[tuple[dict[str, Any], str]]:
    """Lines with their hashes, the header first. Raises ``DataError``."""
    if not memory.endswith(b"\n"):
        raise DataError("the end of this SkillDAG memory is missing", _DAMAGED)
    last_hash = ""
    for number, line in enumerate(memory.splitlines(), start=1):
        try:
            content = orjson.loads(line)
            written = content.pop("hash")
        except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
            raise DataError(f"line {number} of this SkillDAG memory is out of form", _DAMAGED) from error
        last_hash = _hash(last_hash, content)
        if written != last_hash:
            raise DataError(f"line {number} of this SkillDAG memory, or one before it, was altered", _DAMAGED)
        if number == 1 and content.get("format") != _FORMAT:
            raise DataError(f"this is no SkillDAG memory of the format {_FORMAT}", _DAMAGED)
        yield content, last_hash


def _hash(last_hash: str, content: dict[str, Any]) -> str:
    """16 hex digits over a line and all before it."""
    return sha256(last_hash.encode() + orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
