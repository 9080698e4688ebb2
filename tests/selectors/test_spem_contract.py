"""SPEM as a selector: the shared contract, real libraries, large libraries."""

from __future__ import annotations

import lzma
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pytest
from selector_contract import BOIL, HOT_MUG, SKILLS, ScoredParts, SelectorContract, WordEmbedder, minilm, task, up_to

from skillarena.conf.errors import ConfigError, DataError, LibraryError
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selection
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, LearningSelector, LiveSession, Step, Trigger
from skillarena.selectors.spem.memory import Memory
from skillarena.selectors.spem.selector import Spem

SHARED = Path(__file__).parents[3] / "shared" / "data"


def spem(parts: Any, **options: Any) -> Spem:
    return Spem(parts, **{"k": up_to(30, parts), "top_k": up_to(2, parts)} | options)


def word_parts(library: SkillLibrary, folder: Path) -> ScoredParts:
    return ScoredParts(library, WordEmbedder(), HeuristicParser(), folder)


class TestSpem(SelectorContract):
    at_most = 2

    def make(self, parts: Any) -> Spem:
        return spem(parts, freeze=True)


def test_it_is_a_learning_selector_with_live_sessions(tmp_path: Path) -> None:
    selector = spem(word_parts(SKILLS, tmp_path))
    assert isinstance(selector, LearningSelector)
    assert selector.learns
    assert selector.episodes_per_update == 8
    session = selector.open(task(HOT_MUG))
    assert isinstance(session, LiveSession)
    assert session.trigger == Trigger(stale_steps=5, invalid_in_a_row=3, times=1)
    assert session.review == ""


def test_the_network_ranks_all_candidates_and_the_best_are_given(tmp_path: Path) -> None:
    selection = spem(word_parts(SKILLS, tmp_path)).open(task(HOT_MUG)).selection
    details = selection.details
    assert details["template"] is None
    assert sorted(details["ranking"]) == sorted(skill.id for skill in SKILLS.skills)
    assert details["chosen"] == details["ranking"][:2]
    utilities = [candidate["utility"] for candidate in details["candidates"]]
    assert utilities == sorted(utilities, reverse=True)
    assert [skill.score for skill in selection.skills] == utilities[:2]
    assert selection.marks == ()


def test_advice_in_the_middle_gives_only_skills_that_were_not_given(tmp_path: Path) -> None:
    selector = spem(word_parts(SKILLS, tmp_path))
    session = selector.open(task(HOT_MUG))
    before = {skill.id for skill in session.selection.skills}
    first = session.advise("You hold a mug. Water boils on the stove.", ["go to stove 1", "take mug 1 from stove 1"])
    second = session.advise("Nothing happens.", ["look"])
    given = [*before, *(skill.id for advice in (first, second) for skill in advice.skills)]
    assert len(first.skills) == len(second.skills) == 2
    assert len(set(given)) == len(given) == 6
    assert session.advise("Nothing happens.", []).skills == ()


def test_advice_depends_on_the_present_state(tmp_path: Path) -> None:
    selector = spem(word_parts(SKILLS, tmp_path), top_k=1)
    chosen = {
        selector.rerank(task("do the work"), state, [], set()).skills[0].score
        for state in ("Boil water on a stove", "Write invoices for customers")
    }
    assert len(chosen) == 2


def test_a_session_made_anew_for_a_given_selection_computes_nothing(tmp_path: Path) -> None:
    class NoModels:
        library = SKILLS

    given = Selection(details={"method": "spem", "template": None, "chosen": []})
    session = spem(NoModels()).attend(task(HOT_MUG), given)
    assert session.selection is given
    lesson = session.close(EpisodeRecord("start", (Step("look", "a room", 0.0, True),), False, 0.0, 7, ()))
    assert lesson is not None
    assert orjson.loads(orjson.dumps(lesson.content)) == lesson.content


def test_a_frozen_session_teaches_nothing(tmp_path: Path) -> None:
    session = spem(word_parts(SKILLS, tmp_path), freeze=True).open(task(HOT_MUG))
    assert session.close(EpisodeRecord("start", (), True, 100.0, 7, ("find",))) is None
    assert session.close() is None


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"k": 0}, ConfigError, "k must be"),
        ({"k": 7}, LibraryError, "k=7"),
        ({"top_k": 7}, ConfigError, "top_k=7"),
        ({"tau": 1.5}, ConfigError, "tau=1.5"),
        ({"tau": float("nan")}, ConfigError, "tau=nan"),
        ({"episodes_per_update": 0}, ConfigError, "episodes_per_update"),
        ({"memory": "/nowhere/memory"}, DataError, "/nowhere/memory"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        spem(word_parts(SKILLS, tmp_path), **options)


def test_the_first_memory_is_made_once_for_a_library(tmp_path: Path) -> None:
    class Counting(WordEmbedder):
        asked = 0

        def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> np.ndarray:
            Counting.asked += len(texts)
            return super().encode(texts, kind)

    def first() -> bytes:
        return spem(ScoredParts(SKILLS, Counting(), HeuristicParser(), tmp_path)).initial_memory()

    memory = first()
    asked = Counting.asked
    assert asked > 0
    assert first() == memory
    assert Counting.asked == asked
    loaded = Memory.from_bytes(memory)
    assert (dict(loaded.statistics), loaded.templates, loaded.provenance.tasks) == ({}, (), frozenset())


_SELECTIONS = """
import sys, tempfile
from pathlib import Path
import torch
torch.set_num_threads(int(sys.argv[1]))
sys.path.insert(0, sys.argv[2])
from selector_contract import GOALS, SKILLS, task
from test_spem_contract import spem, word_parts
selector = spem(word_parts(SKILLS, Path(tempfile.mkdtemp())))
print([selector.open(task(goal)).selection.details for goal in GOALS])
from hashlib import sha256
print(sha256(selector.initial_memory()).hexdigest())
assert torch.get_num_threads() == int(sys.argv[1])
"""


@pytest.mark.slow
def test_processes_with_any_number_of_threads_agree_to_the_last_digit() -> None:
    answers = [
        subprocess.run(
            [sys.executable, "-c", _SELECTIONS, threads, str(Path(__file__).parent)],
            capture_output=True,
            text=True,
            timeout=240,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": threads},
        ).stdout
        for threads in ("1", "2", "5")
    ]
    assert "utility" in answers[0]
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "goal"), [("alfworld", HOT_MUG), ("scienceworld", BOIL)])
def test_real_libraries_get_fitting_skills(tmp_path: Path, name: str, goal: str) -> None:
    folder = SHARED / "skills" / name
    if not folder.is_dir():
        pytest.skip(f"no skill library at {folder}")
    parts = ScoredParts(SkillLibrary.load([folder]), minilm(), HeuristicParser(), tmp_path)
    selector = spem(parts, freeze=True)
    selection = selector.open(task(goal, benchmark=name)).selection
    assert len(selection.skills) == 2
    by_cosine = sorted(selection.details["candidates"], key=lambda candidate: -candidate["cosine"])
    # Untaught, the network keeps near the embeddings: what it gives is among the nearest quarter or so.
    assert {skill.id for skill in selection.skills} <= {candidate["id"] for candidate in by_cosine[:8]}
    assert selector.open(task(goal, benchmark=name)).selection == selection


class FastWords:
    """Hashed words, many texts at once."""

    identity = "fast-words"

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> np.ndarray:
        vectors = np.full((len(texts), 128), 1e-3, dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            places = [int.from_bytes(sha256(word.encode()).digest()[:2], "big") % 128 for word in text.split()[:60]]
            np.add.at(vector, places, 1.0)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("size", [2_000, pytest.param(67_884, marks=pytest.mark.long)])
def test_large_libraries_take_bounded_time_and_memory(tmp_path: Path, size: int) -> None:
    pool = SHARED / "skills_pool.jsonl.xz"
    if not pool.exists():
        pytest.skip(f"no skill pool at {pool}")
    if size == 2_000:
        part = tmp_path / "part.jsonl"
        with lzma.open(pool, "rb") as lines:
            part.write_bytes(b"".join(line for _, line in zip(range(size), lines, strict=False)))
        pool = part
    parts = ScoredParts(SkillLibrary.load([pool]), FastWords(), HeuristicParser(), tmp_path)
    assert len(parts.library) >= 0.98 * size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    selector = spem(parts, freeze=True)
    selector.open(task(HOT_MUG))
    indexing = time.process_time() - start
    start = time.process_time()
    for goal in ("write an invoice", "deploy a container", "boil water", "draw a chart", "review code"):
        assert len(selector.open(task(goal)).selection.skills) == 2
    each = (time.process_time() - start) / 5
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{size} skills: indexing {indexing:.1f} s, {each * 1000:.0f} ms a decision, {grown:.0f} MiB more")
    assert indexing < 120
    assert each < 2
    assert grown < 1500
