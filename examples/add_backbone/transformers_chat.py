"""A backbone of one's own: a chat model inside the rollout worker's process, without a server."""

import threading
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.backbones.interface import EpisodeContext, Message, Reply, Usage
from skillarena.orchestration.backbones.prices import FREE
from skillarena.orchestration.backbones.smollm2 import converted

_ONE_AT_A_TIME = threading.Lock()


class TransformersChat:
    """The likeliest reply of a chat model that PyTorch runs here. Plain data: it travels to the workers.

    Args:
        model: a folder or hub id; ``smollm2`` is the one that comes as a package.
        max_tokens: longest reply in tokens.
    """

    simulated = False  # a language model answers
    price = FREE  # lets run.max_cost count it

    def __init__(self, *, model: str = "smollm2", max_tokens: int = 32) -> None:
        self.name, self._model, self._max_tokens = model, model, max_tokens

    def chat(self, messages: Sequence[Message], episode: EpisodeContext | None = None) -> Reply:
        """One reply. ``episode`` tells which episode asks; a model needs the messages only."""
        started = time.perf_counter()
        with _ONE_AT_A_TIME:
            tokenizer, model = loaded(self._model)
            prompt = tokenizer.apply_chat_template(
                list(messages), add_generation_prompt=True, return_tensors="pt", return_dict=True
            )
            whole = model.generate(**prompt, max_new_tokens=self._max_tokens, do_sample=False)[0]
        given = prompt["input_ids"].shape[1]
        text = tokenizer.decode(whole[given:], skip_special_tokens=True)
        ended = "length" if len(whole) - given == self._max_tokens else "stop"
        return Reply(text, Usage(given, 0, len(whole) - given), ended, time.perf_counter() - started)

    def check(self) -> None:
        """Called once before anything starts: a mistake is best found here."""
        loaded(self._model)

    def close(self) -> None:
        """Nothing to free before the process ends."""


@cache
def loaded(name: str) -> tuple[Any, Any]:
    """Tokenizer and model, read once in each process."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    folder = converted() if name == "smollm2" else name
    try:
        return AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    except (OSError, ValueError) as error:
        raise BackboneError(f"cannot load {name}: {error}", "give backbone.model a folder or a hub id") from error
