"""Skill documents, pools, labels, evaluation data and goals: a well-formed result, or the one kind of error, soon."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from hostile import changed, data, fuzzed, texts
from hypothesis import given
from hypothesis import strategies as st

from skillarena.conf.errors import ConfigError, DataError, LibraryError, nearest
from skillarena.envs.interface import Task
from skillarena.selectors.alfworld_goals import parse_goal
from skillarena.selectors.graph_of_skills.fields import read_node
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.graph_of_skills.tokens import slug
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Skill
from skillarena.selectors.labels import load_labels
from skillarena.selectors.library import Rejection, SkillLibrary, _read_line
from skillarena.selectors.parity import load_reference
from skillarena.selectors.retrieval.dataset import read_queries
from skillarena.selectors.retrieval.predictions import read_predictions
from skillarena.selectors.skill_file import SkillFileError, parse_skill_file
from skillarena.selectors.spem.links import facets


def skill(text: str) -> Skill:
    return Skill("s", text[:40], text[:200], text, fields=(("tags", text[:80]), ("metadata", text[:80])))


@fuzzed
@given(data("---\n", "name: x\n", "description: |\n", "  y\n", "# Title\n", "tags: [a]\n", "a: &a [b]\n", "c: *a\n"))
def test_skill_document(content: bytes) -> None:
    try:
        found = parse_skill_file(content, fallback_name="folder")
    except SkillFileError as error:
        assert str(error)
        return
    assert found.name == " ".join(found.name.split()) != ""
    assert "\n" not in found.description
    (found.name + found.description + found.body).encode()  # no half characters


POOL_LINE = {"skill_id": "a/b", "name": "n", "description": "d", "body": "# B"}


@fuzzed
@given(changed(POOL_LINE) | data('{"skill_id": "', '"name"'))
def test_line_of_a_pool(line: bytes) -> None:
    found = _read_line(line, "pool:1")
    assert isinstance(found, Rejection) or found.id.strip()


@fuzzed
@given(changed(POOL_LINE) | data(), st.sampled_from(("pool.jsonl", "pool.jsonl.gz", "pool.jsonl.xz")), st.booleans())
def test_file_of_a_pool(content: bytes, name: str, packed: bool) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(gzip.compress(content)[: None if packed else -3] if name.endswith("gz") else content)
        try:
            assert len(SkillLibrary.load([path])) > 0
        except LibraryError as error:
            assert name in error.message


@fuzzed
@given(texts("## Steps\n", "1. ", "if ", "after ", "when ", "inputs: ", "```python\n", "requires: ", "[a](", "use "))
def test_structure_of_a_skill(text: str) -> None:
    parsed = HeuristicParser().parse_skill(skill(text))
    assert parsed.completion is not None
    node = read_node(skill(text))
    assert node is not None
    assert Query.of_node(node).task_name is not None
    assert facets(skill(text)).text is not None
    assert " " not in slug(text)


@fuzzed
@given(texts("Your task is to ", "put a mug in/on desk", "First, ", "Then, ", "If a, b", "focus on ", "find ", ". "))
def test_goal_of_a_task(goal: str) -> None:
    parsed = HeuristicParser().parse_task(Task("scienceworld", "s", "i", "n", "t", goal))
    assert len(parsed.states) == len(parsed.subtasks) + 1 >= 2
    if found := parse_goal(goal):
        assert all(found.subtasks)
    assert Query.of_instruction(goal).goal == " ".join(goal.split())


# --- what is needed for what


@fuzzed
@given(changed({"alfworld": {"pick": ["a", "b"]}, "scienceworld": {"boil": []}}) | data('{"alfworld": {'))
def test_labels_of_skills(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "labels.json")
        path.write_bytes(content)
        try:
            labels = load_labels(path)
        except ConfigError as error:
            assert "labels.json" in error.message
            return
        assert all(isinstance(word, str) for word in labels.words())
        assert len(labels.identity) == 64


TASK = {"task_id": "t", "instruction_text": "go", "benchmark": "b"}
RELEVANCE = {"t": {"gt_skill_ids": ["a", "b"], "core_gt_ids": ["a"], "relevance": {"a": 3, "b": 1, "c": 0.5}}}


@fuzzed
@given(changed(TASK) | data('{"task_id": "'), changed(RELEVANCE) | data('{"t": {'), st.integers(0, 5))
def test_queries_of_an_evaluation_set(task: bytes, relevance: bytes, part: int) -> None:
    with TemporaryDirectory() as folder:
        whole = (orjson.dumps(TASK) if part == 0 else task, orjson.dumps(RELEVANCE) if part == 1 else relevance)
        if part == 2:
            Path(folder, "tasks.jsonl.gz").write_bytes(whole[0])
        else:
            Path(folder, "tasks.jsonl").write_bytes(whole[0] + b"\n")
        Path(folder, "relevance.json").write_bytes(whole[1])
        try:
            queries = read_queries(folder)
        except DataError as error:
            assert folder in error.message
            return
        assert all(query.id and isinstance(query.text, str) for query in queries)
        assert all(0 < item.grade < math.inf for query in queries for item in query.judgements)


LINE = {"selector": "s", "query": "q", "ranking": ["a"], "chosen": True, "marks": ["m"], "seconds": 0.5, "tokens": 3}


@fuzzed
@given(changed(LINE) | changed({"q": ["a", "b"]}) | data('{"selector"'), st.sampled_from(("p.jsonl", "p.json")))
def test_predictions(content: bytes, name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        try:
            found = read_predictions(path)
        except DataError as error:
            assert name in error.message
            return
        assert all(isinstance(one.query, str) for method in found.values() for one in method)


PAIR = {"query": "q", "document": "d", "relevant": True, "logit": 1.5}
REFERENCE = {"about": "x", "pairs": [PAIR] * 4, "margin": 1.0, "tolerance": 0.1}


@fuzzed
@given(changed(REFERENCE) | data('{"about": "'))
def test_reference_of_a_reranker(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "reference.json")
        path.write_bytes(content)
        try:
            reference = load_reference(str(path))
        except ConfigError as error:
            assert "reference.json" in error.message
            return
        assert len(reference.pairs) >= 4


@fuzzed
@given(texts("vector", "selector", "_"), st.lists(texts("vector", "none"), max_size=5))
def test_hint_at_the_nearest_word(word: str, choices: list[str]) -> None:
    hint = nearest(word, choices)
    assert hint == "" or any(repr(choice) in hint for choice in choices)
