"""SPEM's memory as bytes: damage is noticed, and no evaluation gets into it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from selector_contract import SKILLS, ScoredParts, WordEmbedder
from spem_lessons import AngleEmbedder, after, episode, heat, lesson_of, parts_with, spem, task

from skillarena.conf.errors import ConfigError, DataError
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.spem.leakage import is_training_split
from skillarena.selectors.spem.memory import Memory
from skillarena.selectors.spem.selector import Spem
from skillarena.selectors.spem.statistics import SkillStatistics


@pytest.fixture
def parts(tmp_path: Path) -> ScoredParts:
    return parts_with(AngleEmbedder(), tmp_path)


# Memory as bytes


@pytest.fixture
def learned(parts: ScoredParts) -> bytes:
    selector = spem(parts)
    return after(
        selector,
        selector.initial_memory(),
        (task("turn 0"), episode(heat())),
        (task("turn 90"), episode(["use lamp 1"])),
    )


def test_a_memory_survives_its_bytes(learned: bytes) -> None:
    loaded = Memory.from_bytes(learned)
    assert loaded.to_bytes() == learned
    assert {entry.goal for entry in loaded.templates} == {"turn 0", "turn 90"}
    assert loaded.provenance.splits == {("alfworld", "train")}
    assert loaded.statistics["heat"] == SkillStatistics(2, 2, 1000.0)


def rewritten(memory: bytes, change: Callable[[dict[str, Any]], object], *, sign: bool = True) -> bytes:
    """A memory that somebody has edited; signed, they also computed the digest anew."""
    whole = orjson.loads(memory)
    change(whole["content"])
    if sign:
        whole["digest"] = sha256(orjson.dumps(whole["content"], option=orjson.OPT_SORT_KEYS)).hexdigest()
    return orjson.dumps(whole)


@pytest.mark.parametrize(
    "damage",
    [
        lambda memory: b"",
        lambda memory: memory[:-10],
        lambda memory: memory + memory,
        lambda memory: b"[]",
        lambda memory: b"{}",
        lambda memory: memory.replace(b"spem-memory/1", b"spem-memory/0"),
        lambda memory: memory.replace(b"turn 0", b"turn 1"),
        lambda memory: rewritten(memory, lambda content: content.pop("weights")),
        lambda memory: rewritten(memory, lambda content: content["weights"].pop("gamma")),
        lambda memory: rewritten(memory, lambda content: content["weights"].update(gamma="AADAfw==")),
        lambda memory: rewritten(memory, lambda content: content["weights"].update(bonus="AAAA")),
        lambda memory: rewritten(memory, lambda content: content["statistics"].update(find=[1])),
        lambda memory: rewritten(memory, lambda content: content["templates"].reverse()),
        lambda memory: rewritten(memory, lambda content: content["templates"][0]["procedure"][0].__setitem__(2, [0])),
        lambda memory: rewritten(memory, lambda content: content.update(templates=content["templates"] * 2)),
    ],
)  # fmt: skip
def test_damaged_memories_are_refused(parts: ScoredParts, learned: bytes, damage: Callable[[bytes], bytes]) -> None:
    with pytest.raises(DataError):
        spem(parts).with_memory(damage(learned))


def test_memories_of_another_library_or_embedder_are_refused(
    parts: ScoredParts, learned: bytes, tmp_path: Path
) -> None:
    other = parts_with(AngleEmbedder(), tmp_path, SkillLibrary(SKILLS.skills[:4]))
    with pytest.raises(DataError, match="another skill library"):
        Spem(other, k=4).with_memory(learned)
    with pytest.raises(DataError, match="angles, not words"):
        spem(parts_with(WordEmbedder(), tmp_path)).with_memory(learned)


# Leakage


def stored(memory: bytes, folder: Path) -> str:
    path = folder / "memory"
    path.write_bytes(memory)
    return str(path)


@pytest.mark.parametrize(
    ("split", "training_split"),
    [
        ("train", True), ("valid_train", True), ("Train-2", True), ("training", True),
        ("valid_seen", False), ("valid_unseen", False), ("generated_seen", False), ("seen", False), ("unseen", False),
        ("test", False), ("", False), ("constrained", False), ("untrained", False), ("trainee", False),
    ],
)  # fmt: skip
def test_training_splits_say_so_in_a_word_of_their_names(split: str, training_split: bool) -> None:
    assert is_training_split(split) is training_split


def test_learning_from_evaluation_splits_is_refused_before_it_starts(parts: ScoredParts) -> None:
    selector = spem(parts)
    selector.check_tasks([task("turn 0", "train"), task("turn 1", "valid_train")])
    mixed = [task("turn 0", "train"), task("turn 1", "valid_seen"), task("turn 2", "seen", "scienceworld")]
    with pytest.raises(ConfigError, match="2 of 3 episodes are of evaluation splits"):
        selector.check_tasks(mixed)
    spem(parts, freeze=True).check_tasks(mixed)


def test_learn_itself_refuses_lessons_of_evaluation_splits_even_among_others(parts: ScoredParts) -> None:
    selector = spem(parts)
    start = selector.initial_memory()
    good = lesson_of(selector, start, task("turn 0"), episode(heat()))
    bad = replace(good, split="valid_unseen", task_id="e" * 64)
    for lessons in ([bad], [good, bad], [bad, good]):
        with pytest.raises(ConfigError, match="evaluation splits"):
            selector.learn(start, lessons)
    assert Memory.from_bytes(selector.learn(start, [good])).provenance.tasks == {good.task_id}


def test_a_renamed_split_with_the_same_tasks_is_found_by_their_identity(
    parts: ScoredParts, learned: bytes, tmp_path: Path
) -> None:
    frozen = spem(parts, freeze=True, memory=stored(learned, tmp_path))
    evaluated = [task("turn 0", "valid_seen"), task("turn 5", "valid_seen"), task("turn 90", "valid_seen")]
    with pytest.raises(ConfigError, match="from 2 of the 3 tasks"):
        frozen.check_tasks(evaluated)
    frozen.check_tasks(evaluated[1:2])
    with pytest.raises(ConfigError, match=r"from 0 of the 1 tasks.*alfworld train"):
        frozen.check_tasks([task("turn 7", "train")])
    frozen.check_tasks([task("turn 7", "train", benchmark="scienceworld")])


def test_a_lost_episode_counts_as_seen_too(parts: ScoredParts, tmp_path: Path) -> None:
    selector = spem(parts)
    memory = after(selector, selector.initial_memory(), (task("turn 0"), episode(heat(), won=False)))
    with pytest.raises(ConfigError, match="from 1 of the 1"):
        spem(parts, freeze=True, memory=stored(memory, tmp_path)).check_tasks([task("turn 0", "seen")])


def test_provenance_is_not_lost_on_the_way_through_further_memories(
    parts: ScoredParts, learned: bytes, tmp_path: Path
) -> None:
    selector = spem(parts, memory=stored(learned, tmp_path))
    assert selector.initial_memory() == learned
    further = after(selector, learned, (task("turn 170"), episode(["use lamp 2"])))
    with pytest.raises(ConfigError, match="from 2 of the 2"):
        spem(parts, freeze=True, memory=stored(further, tmp_path)).check_tasks(
            [task("turn 0", "seen"), task("turn 170", "seen")]
        )


@pytest.mark.parametrize(
    ("attack", "signed"),
    [
        (lambda content: content.update(tasks=[], splits=[]), False),
        (lambda content: content["tasks"].pop(), False),
        (lambda content: content["splits"].clear(), False),
        (lambda content: content["templates"][0].update(source="0" * 64), False),
        # With a new digest, templates still name the tasks that they are from.
        (lambda content: content.update(tasks=[]), True),
        (lambda content: content["tasks"].pop(), True),
    ],
)  # fmt: skip
def test_provenance_cannot_be_edited_away(
    parts: ScoredParts, learned: bytes, tmp_path: Path, attack: Callable[[Mapping[str, Any]], object], signed: bool
) -> None:
    edited = rewritten(learned, attack, sign=signed)
    with pytest.raises(DataError, match="digest does not fit" if not signed else "does not say to have learned from"):
        spem(parts, freeze=True, memory=stored(edited, tmp_path))
    with pytest.raises(DataError):
        spem(parts).with_memory(edited)
    with pytest.raises(DataError):
        spem(parts).learn(edited, [])


def test_two_memories_in_one_file_are_none(parts: ScoredParts, learned: bytes, tmp_path: Path) -> None:
    clean = spem(parts).initial_memory()
    for joined in (clean + learned, learned + b"\n" + clean, json.dumps([learned.decode(), clean.decode()]).encode()):
        with pytest.raises(DataError):
            spem(parts, freeze=True, memory=stored(joined, tmp_path))


def test_frozen_evaluation_changes_nothing(parts: ScoredParts, learned: bytes, tmp_path: Path) -> None:
    frozen = spem(parts, freeze=True, memory=stored(learned, tmp_path))
    assert frozen.learns is False
    assert frozen.identity == sha256(learned).hexdigest()
    about = task("turn 3", "valid_seen")
    before = frozen.open(about).selection
    session = frozen.open(about)
    session.advise("a room", ["look"])
    assert session.close(episode(heat())) is None
    lesson = lesson_of(spem(parts), learned, task("turn 3"), episode(heat()))
    with pytest.raises(ConfigError, match="frozen"):
        frozen.learn(learned, [lesson])
    assert frozen.open(about).selection == before
    assert frozen.initial_memory() == frozen.memory.to_bytes() == learned
