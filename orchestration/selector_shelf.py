"""Selectors of one worker process, built at first use and kept for every later cell."""

from __future__ import annotations

from pathlib import Path

from skillarena.conf.errors import LibraryError
from skillarena.envs.cache_dir import cache_root
from skillarena.orchestration.assembly import AssembledParts, build_selector, load_library
from skillarena.orchestration.backbones.gate import Gates
from skillarena.orchestration.jobs import Method
from skillarena.orchestration.settings import digest
from skillarena.selectors.interface import Selector
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import LearningSelector
from skillarena.selectors.measure import offline

_MEMORIES_KEPT = 4  # of each method; a sweep moves on from one to the next


class SelectorShelf:
    """Hands out the selector of a method, with its memory.

    Args:
        cache_dir: where vectors, scores, parses, answers and indexes are kept; None: the user's cache folder.
        gates: limits of this process's calls to language models.
    """

    def __init__(self, cache_dir: str | None, gates: Gates) -> None:
        self._cache_dir = Path(cache_dir).absolute() if cache_dir else cache_root()
        self._gates = gates
        self._libraries: dict[str, SkillLibrary] = {}
        self._parts: dict[str, AssembledParts] = {}
        self._selectors: dict[str, Selector] = {}
        self._with_memory: dict[str, dict[bytes | None, LearningSelector]] = {}

    def take(self, method: Method) -> tuple[AssembledParts, Selector]:
        """The selector and its parts.

        Raises:
            LibraryError: the library is not the one that the driver read.
            SkillArenaError: whatever building them raises.
        """
        models = {part: section for part, section in method.sections.items() if part != "selector"}
        # Selectors with the same sections may need different models, and only those needed have a process.
        models_key, key = digest([models, sorted(method.hosts)]), digest(method.sections)
        if models_key not in self._parts:
            self._parts[models_key] = AssembledParts(
                models, self._library(method), self._cache_dir, method.hosts, self._gates
            )
        if key not in self._selectors:
            self._selectors[key] = build_selector(method.sections["selector"], self._parts[models_key])
        selector = self._selectors[key]
        if isinstance(selector, LearningSelector):
            selector = self._remembering(key, selector, method.memory)
        return self._parts[models_key], selector

    def _remembering(self, key: str, selector: LearningSelector, memory: bytes | None) -> LearningSelector:
        kept = self._with_memory.setdefault(key, {})
        if memory not in kept:
            with offline():
                kept[memory] = selector.with_memory(selector.initial_memory() if memory is None else memory)
            if len(kept) > _MEMORIES_KEPT:
                del kept[next(iter(kept))]
        return kept[memory]

    def _library(self, method: Method) -> SkillLibrary:
        key = digest(method.sections["library"])
        if key not in self._libraries:
            self._libraries[key] = load_library(method.sections["library"])
        if self._libraries[key].fingerprint != method.fingerprint:
            raise LibraryError("the skill library changed while the run was going on", "run the command again")
        return self._libraries[key]
