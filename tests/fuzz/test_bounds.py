"""Time and memory are bounded, however large, deep or malicious the input is.

Times are of the processor, and the bounds are at least ten times what was measured.
"""

from __future__ import annotations

import gzip
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from alfworld_files import make_scene
from row_factory import make_row

from skillarena.conf.errors import BackboneError, DataError, SkillArenaError, nearest
from skillarena.conf.redaction import without_credentials
from skillarena.envs.alfworld_planner import read_goal
from skillarena.envs.alfworld_text import Grammar, Rule, parse_grammar, parse_query, symbols
from skillarena.envs.interface import Task
from skillarena.envs.java import version_in
from skillarena.envs.scienceworld_replies import is_refusal
from skillarena.orchestration.action_parser import parse_reply
from skillarena.orchestration.agent import LONGEST_OBSERVATION, _readable
from skillarena.orchestration.backbones.coverage import taught_verbs
from skillarena.orchestration.backbones.openai_answers import LARGEST_BODY, LONGEST_TEXT, explain, quote, read_answer
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.retry import TryAgain
from skillarena.orchestration.console import plain
from skillarena.orchestration.dialects import dialect_of
from skillarena.orchestration.ledger import read_rows
from skillarena.orchestration.report.markdown import escape
from skillarena.orchestration.serving.server_log import reasons
from skillarena.selectors.graph_of_skills.asking import read_object
from skillarena.selectors.graph_of_skills.extraction import Extracted
from skillarena.selectors.graph_of_skills.fields import read_node
from skillarena.selectors.graph_of_skills.io_match import io_scores
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.llm_parser import MalformedAnswerError, read_skill_answer, read_task_answer
from skillarena.selectors.llm_ranking import complaint, make_ids, question, read_ranking
from skillarena.selectors.rerankers import _sections
from skillarena.selectors.retrieval.dataset import read_queries
from skillarena.selectors.skill_file import MAX_BYTES, SkillFileError, parse_skill_file
from skillarena.selectors.skilldag.llm_cold_start import _json
from skillarena.selectors.spem.commands import parse_command
from skillarena.selectors.spem.links import facets

SIZE = 16_000
"""Characters of a bomb: as many as are read as YAML, and enough for anything quadratic to be noticed."""
NOTICEABLE = 0.05
"""Seconds of processor time."""
LARGE = 50_000_000


@contextmanager
def within(seconds: float, *, peak: float | None = None) -> Iterator[None]:
    """The processor time that the lines below may take, and the bytes that they may hold at once."""
    if peak is not None:
        tracemalloc.start()
    began = time.process_time()
    try:
        yield
        took = time.process_time() - began
        held = tracemalloc.get_traced_memory()[1] if peak is not None else 0.0
    finally:
        tracemalloc.stop()
    assert took < seconds, f"it took {took:.1f} s"
    assert peak is None or held < peak, f"it held {held:,} bytes"


def task(goal: str) -> Task:
    return Task("alfworld", "s", "i", "n", "t", goal)


def skill(text: str) -> Skill:
    return Skill("s", "name", text, text, fields=(("tags", text),))


BOMBS = (
    "[", "]", "[a](", "(", "((", "{", '{"a":', '["a",', "[1,", "<", "<skill", "<think>", "use ", "use when", "when ",
    " and then", "and then ", "a ", "a", " ", "\n", "\n ", "\t", "#", "# ", "## 1. ", "1. ", "9", "-", "- ", "*", "**",
    "`", "`a", "```\n", "```", "//", "//a:b", "http://", "http:", "&", "it needs ", "if ", "not yet ",
    "The ", "because ", "\x1b[31m", ": ", "a:",
    "The x can't be poured out because ", "looking quickly around you, you see ", "put a in ", "Action: ", "Tool: x {",
    "Thought: ", "state 1: ", "Subtask 1: a\n", "A, ", "A > ", "1\n", "A\n", ",", ";", "\\", "é",
    "a: ", "- - ", "? ", "&a ", "*a ", "'", '"', '"""', "=", ".", "..", "a.", "the thing ", "find ", "then ", "(a ?b) ",
    "#a", "#a#", "{a", "{a ", "{a|", "|", "a(b)&", "model ", 'version "', "Key '", "error", "exception ", "/", "@",
    "?key=", "<0x", "\ud800", "\u202e", "\x00", "%", "$", "~", "_", "[x]: ", "![", "www.", "10) ", "key: |\n", "!!a ",
)  # fmt: skip
"""What some regular expression or parser might go over again and again."""

READERS: dict[str, Callable[[str], object]] = {
    "skill document": lambda text: parse_skill_file(text.encode("utf-8", "replace"), fallback_name="x"),
    "front matter": lambda text: parse_skill_file(f"---\n{text}\n---\n".encode("utf-8", "replace"), fallback_name="x"),
    "needs of a skill": lambda text: HeuristicParser().parse_skill(skill(text)),
    "sections of a skill": lambda text: HeuristicParser().parse_skill(Skill("s", "n", "", f"# Purpose\n{text}")),
    "goal": lambda text: HeuristicParser().parse_task(task(f"Your task is to find {text}")),
    "goal of alfworld": lambda text: HeuristicParser().parse_task(task(f"put {text} in desk")),
    "node of a graph": lambda text: Query.of_node(read_node(skill(text))),
    "query of a graph": Query.of_instruction,
    "facets": lambda text: facets(skill(text)),
    "sections": _sections,
    "commands in a skill": lambda text: taught_verbs(text, "alfworld"),
    "parsed task": read_task_answer,
    "parsed task in a fence": lambda text: read_task_answer(f"```\n{text}"),
    "parsed skill": read_skill_answer,
    "ranking by letters": lambda text: read_ranking(text, make_ids(30, "letters")),
    "ranking by numbers": lambda text: read_ranking(text, make_ids(30, "numbers")),
    "reply in alfworld": lambda text: parse_reply(text, dialect_of("alfworld"), tools=True),
    "reply in scienceworld": lambda text: parse_reply(text, dialect_of("scienceworld")),
    "action of a reply": lambda text: parse_reply(f"Action: {text}", dialect_of("alfworld")),
    "tool call": lambda text: parse_reply(f"Tool: x {{{text}", dialect_of("alfworld"), tools=True),
    "object": lambda text: read_object(text, Extracted),
    "json": lambda text: _json(text, cut=False),
    "answer of a server": lambda text: read_answer(text.encode("utf-8", "replace"), []),
    "error of a server": lambda text: quote(explain(text.encode("utf-8", "replace"))),
    "log of a server": reasons,
    "observation": is_refusal,
    "pouring": lambda text: is_refusal(f"The {text} can't be poured out because "),
    "places": dialect_of("alfworld").places,
    "command": parse_command,
    "template": symbols,
    "template's value": lambda text: symbols("{" + text),
    "template's rule": lambda text: symbols("#" + text),
    "condition": parse_query,
    "grammar": parse_grammar,
    "rules": lambda text: parse_grammar(f'grammar :: """{text}"""'),
    "rendering": lambda text: Grammar({"a": [Rule("x", text[:2000])]}).render("#a#" + text, make_scene(""), {}),
    "goal in pddl": lambda text: read_goal(f"(:goal {text}"),
    "java": version_in,
    "terminal": plain,
    "markdown": escape,
    "credentials": without_credentials,
    "hint": lambda text: nearest(text, [text[1:], "a"]),
}


def seconds(read: Callable[[str], object], text: str) -> float:
    """Processor time for a text, refused or not."""
    began = time.process_time()
    try:
        read(text)
    except (SkillArenaError, SkillFileError, MalformedAnswerError, TryAgain, ValueError) as error:
        assert str(error)
    return time.process_time() - began


@pytest.mark.parametrize("reader", READERS)
def test_no_text_takes_more_than_linear_time(reader: str) -> None:
    read = READERS[reader]
    for bomb in BOMBS:
        text = bomb * (SIZE // len(bomb))
        for whole, longer in ((text, text * 4), (f"x {text}!\nx", f"x {text * 4}!\nx")):
            took = seconds(read, whole)
            if took > NOTICEABLE:  # nothing quadratic is quicker
                least = min(seconds(read, longer) for _ in range(3))  # others may take the machine's caches meanwhile
                assert least < 8 * took + 0.2, f"{bomb!r} took {took:.2f} s, and four times it far more"


# --- documents


def document_of(size: int) -> bytes:
    return b"---\nname: x\ndescription: y\n---\n" + b"word " * (size // 5)


def test_a_document_of_50_mb_is_refused_unread(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "SKILL.md").write_bytes(document_of(LARGE))
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "SKILL.md").write_bytes(document_of(100))
    with within(2, peak=4 * MAX_BYTES):
        library = SkillLibrary.load([tmp_path])
    assert [skill.id for skill in library.skills] == ["small"]
    assert library.rejections[0].reason == f"larger than {MAX_BYTES:,} bytes"


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz"])
def test_a_line_of_50_mb_of_a_pool_is_refused_unread(name: str, tmp_path: Path) -> None:
    good = b'{"skill_id": "a", "name": "n", "description": "d", "body": "b"}\n'
    content = b'{"skill_id": "b", "name": "n", "body": "' + b"x" * LARGE + b'"}\n' + good
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name.endswith("gz") else content)
    with within(10, peak=4 * MAX_BYTES):
        library = SkillLibrary.load([tmp_path / name])
    assert [skill.id for skill in library.skills] == ["a"]
    assert library.rejections[0].source.endswith(f"{name}:1")


def test_the_largest_document_that_is_read_is_understood_soon() -> None:
    with within(20, peak=40 * MAX_BYTES):
        found = parse_skill_file(document_of(MAX_BYTES - 100), fallback_name="x")
        HeuristicParser().parse_skill(Skill("s", found.name, found.body, found.body))


def test_a_name_of_megabytes_is_refused_and_a_title_is_cut() -> None:
    with pytest.raises(SkillFileError, match="name is longer than 1,000"):
        parse_skill_file(b"---\nname: " + b"x" * 10_000 + b"\n---\n", fallback_name="x")
    assert len(parse_skill_file(b"# " + b"x" * 10_000, fallback_name="f").name) == 1000


def test_aliases_that_multiply_stay_what_was_written() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [
        f"{after}: &{after} [{', '.join([f'*{before}'] * 10)}]"
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    laughs = "\n".join(["---", "name: x", *lines, "metadata: *i", "tags: *h", "---", "body"])
    copies = "\n".join(
        ["---", "name: x", "long: &l [" + "y, " * 4000 + "y]", *(f"k{n}: *l" for n in range(400)), "---", "b"]
    )
    for text in (laughs, copies):
        with within(5, peak=20_000_000):
            found = parse_skill_file(text.encode(), fallback_name="f")
            node = read_node(Skill("s", found.name, found.description, found.body, fields=found.fields))
        assert found.name == "x"
        assert sum(len(value) for _, value in found.fields) <= 4 * len(text)
        assert sum(map(len, node.texts)) <= 4 * len(text)


@pytest.mark.parametrize("opening", ["[", "{", '{"a":', "- ", "? ", "!!map {", "&a [", "[[], "])
def test_documents_that_nest_100_000_deep_are_read_without_it(opening: str) -> None:
    for value in (opening * 100_000, opening * (16_000 // len(opening))):
        with within(5, peak=100_000_000):
            found = parse_skill_file(f"---\nname: x\nb: {value}\n---\nbody".encode(), fallback_name="f")
        assert found.name in ("x", "f")


@pytest.mark.parametrize("opening", ["[", '{"a":', "[[],"])
def test_json_that_nests_100_000_deep_is_refused(opening: str, tmp_path: Path) -> None:
    text = opening * 100_000
    with within(5, peak=100_000_000):
        assert parse_reply(f'{{"action": {text}', dialect_of("alfworld")).action is None
        with pytest.raises(TryAgain):
            read_answer(text.encode(), [])
        with pytest.raises(MalformedAnswerError):
            read_object(f'{{"inputs": {text}', Extracted)
        assert len(read_ranking(text, make_ids(5, "letters")).named) <= 1
        (tmp_path / "relevance.json").write_text(text)
        with pytest.raises(DataError):
            read_queries(tmp_path)


# --- lists of 10,000


def test_10_000_ids_are_ranked() -> None:
    for kind in ("letters", "numbers"):
        with within(10):
            ids = make_ids(10_000, kind)  # type: ignore[arg-type]
            for text in (", ".join(ids), "\n".join(ids), " > ".join(ids), str(ids), "\n".join(ids[:5000])):
                found = read_ranking(text, ids)
                assert len(found.named) in (5000, 10_000)
                found.problem(ids, 10_000)
            complaint("no", ids)
            question("go", [Skill(name, name, "d", "b") for name in ids], ids)


def test_10_000_parts_of_a_task_and_of_a_front_matter_are_read() -> None:
    with within(10):
        answer = [*(f"Subtask {n}: a" for n in range(1, 9999)), *(f"State {n}: b" for n in range(1, 10_000))]
        assert len(read_task_answer("\n".join(answer)).subtasks) == 9998
        listed = Skill("s", "n", "d", "\n".join(["# Inputs", *(f"- item {n}" for n in range(10_000))]))
        nodes = [read_node(listed), read_node(Skill("t", "n", "d", listed.body.replace("Inputs", "Outputs")))]
        assert len(nodes[0].inputs) == 1000  # more are left out
        assert io_scores([node.outputs for node in nodes], [node.inputs for node in nodes]).nnz
        document = "\n".join(["---", "name: x", "tags:", *(f"- t{n}" for n in range(10_000)), "---", "b"])
        assert parse_skill_file(document.encode(), fallback_name="f").name == "x"


def test_10_000_relevant_skills_are_looked_up(tmp_path: Path) -> None:
    ids = [f"skill number {n}" for n in range(10_000)]
    (tmp_path / "tasks.jsonl").write_text('{"task_id": "t", "instruction_text": "go"}')
    grades = dict.fromkeys(ids, 2)
    (tmp_path / "relevance.json").write_bytes(
        orjson.dumps({"t": {"gt_skill_ids": ids, "core_gt_ids": ids, "relevance": grades}})
    )
    with within(5):
        assert len(read_queries(tmp_path)[0].judgements) == 10_000


def test_a_tool_call_of_10_000_arguments_is_refused() -> None:
    arguments = orjson.dumps({f"k{n}": [n] for n in range(10_000)}).decode()
    with within(2):
        found = parse_reply(f"Tool: search {arguments}", dialect_of("alfworld"), tools=True)
    assert found.tool is not None and found.tool.arguments is None


# --- texts of 50 MB


def test_a_reply_of_50_mb_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = iter(range(LARGE // 1_000_000))
    body = httpx.Response(200, content=(b"x" * 1_000_000 for _ in sent))
    backbone = OpenAICompatible(base_url="http://server/v1", model="m", api_key_env=None, max_retries=0)
    monkeypatch.setattr(backbone, "_client", httpx.Client(transport=httpx.MockTransport(lambda request: body)))
    with within(5, peak=4 * LARGEST_BODY), pytest.raises(BackboneError, match="more than 32,000,000 bytes"):
        backbone.chat([{"role": "user", "content": "go"}])
    assert next(sent) > LARGEST_BODY // 1_000_000 - 2  # the rest was not even received


def test_a_text_longer_than_any_model_writes_is_no_reply() -> None:
    reply = {"choices": [{"message": {"content": "a" * (LONGEST_TEXT + 1)}, "finish_reason": "stop"}]}
    with pytest.raises(TryAgain, match="1,000,001 characters"):
        read_answer(orjson.dumps(reply), [])


def test_an_observation_of_50_mb_is_cut() -> None:
    with within(5, peak=1_000_000):
        text = _readable(OBSERVATION)
    assert len(text) < LONGEST_OBSERVATION + 100
    assert text.endswith(f"[{LARGE - LONGEST_OBSERVATION:,} characters are left out]")
    assert _readable("You see a desk.") == "You see a desk."


OBSERVATION = "x" * LARGE


def test_a_line_of_50_mb_of_a_ledger_costs_its_own_episode(tmp_path: Path) -> None:
    rows = [
        orjson.dumps(make_row(1)),
        orjson.dumps(make_row(2, error="x" * LARGE)),
        b"x" * LARGE,
        orjson.dumps(make_row(3)),
    ]
    (tmp_path / "episodes.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    with within(10, peak=6 * LARGE):
        content = read_rows(tmp_path)
    assert [row.episode_id for row in content.rows] == ["e1", "e2", "e3"]
    assert content.damaged_lines == 1


# --- games that never end


@pytest.mark.parametrize(
    "rules",
    [
        {"a": [Rule("#a#")]},
        {"a": [Rule("#b##b#")], "b": [Rule("#a##a#")]},
        {f"r{n}": [Rule(f"#r{n + 1}#" * 10)] for n in range(30)} | {"a": [Rule("#r0#")], "r30": [Rule("ha")]},
        {"a": [Rule("{x.name | " + " & ".join(f"near(x{n}:object)" for n in range(20)) + " & far(z:object)}")]},
    ],
)  # fmt: skip
def test_a_grammar_that_never_ends_is_refused(rules: dict[str, list[Rule]]) -> None:
    scene = make_scene("\n".join(f"near thing{n}_bar_1" for n in range(40)))
    with within(20), pytest.raises(DataError, match=r"never ends|too long"):
        Grammar(rules).render("#a#", scene, {})
