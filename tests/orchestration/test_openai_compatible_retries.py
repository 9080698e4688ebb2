"""The client when a server is busy, slow or talks rubbish: waits, further attempts, wasted tokens."""

from __future__ import annotations

import logging
import pickle
import threading
import time

import pytest
from backbone_contract import MESSAGES
from stub_client import GOOD, client
from stub_server import EMPTY, HALF_JSON, NOT_JSON, USAGE, Scripted, StubServer, completion, cut_short, failure

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.backbones.errors import NoCredit, RetriesExhausted
from skillarena.orchestration.backbones.gate import Gates
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens

pytestmark = pytest.mark.usefixtures("stub_key")


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


def test_retries_are_logged_with_their_reason(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "skillarena"), StubServer([failure(503, "busy"), GOOD]) as stub:
        client(stub).chat(MESSAGES)
    assert "status 503 (busy)" in caplog.text
