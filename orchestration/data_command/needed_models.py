"""Which model weights a configuration loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillarena.orchestration.assembly import AssembledParts, build_selector, check_options, is_hosted, load_library
from skillarena.orchestration.cells import cache_folder, needs_of, sections
from skillarena.orchestration.settings import Settings, digest
from skillarena.selectors.library import SkillLibrary

LOADED = ("embedder", "reranker", "backbone")
"""Sections whose classes may load weights."""


@dataclass(frozen=True, slots=True)
class NeededModel:
    """A model that something of a configuration loads."""

    part: str
    """The section that names it, one of ``LOADED``."""
    model: str
    """Folder, hub id, or the word for a model out of a package."""
    revision: str | None
    """Branch, tag or commit on the hub; None: its default branch."""
    weights: bool
    """False where a server elsewhere holds the weights, and only the tokenizer is read."""


def needed_models(all_settings: Sequence[Settings]) -> list[NeededModel]:
    """The distinct models of all cells, in order of appearance.

    Raises:
        SkillArenaError: a library cannot be read, or a selector makes no sense.
    """
    libraries: dict[str, SkillLibrary] = {}
    found: dict[NeededModel, None] = {}
    for settings in all_settings:
        key = digest(settings.library)
        if key not in libraries:
            libraries[key] = load_library(settings.library)
        found |= dict.fromkeys(_of_cell(settings, libraries[key]))
    return list(found)


def _of_cell(settings: Settings, library: SkillLibrary) -> Iterator[NeededModel]:
    parts = AssembledParts(sections(settings), library, cache_folder(settings))
    used = {*needs_of(build_selector(settings.selector, parts)), "backbone"}
    if "reranker" in used and not is_hosted(settings.reranker, "reranker"):
        used.add("embedder")
    for part in LOADED:
        section = getattr(settings, part)
        # A revision is what tells a model on the hub from the name that a server elsewhere gives to one.
        if part in used and "model" in section and "revision" in check_options(section, part):
            revision = section.get("revision")
            yield NeededModel(part, str(section["model"]), revision, weights="base_url" not in section)
