"""A reranker proves on pairs with known answers that it scores as it should, before any of its scores is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from skillarena.conf.errors import ConfigError, RerankerError, nearest
from skillarena.conf.user_path import user_path
from skillarena.selectors.measure import offline

Pair = tuple[str, str]
Fault = tuple[str, str]
"""What is wrong and its likely cause; what to do about it."""

_SHIPPED = Path(__file__).with_name("references")
_ONE_SIGMOID = (
    "probabilities come back where raw logits are due: something applied a sigmoid",
    "switch the activation off: use_activation=false on a vLLM server, Identity in sentence-transformers",
)
_TWO_SIGMOIDS = (
    "the scores went through a sigmoid twice, so they all lie close together",
    "the model's configuration and its server both squash scores; switch both activations off",
)
_SWAPPED = (
    "the order is upside down, as with 'yes' and 'no' swapped",
    'check classifier_from_token=["no", "yes"] where the model is converted or served',
)
_WRONG_PROMPT_FIX = "check reranker.instruction and reranker.separator against the model's card, and reranker.model"


class ReferencePair(BaseModel):
    """A pair whose answer is known."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    document: str
    relevant: bool
    logit: float | None = None
    """The right score; None where only the order is known."""


class Reference(BaseModel):
    """Known pairs of one reranker; a JSON file holds the same keys.

    Logits are given for all pairs or for none. Without them, every relevant document must beat every irrelevant one
    of the same query by ``margin``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str
    """Where the answers are from."""
    pairs: tuple[ReferencePair, ...] = Field(min_length=4)
    margin: float = Field(1.0, gt=0)
    """In logits."""
    tolerance: float | None = Field(None, gt=0)
    """Largest difference from a given logit; it covers number formats and hardware."""

    @model_validator(mode="after")
    def _says_something(self) -> Reference:
        known = [pair.logit is not None for pair in self.pairs]
        if any(known) != all(known) or any(known) != (self.tolerance is not None):
            raise ValueError("give a logit for every pair and a tolerance, or neither")
        if not any(known) and not all(relevant and irrelevant for relevant, irrelevant in self._sides()):
            raise ValueError("without logits, every query needs relevant and irrelevant documents")
        return self

    def fault(self, logits: NDArray[np.float32]) -> Fault | None:
        """What is wrong with a reranker that gives these scores; None when all is well.

        Args:
            logits: float32[n], one for each pair.
        """
        if not np.isfinite(logits).all():
            return "some scores are infinite or undefined", "use reranker.dtype=float32, or another model"
        return self._inexact(logits) if self.tolerance is not None else self._disordered(logits)

    def _inexact(self, logits: NDArray[np.float32]) -> Fault | None:
        known = np.array([pair.logit for pair in self.pairs], dtype=np.float64)
        worst = float(np.abs(logits - known).max())
        if worst <= float(self.tolerance or 0):
            return None
        probabilities = _sigmoid(known)
        for expected, fault in ((probabilities, _ONE_SIGMOID), (_sigmoid(probabilities), _TWO_SIGMOIDS)):
            if np.allclose(logits, expected, atol=0.01):
                return fault
        if np.allclose(logits, -known, atol=self.tolerance or 0):
            return _SWAPPED
        return f"scores are up to {worst:.3g} logits off: another prompt, other weights", _WRONG_PROMPT_FIX

    def _disordered(self, logits: NDArray[np.float32]) -> Fault | None:
        if logits.min() >= 0.5 and logits.max() <= 0.7311:  # sigmoid of 0 and of 1
            return _TWO_SIGMOIDS
        if logits.min() >= 0 and logits.max() <= 1:
            return _ONE_SIGMOID
        sides = [(logits[relevant], logits[irrelevant]) for relevant, irrelevant in self._sides()]
        if all(relevant.min() >= irrelevant.max() + self.margin for relevant, irrelevant in sides):
            return None
        if all(relevant.max() + self.margin <= irrelevant.min() for relevant, irrelevant in sides):
            return _SWAPPED
        return "irrelevant documents beat relevant ones: another prompt, or no reranker", _WRONG_PROMPT_FIX

    def _sides(self) -> list[tuple[list[int], list[int]]]:
        """For each query, the rows of its relevant and of its irrelevant documents."""
        sides: dict[str, tuple[list[int], list[int]]] = {}
        for row, pair in enumerate(self.pairs):
            sides.setdefault(pair.query, ([], []))[0 if pair.relevant else 1].append(row)
        return list(sides.values())


def load_reference(reference: str) -> Reference:
    """Known pairs from a file.

    Args:
        reference: a file, or the name of one that is shipped (``qwen3_reranker``).

    Raises:
        ConfigError: there is no such file, or it is no reference.
    """
    names = {path.stem: path for path in _SHIPPED.glob("*.json")}
    path = names.get(reference) or user_path(reference)
    try:
        return Reference.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"reranker.reference: there is no file {reference!r}{nearest(reference, list(names))}",
            f"give a JSON file of known pairs, or one of: {', '.join(sorted(names))}",
        ) from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}".strip() for e in error.errors())
        raise ConfigError(f"reranker.reference: {path} is no reference: {problems}", "correct the file") from error


def prove(score: Callable[[Sequence[Pair]], NDArray[np.float32]], reference: Reference, identity: str) -> None:
    """Let a reranker score the known pairs, on nobody's clock.

    Args:
        score: the reranker's scores, float32[n] for n pairs.
        reference: known pairs.
        identity: of the reranker, for messages.

    Raises:
        RerankerError: it scores wrongly; or whatever ``score`` raises.
    """
    with offline():
        fault = reference.fault(score([(pair.query, pair.document) for pair in reference.pairs]))
    if fault:
        what, fix = fault
        raise RerankerError(f"{identity} fails on pairs with known answers: {what}", fix)


def _sigmoid(values: NDArray[np.float64]) -> NDArray[np.float64]:
    squashed: NDArray[np.float64] = 1 / (1 + np.exp(-values))
    return squashed
