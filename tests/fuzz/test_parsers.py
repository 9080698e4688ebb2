"""Whatever comes in, every parser gives a well-formed result or its one kind of error, soon.

``make test-fuzz`` takes 100,000 cases for each parser; without it there are a few hundred.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from typing import Any

import orjson
import pytest
from hostile import changed, data, fuzzed, texts
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from row_factory import make_row

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.interface import EndReason
from skillarena.envs.scienceworld_replies import is_question, is_refusal
from skillarena.orchestration.action_parser import LONGEST_ARGUMENTS, MAX_COMMAND, parse_reply
from skillarena.orchestration.backbones.openai_answers import explain, is_retryable, model_names, quote, read_answer
from skillarena.orchestration.backbones.retry import TryAgain
from skillarena.orchestration.dialects import dialect_of
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.ledger import _row
from skillarena.orchestration.selection_store import selection_from_json, selection_to_json
from skillarena.selectors.graph_of_skills.asking import read_object
from skillarena.selectors.graph_of_skills.fields import read_node
from skillarena.selectors.graph_of_skills.tokens import slug
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import SelectedSkill, Selection, Skill
from skillarena.selectors.library import Rejection, _read_line
from skillarena.selectors.llm_parser import MalformedAnswerError, read_skill_answer, read_task_answer
from skillarena.selectors.llm_ranking import make_ids, read_ranking
from skillarena.selectors.skill_file import SkillFileError, parse_skill_file
from skillarena.selectors.skilldag.journal import read_episodes
from skillarena.selectors.skilldag.llm_cold_start import _json
from skillarena.selectors.spem.commands import parse_command
from skillarena.selectors.spem.memory import Memory


def skill(text: str) -> Skill:
    return Skill("s", text[:40], text[:200], text)


# --- skill documents and pools


@fuzzed
@given(data("---\n", "name: x\n", "description: |\n", "  y\n", "# Title\n", "tags: [a]\n"))
def test_skill_document(content: bytes) -> None:
    try:
        found = parse_skill_file(content, fallback_name="folder")
    except SkillFileError as error:
        assert str(error)
        return
    assert found.name == " ".join(found.name.split()) != ""
    assert "\n" not in found.description
    (found.name + found.description + found.body).encode()  # no half characters


@fuzzed
@given(changed({"skill_id": "a/b", "name": "n", "description": "d", "body": "# B"}) | data('{"skill_id": "', '"name"'))
def test_line_of_a_pool(line: bytes) -> None:
    found = _read_line(line, "pool:1")
    assert isinstance(found, Rejection) or found.id.strip()


@fuzzed
@given(texts("## Steps\n", "1. ", "if ", "after ", "when ", "inputs: ", "```python\n", "requires: "))
def test_structure_of_a_skill(text: str) -> None:
    parsed = HeuristicParser().parse_skill(skill(text))
    assert parsed.completion is not None
    node = read_node(skill(text))
    assert node is not None
    assert " " not in slug(text)


# --- what models say


@fuzzed
@given(texts("Subtask 1: a\n", "State 1: b\n", "State 2: c\n", "subtask ", "state ", "1" * 5000 + ": x\n"))
def test_parse_of_a_task(text: str) -> None:
    try:
        parsed = read_task_answer(text)
    except MalformedAnswerError as error:
        assert str(error)
        return
    assert len(parsed.states) == len(parsed.subtasks) + 1 >= 2


@fuzzed
@given(texts("Precondition_State: a\n", "Completion_State: b", "none.", "completion_state:"))
def test_parse_of_a_skill(text: str) -> None:
    try:
        parsed = read_skill_answer(text)
    except MalformedAnswerError as error:
        assert str(error)
        return
    assert parsed.completion


@fuzzed
@given(
    texts("A > B", "B, A", '["A", "B"]', '{"id": "C"}', "1. **B**: x\n", "rank 1: C\n", "10, 2", "(3)", "Skill A"),
    st.sampled_from(("letters", "numbers")),
    st.integers(1, 30),
)
def test_ranking(text: str, kind: Any, count: int) -> None:
    ids = make_ids(count, kind)
    found = read_ranking(text, ids)
    assert len(set(found.named)) == len(found.named)
    assert set(found.named) <= set(ids)


@fuzzed
@given(
    texts("Thought: x\n", "Action: ", "go to desk 1", '{"action": "look"}', "Observation: ", "put a in/on b", "Tool: "),
    st.sampled_from(("alfworld", "scienceworld", "unknown")),
    st.booleans(),
)
def test_action(text: str, benchmark: str, tools: bool) -> None:
    found = parse_reply(text, dialect_of(benchmark), tools=tools)
    assert found.action is None or 0 < len(found.action) <= 2 * MAX_COMMAND
    assert found.action is None or "\n" not in found.action


@fuzzed
@given(texts("Tool: search ", '{"query": "x"}', '{"edges": [', "Action: look\n", "Tool:"))
def test_tool_call(text: str) -> None:
    found = parse_reply(text, dialect_of("alfworld"), tools=True)
    if found.tool is not None and found.tool.arguments is not None:
        assert len(orjson.dumps(found.tool.arguments)) <= 8 * LONGEST_ARGUMENTS
        assert found.action is None


class Form(BaseModel):
    name: str
    inputs: list[str] = []


@fuzzed
@given(texts('{"name": "x"}', '{"name": "x", "inputs": ["a"]}', '{"name": '))
def test_json_of_the_graph_methods(text: str) -> None:
    try:
        assert read_object(text, Form).name is not None
    except MalformedAnswerError as error:
        assert str(error)
    try:
        _json(text, cut=False)
    except ValueError as error:
        assert str(error)


def test_a_number_of_thousands_of_digits_is_an_answer_out_of_form_like_any_other() -> None:
    digits = "1" * 5000  # Python refuses to convert it, with the same kind of error as a wrong value
    with pytest.raises(MalformedAnswerError, match="broken"):
        read_object(f'{{"name": {digits}}}', Form)
    with pytest.raises(MalformedAnswerError, match="neither"):
        read_task_answer(f"Subtask {digits}: x")
    with pytest.raises(ValueError, match="no JSON"):
        _json(digits, cut=False)
    assert parse_reply(f'{{"action": {digits}}}', dialect_of("alfworld")).action is None


USAGE = {"prompt_tokens": 5, "completion_tokens": 7, "completion_tokens_details": {"reasoning_tokens": 2}}
REPLY = {"choices": [{"message": {"content": "Action: look"}, "finish_reason": "stop"}], "usage": USAGE}


@fuzzed
@given(changed(REPLY) | data('{"error": {"message": "', '"choices": ['))
def test_reply_of_a_server(body: bytes) -> None:
    try:
        answer = read_answer(body, [{"role": "user", "content": "go"}])
    except TryAgain as error:
        assert str(error)
    else:
        assert min(answer.usage.prompt_tokens, answer.usage.completion_tokens) >= 0
    assert len(quote(explain(body))) < 400
    assert model_names(body) is None or all(isinstance(name, str) for name in model_names(body) or ())
    is_retryable(429, body.decode("utf-8", "replace"))


# --- what was written down


@fuzzed
@given(changed(asdict(make_row(1))) | data('{"episode_id": "'))
def test_line_of_a_ledger(line: bytes) -> None:
    found = _row(line)
    assert found is None or found.outcome in set(EndReason)
    assert found is None or found.outcome == EndReason.INFRA_ERROR or None not in (found.reward, found.success)


SKILL = SelectedSkill(id="a", name="n", description="d", text="b", score=0.5, reason="r")
SELECTION = Selection((SKILL,), guidance="g", marks=("m",), details={"x": [1]})


@fuzzed
@given(changed(orjson.loads(selection_to_json(SELECTION))))
def test_stored_selection(stored: bytes) -> None:
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError):  # what the store takes for none
        found = selection_from_json(stored)
        assert isinstance(found, Selection)
        assert all(isinstance(skill, SelectedSkill) for skill in found.skills)


@fuzzed
@given(changed({"format": "spem/1", "digest": "", "content": {"weights": {}, "templates": []}}) | data())
def test_memory_of_spem(stored: bytes) -> None:
    with pytest.raises(DataError):
        Memory.from_bytes(stored)


@fuzzed
@given(changed({"format": "skilldag/1", "hash": "0" * 16}).map(lambda line: line + b"\n") | data())
def test_memory_of_skilldag(stored: bytes) -> None:
    if not stored:
        return
    with pytest.raises(DataError):
        read_episodes(stored)


# --- the command line and the simulators


@pytest.mark.slow
@fuzzed
@given(
    texts("selector=", "vector", "seed=", "run.attempts=", "agent", "benchmark.limit=", "1", "${", "}", "+", "~", "++")
)
def test_override(text: str) -> None:
    try:
        compose([text])
    except ConfigError as error:
        assert str(error)


@fuzzed
@given(texts("Ambiguous request: ", "No known action matches that input.", "The door is ", "You move to the ", "(in) "))
def test_observation(text: str) -> None:
    assert isinstance(is_refusal(text), bool)
    assert isinstance(is_question(text), bool)
    command = parse_command(text)
    assert command.target == command.target.lower()
