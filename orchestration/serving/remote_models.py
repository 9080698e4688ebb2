"""An embedder or a reranker in another process, seen from a selection worker.

``SelectionCost.seconds`` of a selection that uses one includes the way there and back and the wait for batches of other
selections, as a user would wait for them; it leaves out the start of the process and the loading of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import ModelHostLost
from skillarena.orchestration.serving.model_host import ANSWER_TIMEOUT_S
from skillarena.selectors.measure import offline

if TYPE_CHECKING:
    from ray.actor import ActorHandle

Rows = NDArray[np.float32]

_TIMEOUT_S = ANSWER_TIMEOUT_S + 60.0
"""For one call: the model's own time, and what the way takes."""
_RETRY = "the selection is tried again; if it fails for good, look for the cause in Ray's logs (lack of memory?)"


class _Remote:
    """Common to both: the actor, and how its faults arrive.

    Args:
        host: actor of a ``ModelHost``.
        part: configuration section, for messages.

    Waits for the process to start, which is nobody's selection time. Raises what the model raises where its section is
    wrong, or ``ModelHostLost``.
    """

    def __init__(self, host: ActorHandle[Any], part: str) -> None:
        self._host = host
        self._part = part
        self._ready = False
        with offline():
            self.identity = str(self._call("identity"))

    def _ask(self, method: str, *arguments: Any) -> Rows:
        """The rows that the model gives. Raises what the model raises, or ``ModelHostLost``."""
        try:
            if not self._ready:
                with offline():
                    self._call("ready")
                self._ready = True
            rows: Rows = self._call(method, *arguments)
        except ModelHostLost:
            self._ready = False  # a process that takes its place begins with loading, too
            raise
        return rows

    def _call(self, method: str, *arguments: Any) -> Any:
        import ray
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError

        try:
            return ray.get(getattr(self._host, method).remote(*arguments), timeout=_TIMEOUT_S)
        except RayTaskError as error:
            raise error.cause from None  # typed by the model
        except GetTimeoutError:
            raise ModelHostLost(f"the {self._part} process gave no answer in {_TIMEOUT_S:g} s", _RETRY) from None
        except RayError as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelHostLost(f"the {self._part} process died: {reason}", _RETRY) from None


class RemoteReranker(_Remote):
    """A ``Reranker`` over the process that holds it."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> Rows:
        """float32[n] raw logits. Raises ``RerankerError``, or ``ModelHostLost``."""
        return self._ask("score", list(pairs))


class RemoteEmbedder(_Remote):
    """An ``Embedder`` over the process that holds it."""

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Rows:
        """float32[n, d] unit vectors. Raises ``RerankerError``, or ``ModelHostLost``."""
        return self._ask("encode", list(texts), kind)
