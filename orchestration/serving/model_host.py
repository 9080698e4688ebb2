"""One process that holds an embedder or a reranker and answers every selection worker, many requests in one batch."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError, ModelHostLost, RerankerError
from skillarena.orchestration.assembly import build
from skillarena.selectors.interface import Embedder, Reranker

Rows = NDArray[np.float32]
Pair = tuple[str, str]

ANSWER_TIMEOUT_S = 3600.0
"""For one request. The first one loads the weights; a large library comes in steps of some hundred texts."""

_MOST_ITEMS = 4096
"""Items merged into one call of the model at most, so that nobody waits for a huge batch of others."""
_LASTING = (ConfigError, RerankerError)
"""Faults that loading a model once more would meet again."""


@dataclass(frozen=True)
class _Request:
    kind: str
    """``query`` or ``document`` for texts, ``pairs`` for a reranker."""
    items: tuple[Any, ...]
    answer: Future[Rows]


@dataclass
class Load:
    """What a host has done so far."""

    requests: int = 0
    """Requests with at least one text or pair."""
    batches: int = 0
    """Calls of the model; fewer than requests where requests were merged."""
    items: int = 0
    """Texts or pairs, equal ones in one batch counted once."""
    seconds: float = 0.0
    """Time the model was at work, loading not included."""


class Batcher:
    """Merges requests that wait at the same time; a thread of its own calls the model, which need not be thread-safe.

    Args:
        run: gives one row for each distinct item of a kind; the model sorts them by length itself.
        load: called in the same thread before every ``run``; must return at once when there is nothing left to load.
    """

    def __init__(self, run: Callable[[str, list[Any]], Rows], load: Callable[[], None] = lambda: None) -> None:
        self._run = run
        self._load = load
        self._waiting: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        self.done = Load()
        threading.Thread(target=self._serve, name="model", daemon=True).start()

    def ask(self, kind: str, items: Sequence[Any]) -> Rows:
        """Rows in the order of ``items``; raises what the model raises for these items, or ``ModelHostLost``."""
        request = _Request(kind, tuple(items), Future())
        self._waiting.put(request)
        try:
            return request.answer.result(ANSWER_TIMEOUT_S)
        except TimeoutError:
            if request.answer.done():  # the model's own
                raise
            raise ModelHostLost(f"the model gave no answer in {ANSWER_TIMEOUT_S:g} s") from None

    def _serve(self) -> None:
        while True:
            for kind, requests in _by_kind(self._take()).items():
                self._answer(kind, requests)

    def _take(self) -> list[_Request]:
        """Everything that waits, at least one request."""
        taken = [self._waiting.get()]
        while sum(len(request.items) for request in taken) < _MOST_ITEMS:
            try:
                taken.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        return taken

    def _answer(self, kind: str, requests: list[_Request]) -> None:
        """Answer all together or, where that fails, each alone, so that only who asked for the fault gets it."""
        try:
            self._load()
        except Exception as error:  # everybody's
            for request in requests:
                request.answer.set_exception(error)
            return
        try:
            rows = self._rows(kind, [item for request in requests for item in request.items])
        except Exception as error:  # goes to whoever asked
            if len(requests) == 1:
                requests[0].answer.set_exception(error)
                return
            for request in requests:
                self._answer(kind, [request])
            return
        self.done.requests += sum(bool(request.items) for request in requests)
        ends = np.cumsum([len(request.items) for request in requests])[:-1]
        for request, own in zip(requests, np.split(rows, ends), strict=True):
            request.answer.set_result(own)

    def _rows(self, kind: str, items: list[Any]) -> Rows:
        distinct = {item: row for row, item in enumerate(dict.fromkeys(items))}
        started = time.perf_counter()
        rows = self._run(kind, list(distinct))
        if len(rows) != len(distinct):
            raise RerankerError(
                f"the model gave {len(rows)} rows for {len(distinct)} {kind}", "mend the class; it must give one each"
            )
        if not items:
            return rows
        self.done.batches += 1
        self.done.items += len(distinct)
        self.done.seconds += time.perf_counter() - started
        return rows[[distinct[item] for item in items]]


def _by_kind(requests: list[_Request]) -> dict[str, list[_Request]]:
    kinds: dict[str, list[_Request]] = {}
    for request in requests:
        kinds.setdefault(request.kind, []).append(request)
    return kinds


class ModelHost:
    """Builds one model from its configuration section and serves it; calls come from many threads.

    Args:
        part: ``embedder`` or ``reranker``.
        section: plain configuration with ``_target_``.
        secrets: environment variables that the section names.

    Faults of the model, a wrong section included, are raised by the calls, typed as the model raises them.
    """

    def __init__(
        self, part: Literal["embedder", "reranker"], section: dict[str, Any], secrets: Mapping[str, str] | None = None
    ) -> None:
        os.environ.update(secrets or {})
        self._part = part
        self._section = section
        self._lock = threading.Lock()
        self._model: Any = None
        self._loaded = False
        self._fault: Exception | None = None
        self._batcher = Batcher(self._run, self._load)

    def identity(self) -> str:
        """The model's identity; builds the model but does not load its weights."""
        return str(self._built().identity)

    def ready(self) -> None:
        """Returns when the weights are loaded and one item has gone through them, so that the next one is not late."""
        self._batcher.ask("pairs" if self._part == "reranker" else "query", ())

    def score(self, pairs: Sequence[Pair]) -> Rows:
        """float32[n] raw logits, as ``Reranker.score``."""
        return self._batcher.ask("pairs", [(query, document) for query, document in pairs])

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Rows:
        """float32[n, d] unit vectors, as ``Embedder.encode``."""
        return self._batcher.ask(kind, texts)

    def load(self) -> Load:
        """Work done so far."""
        return self._batcher.done

    def _built(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = build(self._section, self._part)
            return self._model

    def _load(self) -> None:
        """Load the weights by using them once. A lasting fault is kept, as everybody who waits would meet it again."""
        if self._loaded:
            return
        if self._fault:
            raise self._fault
        try:
            if self._part == "reranker":
                self._run("pairs", [("query", "document")])
            else:
                self._run("query", ["text"])
        except _LASTING as error:
            self._fault = error
            raise
        self._loaded = True

    def _run(self, kind: str, items: list[Any]) -> Rows:
        model: Reranker | Embedder = self._built()
        if kind == "pairs":
            if not isinstance(model, Reranker):
                raise RerankerError(f"{self._part} {type(model).__name__} scores no pairs", "choose a reranker")
            return model.score(items)
        if not isinstance(model, Embedder):
            raise RerankerError(f"{self._part} {type(model).__name__} encodes no texts", "choose an embedder")
        return model.encode(items, "query" if kind == "query" else "document")
