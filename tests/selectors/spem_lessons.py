"""What SPEM can learn from: tasks whose similarity is an angle, short episodes, and a memory after them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from selector_contract import SKILLS, ScoredParts, WordEmbedder

from skillarena.envs.interface import Task
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, Lesson, Step
from skillarena.selectors.spem.selector import Spem

OPENING = "You see a desk 1, a desk 2, a microwave 1 and a fridge 1."


class AngleEmbedder:
    """Goals as angles: two that end in different numbers of degrees have the cosine of the difference; others words."""

    identity = "angles"

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> np.ndarray:
        rows = np.zeros((len(texts), 130), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            last = text.split()[-1] if text.split() else ""
            if text.startswith("turn ") and last.isdigit():
                row[128:] = np.cos(np.radians(int(last))), np.sin(np.radians(int(last)))
            else:
                row[:128] = WordEmbedder().encode([text], kind)[0]
        return rows


def parts_with(embedder: Any, folder: Path, library: SkillLibrary = SKILLS) -> ScoredParts:
    return ScoredParts(library, embedder, HeuristicParser(), folder)


def spem(parts: ScoredParts, **options: Any) -> Spem:
    return Spem(parts, **{"k": 6} | options)


def task(goal: str, split: str = "train", benchmark: str = "alfworld", number: int = 0) -> Task:
    identity = sha256(f"{benchmark} {goal} {number}".encode()).hexdigest()
    return Task(benchmark, split, identity, f"{goal}/{number}", "any", goal)


def heat(detour: bool = False) -> list[str]:
    wandering = ["go to fridge 1", "open fridge 1"] if detour else []
    return [*wandering, "go to desk 1", "take mug 1 from desk 1", "heat mug 1 with microwave 1", "move mug 1 to desk 2"]


def episode(
    actions: Sequence[str], *, won: bool = True, tokens: int = 1000, skills: Sequence[str] = ("find", "heat", "place")
) -> EpisodeRecord:
    steps = [Step(action, f"Done: {action}.", 0.0, True) for action in actions]
    if won:
        steps[-1] = replace(steps[-1], score=1.0)
    return EpisodeRecord(OPENING, tuple(steps), won, 100.0 * won, tokens, tuple(skills))


def lesson_of(selector: Spem, memory: bytes, about: Task, record: EpisodeRecord) -> Lesson:
    """As an episode that starts with this memory gives it."""
    lesson = selector.with_memory(memory).open(about).close(record)
    assert lesson is not None
    return Lesson(**orjson.loads(orjson.dumps(lesson)))


def after(selector: Spem, memory: bytes, *episodes: tuple[Task, EpisodeRecord]) -> bytes:
    return selector.learn(memory, [lesson_of(selector, memory, about, record) for about, record in episodes])
