"""The whole client path, over real HTTP on the loopback interface."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from backbone_contract import MESSAGES, BackboneContract, context
from stub_client import KEY, client
from stub_server import USAGE, StubServer, completion

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.backbones.errors import RetriesExhausted
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens

pytestmark = pytest.mark.usefixtures("stub_key")


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
