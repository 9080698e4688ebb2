"""The prompt that Qwen3 rerankers were trained on, as token ids: every way of running one starts from here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.checkpoint import Checkpoint, loading
from skillarena.selectors.options import check_choice

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Pair = tuple[str, str]

# Checkpoints know exactly these words (model card of Qwen3-Reranker). The last line ends with two newlines; a template
# file that loses one of them shifts every score.
PREFIX = (
    "<|im_start|>system\n"
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n'
    "<|im_start|>user\n"
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
YES, NO = "yes", "no"

_SEPARATORS = {"newline": "\n", "blank_line": "\n\n"}
_MARKS = ("<|im_start|>", "<|im_end|>")


@dataclass(frozen=True, slots=True)
class Qwen3Prompt:
    """What one checkpoint wants to read about a pair.

    Raises:
        ConfigError: an unknown separator.
    """

    instruction: str
    """The task of the reranker, in the words of its training."""
    separator: str
    """What stands between instruction, query and document: ``newline`` or ``blank_line``."""

    def __post_init__(self) -> None:
        check_choice("separator", self.separator, tuple(_SEPARATORS))

    def user_turn(self, query: str, document: str) -> str:
        """The part of the prompt that is cut when it is too long."""
        fields = (f"<Instruct>: {self.instruction}", f"<Query>: {query}", f"<Document>: {document}")
        return _SEPARATORS[self.separator].join(fields)

    @property
    def fingerprint(self) -> str:
        """Tells two prompts apart, in a few characters."""
        whole = PREFIX + self.user_turn("{query}", "{document}") + SUFFIX
        return hashlib.sha256(whole.encode()).hexdigest()[:12]


class PromptTokenizer:
    """Pairs to token ids.

    Args:
        tokenizer: of the checkpoint.
        prompt: its prompt.
        max_length: tokens of a whole prompt. The user turn is cut on the right; what follows it, from which the answer
            is read, always stays.
        identity: of the reranker, for messages.

    Raises:
        RerankerError: the tokenizer is none of a Qwen3 reranker.
        ConfigError: ``max_length`` has no room for a pair.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, prompt: Qwen3Prompt, max_length: int, identity: str) -> None:
        self._tokenizer = tokenizer
        self._prompt = prompt
        self.yes, self.no = (self._only_id(word, identity) for word in (YES, NO))
        for mark in _MARKS:
            self._only_id(mark, identity)
        self._prefix, self._suffix = self._encode([PREFIX, SUFFIX])
        self._room = max_length - len(self._prefix) - len(self._suffix)
        if self._room < 1:
            raise ConfigError(
                f"reranker.max_length={max_length} leaves no room for a pair beside the prompt's own tokens",
                f"set it to some thousand tokens, and above {max_length - self._room}",
            )

    @property
    def pad(self) -> int:
        """Id to fill up short prompts with, on the left, where it is masked."""
        pad: int | None = self._tokenizer.pad_token_id
        return 0 if pad is None else pad

    def token_ids(self, pairs: Sequence[Pair]) -> list[list[int]]:
        """One prompt for each pair."""
        turns = self._encode([self._prompt.user_turn(*pair) for pair in pairs])
        return [self._prefix + turn[: self._room] + self._suffix for turn in turns]

    def _encode(self, texts: list[str]) -> list[list[int]]:
        ids: list[list[int]] = self._tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
        return ids

    def _only_id(self, word: str, identity: str) -> int:
        (ids,) = self._encode([word])
        if len(ids) != 1 or ids[0] == self._tokenizer.unk_token_id:
            raise RerankerError(
                f"{identity} is no Qwen3 reranker: {word!r} is not one token in its vocabulary but {len(ids)}",
                "use reranker=cross_encoder for other kinds of rerankers",
            )
        return ids[0]


def load_prompt_tokenizer(
    checkpoint: Checkpoint, prompt: Qwen3Prompt, max_length: int, identity: str
) -> PromptTokenizer:
    """The tokenizer of a checkpoint, for its prompt. Raises ``RerankerError`` or ``ConfigError``."""
    with loading(checkpoint, "reranker"):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(
            checkpoint.location, revision=checkpoint.revision, trust_remote_code=False
        )
    return PromptTokenizer(tokenizer, prompt, max_length, identity)
