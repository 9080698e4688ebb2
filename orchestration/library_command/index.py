"""`skillarena library index`: a library's vectors, computed before the first run needs them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from skillarena.orchestration.assembly import AssembledParts, build, build_selector, is_hosted, load_library
from skillarena.orchestration.cells import cache_folder, needs_of, sections
from skillarena.orchestration.console import EXIT_OK, console_for_results, logging_to, plain
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.library_command.embedded import found_by, judged_by
from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.orchestration.settings import Settings, label
from skillarena.selectors.interface import Embedder
from skillarena.selectors.recall import Recall

_BLOCK = 64
"""Documents whose sections are embedded between two looks at the progress bar."""


class _Watched:
    """An embedder that tells how many texts it was given."""

    def __init__(self, embedder: Embedder, progress: Callable[[int], object]) -> None:
        self.identity = embedder.identity
        self.texts = 0
        self._embedder = embedder
        self._progress = progress

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        rows = self._embedder.encode(texts, kind)
        self.texts += len(texts)
        self._progress(len(texts))
        return rows


def index(overrides: Sequence[str], config_dir: Path | None, *, documents: bool, as_json: bool) -> int:
    """Embed what the configured selector embeds of a library, unless the cache has it.

    Args:
        overrides: as for ``run``.
        config_dir: folder of further configuration files.
        documents: the sections of all documents, too, where the reranker is made of the embedder.
        as_json: print JSON.

    Returns:
        The exit code.

    Raises:
        SkillArenaError: a mistake in the configuration, the library or the embedder.
    """
    settings = compose(overrides, config_dir)
    with logging_to(Console(stderr=True, highlight=False)):
        parts = AssembledParts(sections(settings), load_library(settings.library), cache_folder(settings))
        needs = needs_of(build_selector(settings.selector, parts))
        began, texts, read = time.monotonic(), 0, 0
        if "embedder" in needs:
            texts = _found_by(settings, parts)
        if documents and "reranker" in needs and not is_hosted(settings.reranker, "reranker"):
            read = _judged_by(settings, parts)
    facts = {
        "embedder": parts.embedder.identity if "embedder" in needs or read else None,
        "skills": len(parts.library),
        "texts_asked": texts,
        "documents_read": read,
        "seconds": round(time.monotonic() - began, 1),
        "cache": str(cache_folder(settings)),
    }
    if as_json:
        sys.stdout.write(json.dumps(facts, indent=2) + "\n")
        return EXIT_OK
    if facts["embedder"] is None:
        line = f"{label(settings.selector)} embeds nothing of the library"
    else:
        done = f"{texts:,} texts embedded or looked up" if texts else "the index is there already"
        unread = "; no sections: nothing compares them by embeddings" if documents else ""
        more = f", sections of {read:,} documents" if read else unread
        line = f"{len(parts.library):,} skills with {label(settings.embedder)}: {done}{more}, {facts['seconds']} s"
    console_for_results().print(Text(plain(line)), soft_wrap=True)
    return EXIT_OK


def _found_by(settings: Settings, parts: AssembledParts) -> int:
    text = found_by(settings)
    with ProgressBar("embedding skills", len({text(skill) for skill in parts.library.skills})) as bar:
        watched = _Watched(parts.embedder, bar.advance)
        Recall(parts.library, watched, parts.indexes, text)
    return watched.texts


def _judged_by(settings: Settings, parts: AssembledParts) -> int:
    """Scores are of no use here; what is kept are the vectors of the documents' sections."""
    text, skills = judged_by(settings), parts.library.skills
    reranker = build(settings.reranker, "reranker", embedder=parts.embedder)
    with ProgressBar("embedding sections of documents", len(skills)) as bar:
        for start in range(0, len(skills), _BLOCK):
            block = skills[start : start + _BLOCK]
            reranker.score([("", text(skill)) for skill in block])
            bar.advance(len(block))
    return len(skills)
