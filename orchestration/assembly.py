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
    from skillarena.selectors.interface import Embedder, Parser, Reranker, Selector
    from skillarena.selectors.library import SkillLibrary


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
        raise ConfigError(
            f"{part}._target_: cannot import {path!r} ({error.__cause__ or error})",
            "check the path; a package in this folder is found with PYTHONPATH=. before the command",
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


class AssembledParts:
    """The library and the models of one cell, each built at first use and kept (see ``selectors/parts.py``)."""

    def __init__(self, sections: Mapping[str, Mapping[str, Any]], library: SkillLibrary, cache_dir: Path) -> None:
        self._sections = sections
        self.library = library
        self._cache_dir = cache_dir

    @cached_property
    def embedder(self) -> Embedder:
        """The embedder behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.embedders import CachedEmbedder

        with offline():
            inner = build(self._sections["embedder"], "embedder")
        return CachedEmbedder(inner, DiskCache(self._cache_dir / "embeddings.sqlite"))

    @cached_property
    def reranker(self) -> Reranker:
        """The reranker behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.rerankers import CachedReranker

        section = self._sections["reranker"]
        needs_embedder = "embedder" in check_options(section, "reranker")
        with offline():
            inner = build(section, "reranker", **({"embedder": self.embedder} if needs_embedder else {}))
        return CachedReranker(inner, DiskCache(self._cache_dir / "scores.sqlite"))

    @cached_property
    def parser(self) -> Parser:
        """The parser behind its disk cache."""
        from skillarena.selectors.cache import DiskCache
        from skillarena.selectors.parser_cache import CachedParser

        inner = build(self._sections["parser"], "parser")
        return CachedParser(inner, DiskCache(self._cache_dir / "parses.sqlite"))

    def cost(self) -> SelectionCost:
        """Work done so far by the models that exist (see ``measure.CountedParts``); creates none."""
        return counters(self.__dict__.get("reranker"), self.__dict__.get("parser"))


def load_library(section: Mapping[str, Any]) -> SkillLibrary:
    """The skill library of a ``library`` section. Raises ``LibraryError``."""
    return cast("SkillLibrary", build(section, "library"))


def build_selector(section: Mapping[str, Any], parts: AssembledParts) -> Selector:
    """The selector of a ``selector`` section; loads no model. Raises ``ConfigError``."""
    return cast("Selector", build(section, "selector", parts=parts))
