"""What a selection method is built from."""

from __future__ import annotations

from typing import Protocol

from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import Embedder, Parser, Reranker
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.llm import CachedLlm


class Parts(Protocol):
    """The library and the shared models; each model is loaded when a method first reads the attribute.

    A selection method is any class whose constructor takes ``parts`` and its own options as keywords::

        class MySelector:
            def __init__(self, parts: Parts, *, top_k: int = 1) -> None: ...
            def open(self, task: Task) -> SelectorSession: ...
    """

    @property
    def library(self) -> SkillLibrary:
        """All skills to choose from."""

    @property
    def embedder(self) -> Embedder:
        """For coarse recall."""

    @property
    def reranker(self) -> Reranker:
        """For relevance logits."""

    @property
    def parser(self) -> Parser:
        """For sub-tasks and states."""

    @property
    def llm(self) -> CachedLlm:
        """For methods that ask a language model."""

    @property
    def indexes(self) -> IndexStore:
        """For what is computed once for a library."""
