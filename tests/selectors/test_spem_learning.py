"""What SPEM keeps of episodes: templates, statistics and weights, and what a later task has of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from selector_contract import ScoredParts, bundled, minilm
from spem_lessons import AngleEmbedder, after, episode, heat, lesson_of, parts_with, spem, task

from skillarena.conf.errors import DataError
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import Lesson
from skillarena.selectors.spem import training
from skillarena.selectors.spem.memory import Memory
from skillarena.selectors.spem.selector import Spem
from skillarena.selectors.spem.statistics import SkillStatistics


@pytest.fixture
def parts(tmp_path: Path) -> ScoredParts:
    return parts_with(AngleEmbedder(), tmp_path)


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
