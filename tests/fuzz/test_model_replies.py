"""What models and their servers say: a usable answer, or the one kind of error, soon."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
import orjson
import pytest
from hostile import PLAIN, changed, data, fuzzed, texts
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from skilldag_calls import attend, parts_of

from skillarena.conf.errors import ModelHostLost, RerankerError
from skillarena.orchestration.action_parser import LONGEST_ARGUMENTS, MAX_COMMAND, parse_reply
from skillarena.orchestration.backbones.coverage import taught_verbs
from skillarena.orchestration.backbones.openai_answers import explain, is_retryable, model_names, quote, read_answer
from skillarena.orchestration.backbones.retry import TryAgain, retry_after_seconds
from skillarena.orchestration.dialects import dialect_of
from skillarena.selectors.graph_of_skills.asking import read_object
from skillarena.selectors.llm_parser import MalformedAnswerError, read_skill_answer, read_task_answer
from skillarena.selectors.llm_ranking import make_ids, read_ranking
from skillarena.selectors.skilldag.llm_cold_start import _json, _read_labels, _read_needs
from skillarena.selectors.skilldag.selector import SkillDag
from skillarena.selectors.vllm_pooling import _Server


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
    assert found.problem(ids, 1) is None or found.named == () or found.unknown


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


RELATIONS = [
    {"target_ref": "B1", "type": "depends_on", "source_ref": "A", "reason": "r"},
    {"target_ref": "B2", "type": "none"},
]


@fuzzed
@given(changed(RELATIONS) | changed({"common_prerequisites": "x", "imagined_tasks": ["a"]}))
def test_relations_and_needs_of_skills(text: bytes) -> None:
    try:
        answer = _json(text.decode("utf-8", "replace"), cut=False)
    except ValueError:
        return
    try:
        labels = list(_read_labels(answer, 0, {"B1": 1, "B2": 2}))
    except ValueError as error:
        assert str(error)
    else:
        assert all({*label.pair} <= {0, 1, 2} and label.reason for label in labels)
    try:
        needs = _read_needs(answer)
    except ValueError as error:
        assert str(error)
    else:
        assert needs is None or needs.strip()


def test_a_number_of_thousands_of_digits_is_an_answer_out_of_form_like_any_other() -> None:
    digits = "1" * 5000  # Python refuses to convert it, with the same kind of error as a wrong value
    with pytest.raises(MalformedAnswerError, match="broken"):
        read_object(f'{{"name": {digits}}}', Form)
    with pytest.raises(MalformedAnswerError, match="neither"):
        read_task_answer(f"Subtask {digits}: x")
    with pytest.raises(ValueError, match="no JSON"):
        _json(digits, cut=False)
    assert parse_reply(f'{{"action": {digits}}}', dialect_of("alfworld")).action is None


# --- servers

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


@fuzzed
@given(texts("120", "Wed, 21 Oct 2015 07:28:00 GMT", "-1", ".5", "inf", "GMT", "+9999"))
def test_time_a_server_asks_to_wait(header: str) -> None:
    seconds = retry_after_seconds(header)
    assert seconds is None or 0 <= seconds < float("inf")


@fuzzed
@given(texts("Skill", "`go to desk 1`", "> take a from b\n", "- action: look\n", "```\n", "    open x\n"))
def test_commands_in_a_document(text: str) -> None:
    assert taught_verbs(text, "alfworld") <= set(dialect_of("alfworld").forms)


class Words:
    """Stands where the tokenizer is; one token a pair."""

    def token_ids(self, pairs: Any) -> list[list[int]]:
        return [[1] for _ in pairs]


CLASSES = {"data": [{"index": 0, "probs": [0.5]}, {"index": 1, "probs": [-2.0]}]}
MODELS = {"data": [{"id": "m", "max_model_len": 4096}, {"id": "n"}]}


@fuzzed
@given(changed(CLASSES) | changed(MODELS) | data('{"data": [{"index": '), st.sampled_from((200, 200, 200, 404, 503)))
def test_scores_of_a_reranker_on_a_server(body: bytes, status: int) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(status, content=body))
    client = httpx.Client(base_url="http://server", transport=transport)
    server = _Server(client, "", Words(), "m", 8, 100, 0)  # type: ignore[arg-type]
    try:
        logits = server.logits([("q", "d"), ("q", "e")])
    except (RerankerError, ModelHostLost) as error:
        assert "server" in error.message or "m gives" in error.message
    else:
        assert logits.shape == (2,) and np.isfinite(logits).all()
    try:
        server.check()
    except (RerankerError, ModelHostLost) as error:
        assert "server" in error.message


# --- tools of a selector

TOOLS = ("search", "show", "propose_edge", "edit_edge", "rollback")
WORDS = (
    "query", "queries", "top_k", "depth", "skill_id", "action", "source", "target", "type", "from_type", "reason",
    "entry", "steps", "task_id",
)  # fmt: skip
ARGUMENTS = st.dictionaries(
    st.sampled_from(WORDS),
    PLAIN | texts("alpha") | st.sampled_from(("alpha", "beta", "add", "retype", "depends_on", "own1", 1, 2)),
    max_size=6,
)


@pytest.fixture(scope="module")
def dag(tmp_path_factory: pytest.TempPathFactory) -> SkillDag:
    return SkillDag(parts_of(tmp_path_factory.mktemp("dag")))


@fuzzed
@given(st.lists(st.tuples(st.sampled_from(TOOLS), ARGUMENTS), min_size=1, max_size=3))
def test_calls_of_tools(dag: SkillDag, calls: list[tuple[str, dict[str, Any]]]) -> None:
    tools = {tool.name: tool for tool in attend(dag).tools}
    for name, arguments in calls:
        result = tools[name].call(arguments)
        answer = orjson.loads(result.text)
        assert answer["ok"] == result.ok
        assert result.ok or answer["error"]["code"]
