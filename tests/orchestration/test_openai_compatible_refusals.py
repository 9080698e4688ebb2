"""The client when a server says no: wrong keys, unknown models, long prompts, and the check before a run."""

from __future__ import annotations

import logging
import pickle
import time

import pytest
from backbone_contract import MESSAGES
from stub_client import GOOD, KEY, client
from stub_server import Scripted, StubServer, failure

from skillarena.conf.errors import ContextOverflow
from skillarena.orchestration.backbones.errors import RequestRefused, RetriesExhausted, UnknownModel, WrongKey

pytestmark = pytest.mark.usefixtures("stub_key")


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
