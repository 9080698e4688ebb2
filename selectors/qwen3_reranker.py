"""Qwen3 rerankers, run in this process: a language model that answers yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import RerankerError
from skillarena.selectors.checkpoint import SAFE_WEIGHTS, Checkpoint, architecture, find_checkpoint, loading
from skillarena.selectors.options import DTYPES, check_choice, check_counts, check_optional_counts
from skillarena.selectors.parity import load_reference, prove
from skillarena.selectors.qwen3_prompt import PromptTokenizer, Qwen3Prompt, load_prompt_tokenizer

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

Pair = tuple[str, str]


class Qwen3Reranker:
    """Qwen3-Reranker, what was trained from it (SkillRouter's reranker), and conversions of both to a classifier.

    Score = logit("yes") - logit("no") after the prompt, so that its sigmoid is the probability of yes (SkillRouter,
    arXiv 2603.22455). The weights are loaded at the first pair and proved on pairs with known answers. Not thread-safe.

    Args:
        model: a folder or a hub id.
        instruction: the task, in the words of the model's training.
        separator: between instruction, query and document: ``newline`` or ``blank_line``.
        max_length: tokens of a whole prompt; see ``PromptTokenizer``.
        reference: pairs with known answers: a shipped name or a file; see ``parity.Reference``.
        batch_size: pairs in one forward pass.
        dtype: of weights and activations: ``float32``, ``bfloat16`` or ``float16``.
        device: ``cpu``, ``cuda``, ``cuda:1``, …; None takes the best there is.
        revision: branch, tag or commit on the hub.

    Raises ``RerankerError`` when a package or the model is missing or the model is none of these, ``ConfigError`` for
    a value that makes no sense.
    """

    def __init__(
        self,
        *,
        model: str,
        instruction: str,
        separator: str,
        max_length: int,
        reference: str,
        batch_size: int = 8,
        dtype: str = "bfloat16",
        device: str | None = None,
        revision: str | None = None,
    ) -> None:
        check_counts(batch_size=batch_size)
        check_optional_counts(max_length=max_length)
        check_choice("dtype", dtype, DTYPES)
        self._prompt = Qwen3Prompt(instruction, separator)
        self._reference = load_reference(reference)
        self._checkpoint = find_checkpoint(model, revision=revision, marker="config.json")
        self._is_classifier = _is_classifier(self._checkpoint)
        self._max_length = max_length
        self._batch_size = batch_size
        self._dtype = dtype
        self._device = device
        self.identity = (
            f"qwen3 {self._checkpoint.identity} prompt={self._prompt.fingerprint} max_length={max_length} dtype={dtype}"
        )

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n] logits; equal pairs are scored once. Raises ``RerankerError``."""
        if not pairs:
            return np.empty(0, dtype=np.float32)
        distinct = {pair: row for row, pair in enumerate(dict.fromkeys(pairs))}
        logits = self._network.logits(list(distinct))
        return logits[[distinct[pair] for pair in pairs]]

    @cached_property
    def _network(self) -> _Network:
        tokenizer = load_prompt_tokenizer(self._checkpoint, self._prompt, self._max_length, self.identity)
        network = _Network(self._load(), tokenizer, self._batch_size, self.identity, is_classifier=self._is_classifier)
        prove(network.logits, self._reference, self.identity)
        return network

    def _load(self) -> PreTrainedModel:
        with loading(self._checkpoint, "reranker"):
            import torch
            import transformers
            from sentence_transformers.util import get_device_name

            loader = (
                transformers.AutoModelForSequenceClassification
                if self._is_classifier
                else transformers.AutoModelForCausalLM
            )
            loaded: Any = loader.from_pretrained(
                self._checkpoint.location,
                revision=self._checkpoint.revision,
                dtype=getattr(torch, self._dtype),
                trust_remote_code=False,
                **SAFE_WEIGHTS,
            )
            model: PreTrainedModel = loaded.to(self._device or get_device_name()).eval()
        if self._is_classifier and model.config.num_labels != 1:
            raise RerankerError(
                f"{self._checkpoint.identity} has {model.config.num_labels} labels, not 1",
                "use a model that gives one relevance score for a pair",
            )
        return model


class _Network:
    """Loaded weights and their tokenizer."""

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PromptTokenizer,
        batch_size: int,
        identity: str,
        *,
        is_classifier: bool,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._batch_size = batch_size
        self._identity = identity
        self._is_classifier = is_classifier

    def logits(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """float32[n]; which pairs share a batch depends on their lengths and not on their order."""
        import torch

        prompts = self._tokenizer.token_ids(pairs)
        logits = np.empty(len(prompts), dtype=np.float32)
        # Longest first, so that too large a batch fails at once; neighbours of like length waste little on padding.
        order = sorted(range(len(prompts)), key=lambda row: (-len(prompts[row]), prompts[row]))
        try:
            with torch.inference_mode():
                for first in range(0, len(order), self._batch_size):
                    rows = order[first : first + self._batch_size]
                    logits[rows] = self._forward([prompts[row] for row in rows]).cpu().numpy()
        except RuntimeError as error:
            raise RerankerError(
                f"{self._identity} cannot score {len(pairs)} pairs: {error}",
                "lower reranker.batch_size or reranker.max_length, or use reranker.device=cpu",
            ) from error
        if not np.isfinite(logits).all():
            raise RerankerError(
                f"{self._identity} gives infinite or undefined scores", "use reranker.dtype=float32, or another model"
            )
        return logits

    def _forward(self, prompts: list[list[int]]) -> Tensor:
        """float32[n] of one batch."""
        import torch

        longest = max(map(len, prompts))
        device = self._model.device
        padded = [[self._tokenizer.pad] * (longest - len(prompt)) + prompt for prompt in prompts]
        mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
        batch = {
            "input_ids": torch.tensor(padded, device=device),
            "attention_mask": mask,
            # Counted from a prompt's own first token, so that its neighbours' lengths do not change its rounding.
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
            "use_cache": False,
        }
        if self._is_classifier:
            scores: Tensor = self._model(**batch).logits[:, 0].float()
            return scores
        # The last position is all that is asked for: logits of a whole batch would take gigabytes.
        answers: Tensor = self._model(**batch, logits_to_keep=1).logits[:, -1].float()
        return answers[:, self._tokenizer.yes] - answers[:, self._tokenizer.no]


def _is_classifier(checkpoint: Checkpoint) -> bool:
    """Whether the checkpoint is a conversion with one score instead of words. Raises ``RerankerError``."""
    kind = architecture(checkpoint)
    if kind.endswith("ForSequenceClassification"):
        return True
    if kind.endswith("ForCausalLM"):
        return False
    raise RerankerError(
        f"{checkpoint.identity} is no Qwen3 reranker: its architecture is {kind}",
        "use a Qwen3-Reranker checkpoint, or reranker=cross_encoder for other kinds",
    )
