"""What a plan is made from: cells, finished episodes and stored selections, looked at without starting anything."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

from skillarena.conf.errors import BackboneError, DataError, RerankerError
from skillarena.envs.interface import EndReason, Task
from skillarena.orchestration.api_keys import key_variables
from skillarena.orchestration.assembly import AssembledParts, build, build_selector, load_library
from skillarena.orchestration.backbones.tokens import estimate_tokens
from skillarena.orchestration.cells import Cell, Preflight, cache_folder, indexing_of, needs_of, sections
from skillarena.orchestration.ledger import EpisodeRow, read_rows
from skillarena.orchestration.plan_estimate import SKILLS_SELECTED, Kind, PastEpisode, Use
from skillarena.orchestration.plan_memory import is_here
from skillarena.orchestration.report.archive import read_cell_config
from skillarena.orchestration.selection_store import SelectionStore
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.orchestration.settings import Settings, digest
from skillarena.selectors.interface import Indexing, SelectedSkill
from skillarena.selectors.library import SkillLibrary

log = logging.getLogger(__name__)

_NOT_HERE = "not on this machine"


@dataclass(frozen=True, slots=True)
class Server:
    """What a backbone's own model servers are."""

    spec: ServerSpec
    replicas: int


@dataclass(frozen=True)
class CellFacts:
    """What is known about one cell before it runs."""

    cell: Cell
    kind: Kind
    finished: int
    """Episodes that its ledger holds already."""
    open: tuple[Task, ...]
    """Tasks whose episodes are left."""
    needs: tuple[str, ...]
    """Models its selector uses, out of ``cells.MODELS``."""
    selections: frozenset[str]
    """Keys of the selections of all its tasks."""
    to_compute: dict[str, Task]
    """Keys, with their tasks, of the selections that open episodes need and that are not stored."""
    skill_tokens: float
    """Expected tokens of the skills in one prompt."""
    skill_source: str
    """Where that number comes from, as a clause."""
    server: Server | None
    """The servers that its backbone needs; None for other backbones."""
    library_size: int
    document_tokens: float
    """Mean tokens of a skill's text."""
    indexing: Indexing | None
    """LLM calls that the first use of the library takes."""

    @property
    def identified(self) -> bool:
        """All its models are here, so that ledger and stored selections can be found."""
        return not any(self.cell.identity[part]["identity"] == _NOT_HERE for part in self.needs)


class Survey(Preflight):
    """A preflight that asks no server, and notes what is missing where ``run`` would stop."""

    def __init__(self) -> None:
        super().__init__()
        self.missing: dict[str, None] = {}
        """Sentences, in order of discovery."""

    def past_episodes(self, cells: Sequence[Cell]) -> list[PastEpisode]:
        """Every scored episode below the output folder of ``cells``, whatever cell it belongs to."""
        libraries = {digest(cell.settings.library): cell.settings for cell in cells}
        texts = {name: size for settings in libraries.values() for name, size in self._texts(settings).items()}
        found = []
        for path in sorted((Path(cells[0].settings.output_dir) / "cells").glob("*/config.json")):
            try:
                about = read_cell_config(path.parent)["cell"]
            except DataError as error:  # another cell's folder: no reason to refuse this plan
                log.warning("%s; left out", error.message)
                continue
            kind = kind_of(about["axes"], about["simulated"])
            rows = read_rows(path.parent).rows
            found += [_past(row, kind, texts) for row in rows if row.outcome != EndReason.INFRA_ERROR]
        return found

    def facts(self, cell: Cell) -> CellFacts:
        """Look at a cell's ledger and at the selections stored for it."""
        settings, cache_dir = cell.settings, cache_folder(cell.settings)
        library, document_tokens = self._library(settings), fmean(self._texts(settings).values())
        selector = build_selector(settings.selector, AssembledParts(sections(settings), library, cache_dir))
        needs = needs_of(selector)
        self._note_keys(settings, needs)
        done = {row.episode_id for row in read_rows(cell.directory).rows if row.outcome != EndReason.INFRA_ERROR}
        left = tuple(task for task in cell.tasks if cell.episode_id(task) not in done)
        keys = {cell.selection_key(task): task for task in cell.tasks}
        stored = _stored(cache_dir, keys)
        kind = kind_of(cell.axes, cell.simulated)
        if stored:
            tokens, source = fmean(_tokens(skills) for skills in stored.values()), "stored selections"
        elif not needs:
            chosen = selector.open(cell.tasks[0]).selection.skills
            tokens, source = float(_tokens(chosen)), "the first task's selection"
        else:
            tokens, source = _assumed_skills(settings, document_tokens)
        return CellFacts(
            cell=cell,
            kind=kind,
            finished=len(cell.tasks) - len(left),
            open=left,
            needs=needs,
            selections=frozenset(keys),
            to_compute={key: task for task in left if (key := cell.selection_key(task)) not in stored},
            skill_tokens=tokens,
            skill_source=source,
            server=self._server(settings.backbone),
            library_size=len(library),
            document_tokens=document_tokens,
            indexing=indexing_of(selector),
        )

    def _library(self, settings: Settings) -> SkillLibrary:
        return self._once("library", settings.library, lambda: load_library(settings.library))

    def _texts(self, settings: Settings) -> dict[str, int]:
        """Tokens of each skill's text, by id."""
        return self._once(
            "texts",
            settings.library,
            lambda: {skill.id: estimate_tokens(skill.text) for skill in self._library(settings).skills},
        )

    def _model_identity(self, parts: AssembledParts, part: str) -> str:
        try:
            return str(getattr(parts, part).identity)
        except (BackboneError, RerankerError) as error:
            self.missing.setdefault(f"{part}: {error.message}")
            return _NOT_HERE

    def _simulated(self, settings: Settings) -> bool:
        backbone = build(settings.backbone, "backbone")
        try:
            return bool(backbone.simulated)
        finally:
            backbone.close()

    def _weights(self, settings: Settings) -> str:
        try:
            return super()._weights(settings)
        except BackboneError as error:
            self.missing.setdefault(f"backbone: {error.message}")
            return _NOT_HERE

    def _server(self, backbone: dict[str, Any]) -> Server | None:
        server = server_of(backbone)
        if server is None:
            return None
        if find_spec("vllm") is None:
            self.missing.setdefault("vLLM is not installed here")
        if not is_here(server.spec.model):
            self.missing.setdefault(f"the model {server.spec.model} is not on this machine yet")
        return server

    def _note_keys(self, settings: Settings, needs: Iterable[str]) -> None:
        for name in keys_of(settings, needs):
            if not os.environ.get(name, "").strip():
                self.missing.setdefault(f"the environment variable {name} is not set")


def keys_of(settings: Settings, needs: Iterable[str]) -> list[str]:
    """Environment variables with the API keys that a cell uses.

    Args:
        settings: of the cell.
        needs: models its selector uses, out of ``cells.MODELS``.
    """
    return key_variables([settings.backbone, *(getattr(settings, part) for part in needs)])


def server_of(section: dict[str, Any]) -> Server | None:
    """The servers that a backbone starts; None for other backbones. Raises ``SkillArenaError``."""
    backbone = build(section, "backbone")
    try:
        return Server(backbone.server_spec(), backbone.replicas) if hasattr(backbone, "server_spec") else None
    finally:
        backbone.close()


def kind_of(axes: dict[str, str], simulated: bool) -> Kind:
    """What a cell's episodes are compared by, from its axes."""
    options = "".join(f" {key}={axes[key]}" for key in ("k", "top_k") if axes.get(key))
    return Kind(axes["benchmark"], axes["selector"] + options, axes["backbone"], simulated)


def _past(row: EpisodeRow, kind: Kind, texts: dict[str, int]) -> PastEpisode:
    known = all(skill in texts for skill in row.skills)
    return PastEpisode(
        kind=kind,
        use=Use(row.llm_turns, row.prompt_tokens, row.cached_tokens, row.completion_tokens),
        skill_tokens=float(sum(texts[skill] for skill in row.skills)) if known else None,
        parsing=Use(1, row.selector_prompt_tokens, 0, row.selector_completion_tokens),
    )


def _stored(cache_dir: Path, keys: Iterable[str]) -> dict[str, Sequence[SelectedSkill]]:
    if not (cache_dir / "selections.sqlite").exists():  # opening the store would make it
        return {}
    store = SelectionStore(cache_dir)
    found = {key: store.get(key) for key in keys}
    return {key: selection.skills for key, selection in found.items() if selection is not None}


def _assumed_skills(settings: Settings, document_tokens: float) -> tuple[float, str]:
    count = settings.selector.get("top_k")
    words = f"top_k={count} skills" if count else f"{SKILLS_SELECTED} skills, as published for an adaptive selector,"
    return (count or SKILLS_SELECTED) * document_tokens, f"{words} of the library's mean length"


def _tokens(skills: Sequence[SelectedSkill]) -> int:
    return sum(estimate_tokens(skill.text) for skill in skills)
