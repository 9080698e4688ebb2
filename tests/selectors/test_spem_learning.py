"""What SPEM keeps of episodes: templates, statistics, weights, their bytes; and that no evaluation gets into them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pytest
from selector_contract import SKILLS, ScoredParts, WordEmbedder, bundled, minilm

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.interface import Task
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, Lesson, Step
from skillarena.selectors.spem import training
from skillarena.selectors.spem.leakage import is_training_split
from skillarena.selectors.spem.memory import Memory
from skillarena.selectors.spem.procedure import ProcedureStep
from skillarena.selectors.spem.selector import Spem
from skillarena.selectors.spem.statistics import SkillStatistics
from skillarena.selectors.spem.templates import Template, nearest, with_success, with_use

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


@pytest.fixture
def parts(tmp_path: Path) -> ScoredParts:
    return parts_with(AngleEmbedder(), tmp_path)


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


# Templates


def template(source: str, degrees: float, procedure: Sequence[str] = ("go", "take"), **numbers: int) -> Template:
    vector = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], dtype=np.float32)
    return Template(source, source, vector, tuple(ProcedureStep(action) for action in procedure), **numbers)


def test_the_bound_of_similarity_is_inclusive() -> None:
    goal = np.array([1.0, 0.0], dtype=np.float32)
    at = Template("at", "", np.array([0.75, np.sqrt(1 - 0.75**2)], dtype=np.float32), ())
    below = Template("below", "", np.array([0.749, np.sqrt(1 - 0.749**2)], dtype=np.float32), ())
    found = nearest([below, at], goal, 0.75)
    assert found is not None
    assert (found[0].source, found[1]) == ("at", 0.75)
    assert nearest([below], goal, 0.75) is None
    assert nearest([], goal, -1.0) is None


def test_the_nearest_template_is_taken_and_of_equals_the_more_successful() -> None:
    goal = np.array([1.0, 0.0], dtype=np.float32)
    near, far = template("near", 10, uses=5, successes=0), template("far", 20, uses=5, successes=5)
    found = nearest([far, near], goal, 0.75)
    assert found is not None
    assert found[0] is near
    equals = [template(name, 10, uses=4, successes=won) for name, won in (("a", 1), ("b", 3), ("c", 3))]
    found = nearest(equals[::-1], goal, 0.75)
    assert found is not None
    assert found[0].source == "b"


def test_a_success_adds_refines_or_confirms() -> None:
    known = (template("k", 0, ("go x", "go y", "take z"), uses=3, successes=2),)
    far = with_success(known, template("n", 60), tau=0.75, used=None)
    assert [entry.source for entry in far] == ["k", "n"]
    other_kind = with_success(known, template("n", 0, ("go", "heat")), tau=0.75, used="k")
    assert [(entry.source, entry.uses) for entry in other_kind] == [("k", 3), ("n", 1)]
    (shorter,) = with_success(known, template("n", 5), tau=0.75, used="k")
    assert (shorter.source, shorter.goal, len(shorter.procedure), shorter.uses) == ("k", "n", 2, 3)
    (longer,) = with_success(known, template("n", 5, ("go", "go a", "go b", "take")), tau=0.75, used=None)
    assert (longer.goal, len(longer.procedure), longer.uses, longer.successes) == ("k", 3, 4, 3)
    assert with_success(known, template("n", 5, ()), tau=0.75, used=None) == known


def test_use_changes_the_counts_of_the_one_that_was_given() -> None:
    pair = (template("a", 0), template("b", 0))
    a, b = with_use(pair, "b", won=False)
    assert (a.uses, a.successes, b.uses, b.successes) == (1, 1, 2, 1)
    assert b.procedure == pair[1].procedure


# Learning


def test_a_won_episode_becomes_a_template_that_a_similar_task_is_given(parts: ScoredParts) -> None:
    selector = spem(parts)
    memory = after(
        selector,
        selector.initial_memory(),
        (task("turn 0"), episode(heat(detour=True), skills=["find", "heat", "place"])),
    )
    selection = selector.with_memory(memory).open(task("turn 40", "valid_seen")).selection
    assert selection.marks == ("template",)
    assert selection.details["template"]["source"] == task("turn 0").id
    assert selection.details["template"]["steps"] == heat()
    assert [skill.id for skill in selection.skills] == ["find"]  # nearest to all of the commands in its words
    lines = selection.guidance.splitlines()
    assert "'turn 0'" in lines[0] and "1 of 1" in lines[0]
    assert lines[2].startswith("1. go to desk 1 (skill: object-")
    assert lines[3].startswith("2. take mug 1 from desk 1 (needs 1; skill: object-")
    assert lines[4].startswith("3. heat mug 1 with microwave 1 (needs 1, 2; skill: object-finder)")
    assert lines[5].startswith("4. move mug 1 to desk 2 (needs 1, 3; skill: object-finder)")
    other = selector.with_memory(memory).open(task("turn 42", "valid_seen")).selection  # cos 42° < 0.75 < cos 40°
    assert other.marks == ()
    assert other.details["template"] is None


def test_a_lost_episode_changes_statistics_only(parts: ScoredParts) -> None:
    selector = spem(parts)
    start = selector.initial_memory()
    lost = Memory.from_bytes(after(selector, start, (task("turn 0"), episode(heat(), won=False, skills=["find"]))))
    assert lost.templates == ()
    assert lost.statistics == {"find": SkillStatistics(1, 0, 1000.0)}
    assert all(np.array_equal(lost.weights[name], values) for name, values in Memory.from_bytes(start).weights.items())
    won = after(selector, start, (task("turn 0"), episode(heat())))
    (before,) = Memory.from_bytes(won).templates
    (known,) = Memory.from_bytes(after(selector, won, (task("turn 1"), episode(heat(), won=False)))).templates
    assert (known.uses, known.successes) == (2, 1)
    assert (known.procedure, known.goal) == (before.procedure, before.goal)


def test_a_shorter_way_refines_the_template_that_was_given(parts: ScoredParts) -> None:
    selector = spem(parts)
    long_way = ["go to desk 1", "take mug 1 from desk 1", *["heat mug 1 with microwave 1"] * 2, "move mug 1 to desk 2"]
    first = after(selector, selector.initial_memory(), (task("turn 0"), episode(long_way)))
    (refined,) = Memory.from_bytes(after(selector, first, (task("turn 3"), episode(heat())))).templates
    assert (refined.source, refined.goal) == (task("turn 0").id, "turn 3")
    assert [step.action for step in refined.procedure] == heat()
    assert (refined.uses, refined.successes) == (2, 2)
    (kept,) = Memory.from_bytes(after(selector, first, (task("turn 3"), episode(long_way)))).templates
    assert (kept.goal, kept.uses, kept.successes) == ("turn 0", 2, 2)


def test_another_kind_of_procedure_for_a_similar_task_is_a_template_of_its_own(parts: ScoredParts) -> None:
    selector = spem(parts)
    cooling = ["go to desk 1", "take mug 1 from desk 1", "cool mug 1 with fridge 1", "move mug 1 to desk 2"]
    first = after(selector, selector.initial_memory(), (task("turn 0"), episode(heat())))
    memory = Memory.from_bytes(after(selector, first, (task("turn 10"), episode(cooling))))
    assert {entry.goal: entry.uses for entry in memory.templates} == {"turn 0": 2, "turn 10": 1}


def test_the_same_lessons_give_the_same_bytes_and_the_batch_counts_not_the_object(
    parts: ScoredParts, tmp_path: Path
) -> None:
    selector = spem(parts)
    start = selector.initial_memory()
    pairs = [(task(f"turn {degrees}"), episode(heat())) for degrees in (0, 60, 120)]
    lessons = [lesson_of(selector, start, *pair) for pair in pairs]
    memory = selector.learn(start, lessons)
    other = spem(parts_with(AngleEmbedder(), tmp_path / "other"), episodes_per_update=1)
    assert other.with_memory(memory).learn(start, lessons) == memory == selector.learn(start, lessons)
    assert len(Memory.from_bytes(memory).templates) == 3
    assert Memory.from_bytes(memory).provenance.tasks == {about.id for about, _ in pairs}


def test_the_skills_of_won_episodes_rise(parts: ScoredParts) -> None:
    selector = spem(parts, tau=1.0, top_k=1)
    memory = selector.initial_memory()
    goal = "sing a song"

    def rank(memory: bytes) -> int:
        ranking: list[str] = selector.with_memory(memory).open(task(goal, "valid_seen")).selection.details["ranking"]
        return ranking.index("invoice")

    before = rank(memory)
    assert before > 0
    for number in range(12):
        pair = (
            task(f"{goal} {'la ' * number}", number=number),
            episode(["open book 1", "read aloud"], skills=["invoice"]),
        )
        memory = after(selector, memory, pair)
    assert rank(memory) < before


def test_skills_that_are_not_in_the_library_are_left_out(parts: ScoredParts) -> None:
    selector = spem(parts)
    memory = after(selector, selector.initial_memory(), (task("turn 0"), episode(heat(), skills=["gone"])))
    loaded = Memory.from_bytes(memory)
    assert loaded.statistics == {}
    assert [step.skill for step in loaded.templates[0].procedure] == ["", "", "", ""]
    selection = selector.with_memory(memory).open(task("turn 0", "valid_seen")).selection
    assert selection.skills == ()
    assert "take mug 1" in selection.guidance


def test_many_prefixes_are_thinned_out_evenly(parts: ScoredParts, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillarena.selectors.spem import learning

    seen: list[int] = []

    def counting(weights: Any, examples: Sequence[Any], **options: Any) -> Any:
        seen.append(len(examples))
        return training.fit(weights, examples[:1], **options)

    monkeypatch.setattr(learning, "fit", counting)
    monkeypatch.setattr(learning, "MOST_EXAMPLES", 5)
    selector = spem(parts)
    start = selector.initial_memory()
    after(selector, start, (task("turn 0"), episode(heat())))
    after(selector, start, (task("turn 0"), episode(heat(detour=True) * 2)))
    assert seen == [4, 5]


def test_a_lesson_of_another_method_is_refused(parts: ScoredParts) -> None:
    selector = spem(parts)
    with pytest.raises(DataError, match="none of SPEM's"):
        selector.learn(selector.initial_memory(), [Lesson("alfworld", "train", "f" * 64, {"note": "x"})])


@pytest.mark.slow
def test_learning_with_real_embeddings_finds_the_skill_of_each_step(tmp_path: Path) -> None:
    library = SkillLibrary(bundled().skills[:30])
    selector = Spem(parts_with(minilm(), tmp_path, library), k=30)
    start = selector.initial_memory()
    about = task("put a hot mug in desk.")
    read = [skill.id for skill in selector.open(about).selection.skills]
    memory = after(selector, start, (about, episode(heat(), skills=read)))
    (known,) = Memory.from_bytes(memory).templates
    assert {step.skill for step in known.procedure} <= set(read)
    assert all(step.skill for step in known.procedure)
    assert len(memory) < 400_000
    similar = selector.with_memory(memory).open(task("put a hot cup in desk.", "valid_seen")).selection
    assert similar.marks == ("template",)
    assert (
        selector.with_memory(memory)
        .open(task("examine the alarmclock with the desklamp.", "valid_seen"))
        .selection.marks
        == ()
    )


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
