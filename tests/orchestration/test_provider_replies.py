"""Replies in the form of each provider, with the text and the tokens that are to be read from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from backbone_contract import MESSAGES, context
from stub_server import StubServer

from skillarena.orchestration.assembly import build
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.openai_answers import read_answer
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.pricing import price_of

REPLIES = sorted((Path(__file__).parent / "provider_replies").glob("*.json"))
CONF = Path(__file__).parents[2] / "conf" / "backbone"


@pytest.mark.parametrize("path", REPLIES, ids=lambda path: path.stem)
def test_text_and_tokens_are_read_as_the_provider_means_them(path: Path) -> None:
    golden = json.loads(path.read_text())
    expected = golden["expected"]
    answer = read_answer(json.dumps(golden["reply"]).encode(), MESSAGES)
    assert (answer.text, answer.finish_reason) == (expected["text"], expected["finish_reason"])
    assert answer.usage == Usage(**expected["usage"])


def test_every_part_lies_within_its_whole() -> None:
    for path in REPLIES:
        usage = Usage(**json.loads(path.read_text())["expected"]["usage"])
        assert usage.cached_tokens <= usage.prompt_tokens and usage.reasoning_tokens <= usage.completion_tokens


@pytest.mark.parametrize(
    ("name", "sent", "left_out"),
    [
        (
            "deepseek_v4_flash",
            {"model": "deepseek-v4-flash", "temperature": 0.0, "max_tokens": 512, "thinking": {"type": "disabled"}},
            ("seed",),
        ),
        (
            "gpt_5_4_mini",
            {
                "model": "gpt-5.4-mini",
                "temperature": 0.0,
                "max_completion_tokens": 512,
                "reasoning_effort": "none",
                "seed": 3,
            },
            ("max_tokens",),
        ),
        (
            "mimo_v2_5_pro",
            {"model": "mimo-v2.5-pro", "temperature": 0.0, "max_completion_tokens": 512},
            ("max_tokens", "seed"),
        ),
    ],
)
def test_each_official_backbone_sends_what_its_api_understands(
    monkeypatch: pytest.MonkeyPatch, name: str, sent: dict[str, object], left_out: tuple[str, ...]
) -> None:
    section = yaml.safe_load((CONF / f"{name}.yaml").read_text())
    assert section["base_url"].startswith("https://")
    monkeypatch.setenv(section["api_key_env"], "a key")
    with StubServer(models=None) as stub:
        backbone: OpenAICompatible = build({**section, "base_url": stub.url}, "backbone")
        backbone.chat(MESSAGES, context(seed=3))
        body = stub.chats[0].body
    assert {key: body[key] for key in sent} == sent
    assert not set(left_out) & set(body)
    assert body["messages"] == list(MESSAGES)


@pytest.mark.parametrize("name", ["deepseek_v4_flash", "gpt_5_4_mini"])
def test_prices_given_with_the_package_make_cached_tokens_cheaper(name: str) -> None:
    price = price_of(yaml.safe_load((CONF / f"{name}.yaml").read_text()), "backbone")
    assert price is not None
    assert 0 < price.cached < price.prompt < price.completion
