"""The whole client path, over real HTTP on the loopback interface."""

from __future__ import annotations

import inspect
import logging
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from backbone_contract import MESSAGES, BackboneContract, context
from stub_server import (
    EMPTY,
    HALF_JSON,
    NOT_JSON,
    USAGE,
    Scripted,
    StubServer,
    completion,
    cut_short,
    failure,
)

from skillarena.conf.errors import BackboneError, ConfigError, ContextOverflow
from skillarena.orchestration.backbones.errors import NoCredit, RequestRefused, RetriesExhausted, UnknownModel, WrongKey
from skillarena.orchestration.backbones.gate import Gates
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens

KEY = "sk-secret-0123456789"
GOOD = completion("Action: look", usage=USAGE)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", KEY)


def client(stub: StubServer, **options: Any) -> OpenAICompatible:
    quick = {
        "api_key_env": "STUB_KEY",
        "max_wait_s": 0.01,
        "timeout_s": 5.0,
        "connect_timeout_s": 2.0,
        "max_retries": 3,
    }
    return OpenAICompatible(base_url=stub.url, model="stub-model", **(quick | options))


class TestContract(BackboneContract):
    @pytest.fixture
    def backbone(self) -> Iterator[OpenAICompatible]:
        with StubServer(key=KEY) as stub:
            made = client(stub)
            yield made
            made.close()


def test_request_carries_model_messages_sampling_seed_and_key() -> None:
    with StubServer() as stub:
        client(stub, temperature=0.5, max_tokens=77, extra_body={"top_p": 0.9}).chat(MESSAGES, context(seed=42))
    assert stub.chats[0].body == {
        "model": "stub-model",
        "messages": list(MESSAGES),
        "temperature": 0.5,
        "max_tokens": 77,
        "top_p": 0.9,
        "seed": 42,
    }
    assert stub.chats[0].headers["authorization"] == f"Bearer {KEY}"


def test_options_set_to_none_stay_out_of_the_request() -> None:
    with StubServer() as stub:
        client(stub, temperature=None, max_tokens=None, send_seed=False, api_key_env=None).chat(MESSAGES, context())
    assert set(stub.chats[0].body) == {"model", "messages"}
    assert "authorization" not in stub.chats[0].headers


def test_usage_of_the_server_is_taken_over() -> None:
    with StubServer([completion("Action: look", usage=USAGE, finish_reason="length")]) as stub:
        reply = client(stub).chat(MESSAGES)
    usage = reply.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (100, 64, 10)
    assert not usage.estimated
    assert (reply.text, reply.finish_reason) == ("Action: look", "length")


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 10}, 0),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": None}, 0),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": None}}, 0),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_cache_hit_tokens": 96}, 96),
        ({"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 300}}, 100),
    ],
)
def test_cached_tokens_are_read_in_every_spelling(usage: dict[str, Any], cached: int) -> None:
    with StubServer([completion(usage=usage)]) as stub:
        assert client(stub).chat(MESSAGES).usage.cached_tokens == cached


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": "many"}])
def test_missing_usage_is_estimated_and_marked(usage: dict[str, Any] | None) -> None:
    with StubServer([completion("Action: look", usage=usage)]) as stub:
        reply = client(stub).chat(MESSAGES)
    assert reply.usage.estimated
    assert reply.usage.prompt_tokens == estimate_prompt_tokens(MESSAGES)
    assert reply.usage.completion_tokens == estimate_tokens("Action: look") == 3


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_passing_statuses_are_asked_again(status: int) -> None:
    with StubServer([failure(status), failure(status), GOOD]) as stub:
        reply = client(stub).chat(MESSAGES)
    assert reply.text == "Action: look"
    assert len(stub.chats) == 3
    assert reply.usage.wasted_tokens == 0
    assert stub.chats[0].body == stub.chats[2].body


@pytest.mark.parametrize(
    "unusable",
    [
        NOT_JSON,
        HALF_JSON,
        EMPTY,
        cut_short(GOOD),
        completion(None, usage=USAGE, finish_reason="tool_calls"),
        Scripted(body=b'{"error": {"message": "overloaded"}}'),
        Scripted(body=b'{"choices": []}'),
        Scripted(body=b'{"choices": [{"message": null}]}'),
        Scripted(body=b"[]"),
        Scripted(body=b""),
        Scripted(body=b'{"choices": ' + b"[" * 100_000),
    ],
)
def test_unusable_replies_are_asked_again(unusable: Scripted) -> None:
    with StubServer([unusable, GOOD]) as stub:
        assert client(stub).chat(MESSAGES).text == "Action: look"
    assert len(stub.chats) == 2


def test_tokens_of_discarded_replies_are_wasted_and_counted_apart() -> None:
    with StubServer([EMPTY, NOT_JSON, GOOD]) as stub:
        usage = client(stub).chat(MESSAGES).usage
    spent_on_page = estimate_prompt_tokens(MESSAGES) + estimate_tokens(NOT_JSON.body.decode())
    assert usage.wasted_tokens == 32 + spent_on_page
    assert usage.total_tokens == 110


def test_reply_without_text_that_was_cut_by_its_limit_is_not_asked_again() -> None:
    with StubServer([completion("", usage=USAGE, finish_reason="length")]) as stub:
        reply = client(stub).chat(MESSAGES)
    assert (reply.text, reply.finish_reason, reply.usage.completion_tokens) == ("", "length", 10)
    assert len(stub.chats) == 1


def test_text_in_parts_is_joined_and_lone_surrogates_are_replaced() -> None:
    parts = Scripted(
        body=b'{"choices": [{"message": {"content": [{"type": "text", "text": "Action: "}, {"text": "look\\ud800"}]}}]}'
    )
    with StubServer([parts]) as stub:
        assert client(stub).chat(MESSAGES).text == "Action: look?"


def test_slow_reply_is_given_up_and_asked_again() -> None:
    with StubServer([completion(delay_s=30.0), GOOD]) as stub:
        started = time.monotonic()
        assert client(stub, timeout_s=0.2).chat(MESSAGES).text == "Action: look"
        assert time.monotonic() - started < 5


def test_dripping_reply_is_given_up_although_bytes_keep_coming() -> None:
    with StubServer([completion("x" * 1000, drip_s=0.05), GOOD]) as stub:
        started = time.monotonic()
        reply = client(stub, timeout_s=0.3).chat(MESSAGES)
        assert reply.text == "Action: look"
        assert time.monotonic() - started < 5
        assert reply.latency_s > 0.3


def test_retry_after_is_waited_for() -> None:
    with StubServer([failure(429, headers={"Retry-After": "0.4"}), GOOD]) as stub:
        client(stub, max_wait_s=5.0).chat(MESSAGES)
    assert 0.4 <= stub.chats[1].at - stub.chats[0].at < 5


def test_retry_after_is_cut_to_the_longest_wait() -> None:
    with StubServer([failure(503, headers={"Retry-After": "3600"}), GOOD]) as stub:
        client(stub, max_wait_s=0.05).chat(MESSAGES)
    assert stub.chats[1].at - stub.chats[0].at < 2


def test_refusals_for_too_many_calls_use_up_no_retry() -> None:
    busy = failure(429, headers={"Retry-After": "0.02"})
    with StubServer([busy, busy, busy, GOOD]) as stub:
        assert client(stub, max_retries=0).chat(MESSAGES).text == "Action: look"
    assert len(stub.chats) == 4


def test_a_pause_asked_of_one_call_holds_back_the_next() -> None:
    gate = Gates().at("stub", 8)
    with StubServer([failure(429, headers={"Retry-After": "0.5"}), GOOD, GOOD]) as stub:
        first, second = client(stub, gate=gate, max_wait_s=5.0), client(stub, gate=gate, max_wait_s=5.0)
        thread = threading.Thread(target=first.chat, args=(MESSAGES,))
        thread.start()
        while not stub.chats:
            time.sleep(0.01)
        time.sleep(0.1)
        second.chat(MESSAGES)
        thread.join(10)
    assert all(chat.at - stub.chats[0].at >= 0.5 for chat in stub.chats[1:])


@pytest.mark.parametrize("status", [402, 429])
def test_an_account_without_credit_is_told_at_once(status: int) -> None:
    words = "You exceeded your current quota, please check your plan and billing details."
    with StubServer(default=failure(status, words, code="insufficient_quota")) as stub:
        with pytest.raises(NoCredit, match="top up"):
            client(stub).chat(MESSAGES)
        assert len(stub.chats) == 1


def test_a_reply_that_the_server_gave_up_is_wasted_and_asked_for_again() -> None:
    given_up = completion("Thought: I", usage=USAGE, finish_reason="insufficient_system_resource")
    with StubServer([given_up, GOOD]) as stub:
        usage = client(stub).chat(MESSAGES).usage
    assert (usage.wasted_tokens, usage.total_tokens) == (110, 110)


def test_a_reply_cut_short_is_estimated_as_waste() -> None:
    with StubServer([cut_short(GOOD, 20), GOOD]) as stub:
        usage = client(stub).chat(MESSAGES).usage
    assert usage.wasted_tokens == estimate_prompt_tokens(MESSAGES) + estimate_tokens("x" * 20)


def test_every_reply_is_counted_at_the_gate_with_its_price() -> None:
    gates = Gates()
    price = {"prompt": 1.0, "cached": 0.5, "completion": 10.0}
    cost = (36 * 1.0 + 64 * 0.5 + 10 * 10.0) / 1e6
    with StubServer([EMPTY, GOOD, GOOD]) as stub:
        made = client(stub, gate=gates.at("stub", 8), price=price)
        made.chat(MESSAGES)
        made.chat(MESSAGES)
    assert gates.spending.tokens == 32 + 2 * 110
    assert gates.spending.cost == pytest.approx((30 * 1.0 + 2 * 10.0) / 1e6 + 2 * cost)


def test_used_up_retries_say_what_happened_and_what_was_wasted() -> None:
    with StubServer(default=EMPTY) as stub, pytest.raises(RetriesExhausted) as caught:
        client(stub, max_retries=2).chat(MESSAGES)
    assert len(stub.chats) == 3
    assert caught.value.wasted_tokens == 3 * 32
    assert "3 attempts" in caught.value.message and "empty reply" in caught.value.message
    travelled = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(travelled, RetriesExhausted) and isinstance(travelled, BackboneError)
    assert (travelled.message, travelled.fix) == (caught.value.message, caught.value.fix)
    assert travelled.wasted_tokens == caught.value.wasted_tokens


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 422, 301, 501])
def test_refusals_are_not_asked_again(status: int) -> None:
    with StubServer(default=failure(status)) as stub, pytest.raises(RequestRefused, match=str(status)) as caught:
        client(stub).chat(MESSAGES)
    assert len(stub.chats) == 1
    assert caught.value.fix


def test_wrong_key_names_its_variable_and_never_the_key() -> None:
    with StubServer(key="another") as stub, pytest.raises(WrongKey) as caught:
        client(stub).chat(MESSAGES)
    assert "STUB_KEY" in str(caught.value) and "***" in str(caught.value)
    assert KEY not in str(caught.value)
    assert len(stub.chats) == 1


def test_missing_key_is_told_before_anything_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUB_KEY")
    with StubServer() as stub, pytest.raises(WrongKey, match="STUB_KEY is not set"):
        client(stub).chat(MESSAGES)
    assert not stub.requests


def test_unprintable_key_is_told_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUB_KEY", "sk-secret\u00e9")
    with StubServer() as stub, pytest.raises(WrongKey) as caught:
        client(stub).chat(MESSAGES)
    assert "sk-secret" not in str(caught.value)


def test_key_is_read_at_the_time_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with StubServer() as stub:
        made = client(stub)
        monkeypatch.setenv("STUB_KEY", "renewed\n")
        made.chat(MESSAGES)
    assert stub.chats[0].headers["authorization"] == "Bearer renewed"


def test_key_is_in_no_log_pickle_repr_or_error(caplog: pytest.LogCaptureFixture) -> None:
    echo = failure(500, f"your headers were: Authorization: Bearer {KEY}")
    with caplog.at_level(logging.DEBUG), StubServer([echo, GOOD, echo, echo]) as stub:
        made = client(stub, max_retries=1)
        made.chat(MESSAGES)
        with pytest.raises(RetriesExhausted) as caught:
            made.chat(MESSAGES)
    assert "your headers were" in str(caught.value)
    for text in (caplog.text, repr(made), repr(vars(made)), str(pickle.dumps(made)), str(caught.value)):
        assert KEY not in text


def test_retries_are_logged_with_their_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "skillarena"), StubServer([failure(503, "busy"), GOOD]) as stub:
        client(stub).chat(MESSAGES)
    assert "status 503 (busy)" in caplog.text


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (404, "The model `stub-model-2.5` does not exist.", ""),
        (404, "no", "model_not_found"),
        (400, "Model Not Exist", ""),
    ],
)
def test_unknown_model_is_typed_and_not_asked_again(status: int, words: str, code: str) -> None:
    with StubServer([failure(status, words, code=code)]) as stub, pytest.raises(UnknownModel, match="stub-model"):
        client(stub).chat(MESSAGES)
    assert len(stub.chats) == 1


@pytest.mark.parametrize(
    ("status", "words", "code"),
    [
        (400, "This model's maximum context length is 2048 tokens. However, you requested 4000.", ""),
        (400, "The decoder prompt (length 900) is longer than the maximum model length of 512.", ""),
        (400, "too long", "context_length_exceeded"),
        (413, "prompt is too long: 300000 tokens > 200000 maximum", ""),
    ],
)
def test_context_overflow_is_typed_and_not_asked_again(status: int, words: str, code: str) -> None:
    with StubServer([failure(status, words, code=code)]) as stub, pytest.raises(ContextOverflow, match="stub-model"):
        client(stub).chat(MESSAGES)
    assert len(stub.chats) == 1


def test_check_finds_a_served_model_without_a_chat() -> None:
    with StubServer(key=KEY) as stub:
        client(stub).check()
    assert [request.path for request in stub.requests] == ["/v1/models"]


def test_check_asks_a_question_where_there_is_no_list() -> None:
    with StubServer(models=None) as stub:
        client(stub).check()
    assert [request.path for request in stub.requests] == ["/v1/models", "/v1/chat/completions"]


def test_check_names_the_nearest_model() -> None:
    with StubServer(models=["stub-model-2", "unrelated"]) as stub, pytest.raises(UnknownModel) as caught:
        client(stub).check()
    assert "did you mean 'stub-model-2'?" in caught.value.message
    assert "unrelated" in caught.value.fix


def test_check_tells_a_wrong_key() -> None:
    with StubServer(key="another") as stub, pytest.raises(WrongKey, match="STUB_KEY"):
        client(stub).check()


def test_check_tells_a_dead_url() -> None:
    with StubServer() as stub:
        made = client(stub)
    started = time.monotonic()
    with pytest.raises(RetriesExhausted, match="ConnectError") as caught:
        made.check()
    assert "base_url" in caught.value.fix
    assert time.monotonic() - started < 5


def test_check_tells_a_server_of_another_kind() -> None:
    class WebSite(StubServer):
        def respond(self, request: object) -> Scripted:
            return Scripted(body=b"<html>hello</html>")

    with WebSite() as stub, pytest.raises(RequestRefused, match="not with a list of models"):
        client(stub).check()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"temperature": 3}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_wait_s": float("nan")}, "max_wait_s"),
        ({"extra_body": {"messages": []}}, "messages"),
        ({"base_url": "localhost:8000/v1"}, "base_url"),
        ({"base_url": "/v1"}, "base_url"),
        ({"base_url": "http://[::1/v1"}, "base_url"),
    ],
)
def test_senseless_options_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        OpenAICompatible(**({"base_url": "http://127.0.0.1/v1", "model": "m"} | options))


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "https://user:hunter2@example.org/v1"},
        {"base_url": "https://example.org/v1?key=hunter2"},
        {"api_key_env": "sk-hunter2"},
    ],
)
def test_secrets_in_options_are_refused_without_repeating_them(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAICompatible(**({"base_url": "http://127.0.0.1/v1", "model": "m"} | options))
    assert "hunter2" not in str(caught.value)


def test_proxy_of_the_environment_is_used_only_when_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with StubServer() as stub:
        assert client(stub).chat(MESSAGES).text
        with pytest.raises(RetriesExhausted, match="ConnectError"):
            client(stub, trust_env=True, max_retries=0).chat(MESSAGES)


def test_config_file_gives_the_defaults() -> None:
    file = Path(__file__).parents[2] / "conf" / "backbone" / "openai_compatible.yaml"
    options = yaml.safe_load(file.read_text())
    parameters = dict(inspect.signature(OpenAICompatible).parameters)
    del parameters["gate"]  # an object, never configured
    assert options.pop("price") == {"prompt": None, "cached": None, "completion": None}
    assert parameters.pop("price").default is None
    assert set(options) - {"name", "_target_"} == set(parameters)
    for name, parameter in parameters.items():
        assert parameter.default in (inspect.Parameter.empty, options[name]), name
