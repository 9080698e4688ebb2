"""A client of a stub server that gives up soon."""

from __future__ import annotations

from typing import Any

from stub_server import USAGE, StubServer, completion

from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible

KEY = "sk-secret-0123456789"

GOOD = completion("Action: look", usage=USAGE)


def client(stub: StubServer, **options: Any) -> OpenAICompatible:
    quick = {
        "api_key_env": "STUB_KEY",
        "max_wait_s": 0.01,
        "timeout_s": 5.0,
        "connect_timeout_s": 2.0,
        "max_retries": 3,
    }
    return OpenAICompatible(base_url=stub.url, model="stub-model", **(quick | options))
