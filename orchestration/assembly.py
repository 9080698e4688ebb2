"""From configuration sections to living objects."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from skillarena.conf.errors import ConfigError, LibraryError, SkillArenaError, nearest
from skillarena.selectors.interface import SelectionCost
from skillarena.selectors.measure import counters, offline

if TYPE_CHECKING:
    from ray.actor import ActorHandle

    from skillarena.orchestration.backbones.gate import Gates
    from skillarena.selectors.index_store import IndexStore
    from skillarena.selectors.interface import Embedder, Parser, Reranker, Selector
    from skillarena.selectors.library import SkillLibrary
    from skillarena.selectors.llm import CachedLlm


def target(section: Mapping[str, Any], part: str) -> Any:
    """The class (or factory) a section names.

    Raises:
        ConfigError: the class cannot be imported.
    """
    from hydra.utils import get_object

    logging.getLogger("hydra.utils").disabled = True  # it prints what the error below says
    path = str(section["_target_"])
    try:
        return get_object(path)
    except Exception as error:  # Hydra raises anything that importing the user's module may raise
        cause = error.__cause__ or error
        broken = isinstance(cause, SyntaxError)
        raise ConfigError(
            f"{part}._target_: cannot import {path!r} ({cause})",
            "mend that file"
            if broken
            else "check the path; a package in this folder is found with PYTHONPATH=. before the command",
        ) from error


def check_options(section: Mapping[str, Any], part: str) -> Mapping[str, inspect.Parameter]:
    """Check, without building anything, that a section's keys are parameters of its class; returns the parameters.

    Raises:
        ConfigError: the class cannot be imported, or a key is no parameter of it.
    """
    parameters = inspect.signature(target(section, part)).parameters
    open_ended = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    for key in section:
        if key not in ("name", "_target_", *parameters) and not open_ended:
            raise ConfigError(
                f"{part}.{key}: {section['_target_']} takes no such option{nearest(key, list(parameters))}",
                f"known options: {', '.join(name for name in parameters if name != 'parts')}",
            )
    return parameters


def build(section: Mapping[str, Any], part: str, **injected: Any) -> Any:
    """Build the object of a section; ``name`` stays behind, nested sections with ``_target_`` are built first.

    Args:
        section: plain configuration with ``_target_``.
        part: the section's name, for messages.
        injected: objects to pass if, and only if, the constructor has a parameter of that name and the section
            leaves it out or empty.

    Raises:
        ConfigError: a key is no parameter of the class, or the class refuses a value's type.
        SkillArenaError: whatever typed error the constructor raises.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    parameters = check_options(section, part)
    options = {key: value for key, value in section.items() if key not in ("name", "_target_")}
    extra = {key: value for key, value in injected.items() if key in parameters and options.get(key) is None}
    kept = {key: value for key, value in options.items() if key not in extra}
    try:
        return instantiate({"_target_": section["_target_"], **kept}, _convert_="all", **extra)
    except InstantiationException as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, SkillArenaError):
            cause = cause.__cause__
        if isinstance(cause, ConfigError | LibraryError) and not cause.message.startswith(part):
            raise type(cause)(f"{part}: {cause.message}", cause.fix) from None
        if cause is not None:
            raise cause from None
        raise ConfigError(f"{part}: {error}", f"check the values under `{part}`") from error


def is_hosted(section: Mapping[str, Any], part: str) -> bool:
    """Whether, in a sweep, a section's model gets a process of its own.

    One that is built from an embedder (the similarity reranker) is light and stays where it is used.
    """
    return "embedder" not in inspect.signature(target(section, part)).parameters


class AssembledParts:
    """The library and the models of one cell, each built at first use and kept (see ``selectors/parts.py``).

    Args:
        sections: embedder, reranker, parser and llm.
        library: all skills.
        cache_dir: where vectors, scores and parses are kept between runs.
        hosts: processes that hold the embedder or the reranker, by section; a model without one is loaded here.
        gates: limits of this process's calls to a parser's language model; None: the model limits itself.
    """

    def __init__(
        self,
        sections: Mapping[str, Mapping[str, Any]],
        library: SkillLibrary,
        cache_dir: Path,
        hosts: Mapping[str, ActorHandle[Any]] | None = None,
        gates: Gates | None = None,
    ) -> None:
        self._sections = sections
        self.library = library
        self._cache_dir = cache_dir
        self._hosts = hosts or {}
        self._gates = gates

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.embedders import CachedEmbedder

        return CachedEmbedder(self._embedder(), DiskCache(self._cache_dir / "embeddings.sqlite"))

    @cached_property
    def reranker(self) -> Reranker:
        """The reranker behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.rerankers import CachedReranker

        return CachedReranker(self._reranker(), DiskCache(self._cache_dir / "scores.sqlite"))

    @cached_property
    def parser(self) -> Parser:
        """The parser behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.parser_cache import CachedParser

        return CachedParser(self._parser(), DiskCache(self._cache_dir / "parses.sqlite"))

    @cached_property
    def llm(self) -> CachedLlm:
        """The language model for selectors behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.llm import CachedLlm

        section = self._sections["llm"]
        gate = self._gates.of(section) if self._gates is not None else None
        return CachedLlm(build(section, "llm", gate=gate), DiskCache(self._cache_dir / "answers.sqlite"))

    @cached_property
    def indexes(self) -> IndexStore:
        """What is computed once for a library."""
        from skillarena.selectors.index_store import IndexStore

        return IndexStore(self._cache_dir / "indexes")

    def _embedder(self) -> Embedder:
        from skillarena.orchestration.serving.remote_models import RemoteEmbedder

        if "embedder" in self._hosts:
            return RemoteEmbedder(self._hosts["embedder"], "embedder")
        with offline():
            return cast("Embedder", build(self._sections["embedder"], "embedder"))

    def _reranker(self) -> Reranker:
        from skillarena.orchestration.serving.remote_models import RemoteReranker

        section = self._sections["reranker"]
        if "reranker" in self._hosts:
            return RemoteReranker(self._hosts["reranker"], "reranker")
        injected = {} if is_hosted(section, "reranker") else {"embedder": self.embedder}
        with offline():
            return cast("Reranker", build(section, "reranker", **injected))

    def _parser(self) -> Parser:
        section = dict(self._sections["parser"])
        model = section.get("model")
        if self._gates is not None and isinstance(model, Mapping) and "_target_" in model:
            gated = build(model, "parser.model", gate=self._gates.of(model))
            return cast("Parser", build({**section, "model": None}, "parser", model=gated))
        return cast("Parser", build(section, "parser"))

    def cost(self) -> SelectionCost:
        """Work done so far by the models that exist (see ``measure.CountedParts``); creates none."""
        return counters(*(self.__dict__.get(part) for part in ("reranker", "parser", "llm")))


def load_library(section: Mapping[str, Any]) -> SkillLibrary:
    """The skill library of a ``library`` section. Raises ``LibraryError``."""
    return cast("SkillLibrary", build(section, "library"))


def build_selector(section: Mapping[str, Any], parts: AssembledParts) -> Selector:
    """The selector of a ``selector`` section; loads no model. Raises ``ConfigError``."""
    return cast("Selector", build(section, "selector", parts=parts))
