"""Preflight: from settings to cells that are known to be runnable, before anything starts or is written."""

from __future__ import annotations

import hashlib
import inspect
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from skillarena.conf.errors import ConfigError, DataError, SkillArenaError
from skillarena.envs.cache_dir import cache_root
from skillarena.envs.interface import Task
from skillarena.orchestration.assembly import AssembledParts, build, build_selector, check_options, load_library
from skillarena.orchestration.pricing import check_priced
from skillarena.orchestration.selection_store import FORMAT
from skillarena.orchestration.settings import PARTS, Facts, Settings, digest, label
from skillarena.selectors.interface import Indexing, Selector
from skillarena.selectors.live import LearningSelector, LiveSelector

T = TypeVar("T")

log = logging.getLogger(__name__)

_OWN = "skillarena.selectors."
_DIGITS = 8
_LONGEST_NAME = 150  # of a folder, in characters
_SIZES = ("k", "top_k")  # options of selectors that tell cells apart in their names

MODELS = ("embedder", "reranker", "parser", "llm")
"""Parts that a selector may need (``Selector.needs``)."""


@dataclass(frozen=True)
class Cell:
    """One runnable cell: plain data only."""

    id: str
    """Digest of everything a result can depend on."""
    name: str
    """Readable label, for example ``alfworld/valid_seen skillreranker k=30 simulated seed=0``."""
    directory: Path
    settings: Settings
    identity: dict[str, Any]
    tasks: tuple[Task, ...]
    simulated: bool
    """No language model is behind the backbone, or behind the selector that asks one."""
    left_out: tuple[str, ...] = ()
    """Documents of the library that could not be used, with reasons."""
    live: bool = False
    """The selector takes part in episodes."""
    batch: int | None = None
    """Tasks between two updates of the selector's memory; None for one that does not learn."""
    library_size: int | None = None
    """Skills in the library; None where nobody counted."""

    @property
    def axes(self) -> dict[str, str]:
        """What tables group by."""
        return {
            "benchmark": label(self.settings.benchmark),
            "split": str(self.settings.benchmark.get("split", "")),
            "selector": label(self.settings.selector),
            "backbone": label(self.settings.backbone),
            **{key: _shown(self.settings.selector.get(key)) for key in _SIZES},
            "reranker": label(self.settings.reranker),
            "parser": label(self.settings.parser),
            "library": label(self.settings.library),
            "seed": str(self.settings.seed),
        }

    def episode_id(self, task: Task) -> str:
        """Digest of cell, task and seed; every attempt of an episode shares it."""
        return hashlib.sha256(f"{self.id}\n{task.id}\n{self.settings.seed}".encode()).hexdigest()

    def selection_key(self, task: Task, memory: bytes | None = None) -> str:
        """Digest of what a selection depends on: never the backbone, the agent or the seed.

        Args:
            task: what to select for.
            memory: what a selector that learns knows by then.
        """
        depends = ("library", *MODELS, "selector")
        parts = {part: self.identity[part] for part in depends if part in self.identity}
        about = {"task": task.id, "goal": task.goal, "benchmark": task.benchmark, "format": FORMAT}
        # A method that knows the task's type may use it.
        about["task_type"] = task.task_type
        known = {"memory": hashlib.sha256(memory).hexdigest()} if memory is not None else {}
        return digest({**parts, **about, **known})


def needs_of(selector: Selector) -> tuple[str, ...]:
    """Models a selector reads from its parts (see ``Selector``)."""
    return tuple(getattr(selector, "needs", ("embedder", "reranker", "parser")))


class Preflight:
    """Checks cells; what several cells share (library, tasks, backbone) is read and checked once."""

    def __init__(self) -> None:
        self._seen: dict[str, Any] = {}

    def cell(self, settings: Settings) -> Cell:
        """Check one cell completely.

        Raises:
            SkillArenaError: typed by what is wrong: configuration, data, library, environment or backbone.
        """
        cache_dir = cache_folder(settings)
        library = self._once("library", settings.library, lambda: load_library(settings.library))
        parts = AssembledParts(sections(settings), library, cache_dir)
        for part in MODELS:
            check_options(getattr(settings, part), part)
        selector = build_selector(settings.selector, parts)
        split, tasks = self._once("tasks", settings.benchmark, lambda: _list_tasks(settings, cache_dir))
        needed = {part: getattr(settings, part) for part in needs_of(selector)}
        if settings.run.max_cost is not None:
            check_priced({**needed, "backbone": settings.backbone})
        models = self._once("models", needed, lambda: {part: self._model_identity(parts, part) for part in needed})
        simulated = self._once("backbone", settings.backbone, lambda: self._simulated(settings))
        simulated |= "llm" in needed and parts.llm.simulated
        if "llm" in needed and parts.llm.simulated and indexing_of(selector) is not None:
            raise ConfigError(
                f"{label(settings.selector)} asks a language model about every skill; the simulated one can only rank",
                "choose a real one, for example llm=deepseek_v4_flash, or options of the selector that ask none",
            )
        weights = self._once("weights", settings.backbone, lambda: self._weights(settings))
        about = {"selector": settings.selector, "benchmark": settings.benchmark}
        self._once("allowed", about, lambda: _check_tasks(selector, tasks))
        about = {"selector": settings.selector, "library": settings.library}
        self._once("indexing", about, lambda: _announce_indexing(selector, settings))
        ids = digest(sorted(task.id for task in tasks))
        content = str(getattr(selector, "identity", ""))
        identity = settings.identity(Facts(library.fingerprint, ids, models, weights, _code_digest(selector), content))
        cell_id = digest(identity)
        name = _name(settings, split, content if settings.selector.get("memory") else "")
        folder = Path(settings.output_dir) / "cells" / f"{folder_name(name)}-{cell_id[:12]}"
        return Cell(
            id=cell_id,
            name=name,
            directory=Path(settings.cell_dir or folder).absolute(),
            settings=settings,
            identity=identity,
            tasks=tasks,
            simulated=simulated,
            left_out=tuple(f"{item.source}: {item.reason}" for item in library.rejections if not item.repeat),
            live=isinstance(selector, LiveSelector),
            batch=getattr(selector, "episodes_per_update", None) if getattr(selector, "learns", False) else None,
            library_size=len(library),
        )

    def _model_identity(self, parts: AssembledParts, part: str) -> str:
        """Build a model (weights come later) and check what it depends on: an LLM parser knows its server."""
        model = getattr(parts, part)
        check = getattr(model, "check", None)
        if check is not None:
            check()
        return str(model.identity)

    def _simulated(self, settings: Settings) -> bool:
        """Build and check the backbone; True when there is no language model behind it."""
        backbone = build(settings.backbone, "backbone")
        try:
            backbone.check()
            return bool(backbone.simulated)
        finally:
            backbone.close()

    def _weights(self, settings: Settings) -> str:
        """Name of the very weights that a backbone serves itself; empty for one that cannot know them."""
        backbone = build(settings.backbone, "backbone")
        try:
            return str(getattr(backbone, "weights", ""))
        finally:
            backbone.close()

    def _once(self, kind: str, section: dict[str, Any], make: Callable[[], T]) -> T:
        key = f"{kind}:{digest(section)}"
        if key not in self._seen:
            self._seen[key] = make()
        found: T = self._seen[key]
        return found


def folder_name(name: str) -> str:
    """A cell's name as the beginning of a folder's name, whatever a configuration or a store put into it."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name)[:_LONGEST_NAME]


def cache_folder(settings: Settings) -> Path:
    """Where embeddings, scores, parses, selections and benchmark files are kept between runs."""
    return Path(settings.cache_dir).absolute() if settings.cache_dir else cache_root()


def sections(settings: Settings) -> dict[str, dict[str, Any]]:
    """The sections that name classes, as plain data."""
    return {part: getattr(settings, part) for part in PARTS}


def _list_tasks(settings: Settings, cache_dir: Path) -> tuple[str, tuple[Task, ...]]:
    benchmark = build(settings.benchmark, "benchmark", cache_dir=str(cache_dir))
    try:
        tasks = tuple(benchmark.tasks())
    except SkillArenaError:
        raise
    except Exception as error:  # a benchmark of the user's own may raise anything
        raise DataError(
            f"benchmark: {type(benchmark).__name__}.tasks() failed: {type(error).__name__}: {error}",
            "mend the class; it must return a list of skillarena.envs.interface.Task",
        ) from error
    if not all(isinstance(task, Task) for task in tasks) or len({task.id for task in tasks}) < len(tasks):
        raise DataError(
            f"benchmark: {type(benchmark).__name__}.tasks() gave things that are no Task, or two with one id",
            "it must return a list of skillarena.envs.interface.Task with ids of their own",
        )
    if not tasks:
        raise DataError(
            f"benchmark: no task of split {benchmark.split!r} is left after the filters",
            "loosen benchmark.limit, benchmark.task_types or benchmark.task_ids",
        )
    return benchmark.split, tasks


def _name(settings: Settings, split: str, memory: str) -> str:
    """A label that tells the cells of a sweep apart; what a selector has learned elsewhere is named by its digest."""
    sizes = {key: settings.selector.get(key) for key in _SIZES}
    options = "".join(f" {key}={size}" for key, size in sizes.items() if size is not None)
    method = f"{label(settings.selector)}{options}" + (f" memory={memory[:_DIGITS]}" if memory else "")
    return f"{label(settings.benchmark)}/{split} {method} {label(settings.backbone)} seed={settings.seed}"


def _shown(size: Any) -> str:
    return "" if size is None else str(size)


def _check_tasks(selector: Selector, tasks: tuple[Task, ...]) -> None:
    if isinstance(selector, LearningSelector):
        selector.check_tasks(tasks)


def _announce_indexing(selector: Selector, settings: Settings) -> None:
    """What the first use of a library will take in LLM calls, said before anything starts."""
    work = indexing_of(selector)
    if work is not None:
        log.info(
            "%s: indexing the library takes up to %s LLM calls with about %s prompt tokens, once; answers are kept",
            label(settings.selector),
            format(work.calls, ","),
            format(work.prompt_tokens, ","),
        )


def indexing_of(selector: Selector) -> Indexing | None:
    """LLM work of a selector on its whole library; None for one without."""
    indexing = getattr(selector, "indexing", None)
    work: Indexing | None = indexing() if indexing is not None else None
    return work


def _code_digest(selector: Any) -> str:
    """Of the file that defines the selector, or of all files of its package where it has one below this one."""
    file = Path(inspect.getfile(type(selector)))
    files = sorted(file.parent.glob("*.py")) if (file.parent / "__init__.py").exists() else [file]
    whole = hashlib.sha256()
    for path in files if type(selector).__module__.startswith(_OWN) else [file]:
        whole.update(path.read_bytes())
    return whole.hexdigest()
