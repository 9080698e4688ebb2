"""Preflight: from settings to cells that are known to be runnable, before anything starts or is written."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from skillarena.conf.errors import DataError
from skillarena.envs.cache_dir import cache_root
from skillarena.envs.interface import Task
from skillarena.orchestration.assembly import AssembledParts, build, build_selector, check_options, load_library
from skillarena.orchestration.settings import PARTS, Settings, digest, label

T = TypeVar("T")


@dataclass(frozen=True)
class Cell:
    """One runnable cell: plain data only."""

    id: str
    """Digest of everything a result can depend on."""
    name: str
    """Readable label, for example ``alfworld/valid_seen skillreranker simulated``."""
    directory: Path
    settings: Settings
    identity: dict[str, Any]
    tasks: tuple[Task, ...]
    simulated: bool
    """No language model is behind the backbone."""

    @property
    def axes(self) -> dict[str, str]:
        """What tables group by."""
        return {
            "benchmark": label(self.settings.benchmark),
            "split": str(self.settings.benchmark.get("split", "")),
            "selector": label(self.settings.selector),
            "backbone": label(self.settings.backbone),
            "k": str(self.settings.selector.get("k", "")),
            "top_k": str(self.settings.selector.get("top_k", "")),
            "reranker": label(self.settings.reranker),
            "parser": label(self.settings.parser),
            "library": label(self.settings.library),
            "seed": str(self.settings.seed),
        }

    def episode_id(self, task: Task) -> str:
        """Digest of cell, task and seed; every attempt of an episode shares it."""
        return hashlib.sha256(f"{self.id}\n{task.id}\n{self.settings.seed}".encode()).hexdigest()

    def selection_key(self, task: Task) -> str:
        """Digest of what a selection depends on: never the backbone, the agent or the seed."""
        parts = {part: self.identity[part] for part in ("library", "embedder", "reranker", "parser", "selector")}
        return digest({**parts, "task": task.id, "goal": task.goal, "benchmark": task.benchmark})


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
        for part in ("embedder", "reranker", "parser"):
            check_options(getattr(settings, part), part)
        library = self._once("library", settings.library, lambda: load_library(settings.library))
        build_selector(settings.selector, AssembledParts(sections(settings), library, cache_dir))
        split, tasks = self._once("tasks", settings.benchmark, lambda: _list_tasks(settings, cache_dir))
        self._once("parser", settings.parser, lambda: _check_parser(settings))
        simulated = self._once("backbone", settings.backbone, lambda: _check_backbone(settings))
        identity = settings.identity(library.fingerprint)
        cell_id = digest(identity)
        name = f"{label(settings.benchmark)}/{split} {label(settings.selector)} {label(settings.backbone)}"
        folder = Path(settings.output_dir) / "cells" / f"{re.sub(r'[^A-Za-z0-9_.]+', '-', name)}-{cell_id[:12]}"
        return Cell(
            id=cell_id,
            name=name,
            directory=Path(settings.cell_dir or folder).absolute(),
            settings=settings,
            identity=identity,
            tasks=tasks,
            simulated=simulated,
        )

    def _once(self, kind: str, section: dict[str, Any], make: Callable[[], T]) -> T:
        key = f"{kind}:{digest(section)}"
        if key not in self._seen:
            self._seen[key] = make()
        found: T = self._seen[key]
        return found


def cache_folder(settings: Settings) -> Path:
    """Where embeddings, scores, parses, selections and benchmark files are kept between runs."""
    return Path(settings.cache_dir).absolute() if settings.cache_dir else cache_root()


def sections(settings: Settings) -> dict[str, dict[str, Any]]:
    """The sections that name classes, as plain data."""
    return {part: getattr(settings, part) for part in PARTS}


def _list_tasks(settings: Settings, cache_dir: Path) -> tuple[str, tuple[Task, ...]]:
    benchmark = build(settings.benchmark, "benchmark", cache_dir=str(cache_dir))
    tasks = tuple(benchmark.tasks())
    if not tasks:
        raise DataError(
            f"benchmark: no task of split {benchmark.split!r} is left after the filters",
            "loosen benchmark.limit, benchmark.task_types or benchmark.task_ids",
        )
    return benchmark.split, tasks


def _check_parser(settings: Settings) -> None:
    """A parser with a chat model of its own knows how to check it."""
    check = getattr(build(settings.parser, "parser"), "check", None)
    if check is not None:
        check()


def _check_backbone(settings: Settings) -> bool:
    backbone = build(settings.backbone, "backbone")
    try:
        backbone.check()
        return bool(backbone.simulated)
    finally:
        backbone.close()
