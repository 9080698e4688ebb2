"""Answers of a language model: asked once, counted always."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skillarena.conf.errors import BackboneError, ConfigError
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.llm import Answer, CachedLlm, NoModel
from skillarena.selectors.measure import counters, offline

HELLO = [{"role": "user", "content": "hello"}]


class Echo:
    """Answers with what it was asked."""

    def __init__(self, identity: str = "echo", finish_reason: str = "stop") -> None:
        self.identity = identity
        self.asked = 0
        self._finish_reason = finish_reason

    def chat(self, messages: Any) -> Any:
        self.asked += 1
        if messages[0]["content"] == "fail":
            raise BackboneError("gone")
        usage = SimpleNamespace(prompt_tokens=10, completion_tokens=3)
        return SimpleNamespace(text=messages[0]["content"], finish_reason=self._finish_reason, usage=usage)

    def check(self) -> None:
        """Always there."""


def test_an_answer_is_asked_for_once_and_counts_every_time(tmp_path: Path) -> None:
    model = Echo()
    for _ in range(2):
        llm = CachedLlm(model, DiskCache(tmp_path / "a.sqlite"))
        assert llm.ask(HELLO) == Answer("hello", False, 10, 3)
        assert (llm.online.llm_calls, llm.online.prompt_tokens, llm.online.completion_tokens) == (1, 10, 3)
        assert counters(None, None, llm).prompt_tokens == 10
    assert model.asked == 1


def test_other_messages_and_another_model_are_asked(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "a.sqlite")
    first, second = Echo(), Echo("another")
    CachedLlm(first, cache).ask(HELLO)
    CachedLlm(first, cache).ask([*HELLO, {"role": "assistant", "content": "hm"}])
    CachedLlm(second, cache).ask(HELLO)
    assert (first.asked, second.asked) == (2, 1)


def test_work_for_the_library_counts_apart_and_only_when_it_is_done(tmp_path: Path) -> None:
    llm = CachedLlm(Echo(), DiskCache(tmp_path / "a.sqlite"))
    with offline():
        llm.ask(HELLO)
        llm.ask(HELLO)
    assert (llm.offline.llm_calls, llm.online.llm_calls) == (1, 0)
    assert counters(None, None, llm).offline_tokens == 13


def test_a_cut_answer_says_so(tmp_path: Path) -> None:
    assert CachedLlm(Echo(finish_reason="length"), DiskCache(tmp_path / "a.sqlite")).ask(HELLO).cut


def test_a_failed_call_is_asked_again(tmp_path: Path) -> None:
    model = Echo()
    llm = CachedLlm(model, DiskCache(tmp_path / "a.sqlite"))
    for _ in range(2):
        with pytest.raises(BackboneError):
            llm.ask([{"role": "user", "content": "fail"}])
    assert model.asked == 2
    assert llm.online.llm_calls == 0


def test_without_a_model_the_message_says_how_to_choose_one(tmp_path: Path) -> None:
    llm = CachedLlm(NoModel(), DiskCache(tmp_path / "a.sqlite"))
    with pytest.raises(ConfigError, match="none is chosen") as refused:
        llm.check()
    assert "llm=openai_compatible" in refused.value.fix
    with pytest.raises(ConfigError):
        llm.ask(HELLO)
