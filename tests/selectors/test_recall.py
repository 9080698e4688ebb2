"""Coarse recall: exact, deterministic, on metadata."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from temporary_store import TemporaryStore
from word_embedder import WordEmbedder

from skillarena.conf.errors import LibraryError
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import CachedEmbedder
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.recall import Recall


def library(*metadata: str) -> SkillLibrary:
    return SkillLibrary(tuple(Skill(f"{index:05}", text, "", "body") for index, text in enumerate(metadata)))


def test_the_nearest_skills_come_first_with_their_cosines(tmp_path: Path) -> None:
    skills = library("boil water", "heat a mug", "prune roses", "heat water in a mug")
    embedder = WordEmbedder()
    found = Recall(skills, embedder, IndexStore(tmp_path)).top("heat a mug", 3)
    assert [index for index, _ in found] == [1, 3, 0]
    query = embedder.encode(["heat a mug"], "query")[0]
    for index, cosine in found:
        assert cosine == pytest.approx(float(embedder.encode([skills.skills[index].metadata], "document")[0] @ query))


def test_metadata_counts_and_the_body_does_not(tmp_path: Path) -> None:
    skills = SkillLibrary((Skill("a", "x", "y", "heat a mug"), Skill("b", "heat", "a mug", "z")))
    embedder = WordEmbedder()
    assert Recall(skills, embedder, IndexStore(tmp_path)).top("heat a mug", 1)[0][0] == 1
    assert embedder.asked[:2] == ["x: y", "heat: a mug"]


def test_skills_may_be_found_by_another_text(tmp_path: Path) -> None:
    skills = SkillLibrary((Skill("a", "x", "y", "heat a mug"), Skill("b", "heat", "a mug", "z")))
    embedder = WordEmbedder()
    recall = Recall(skills, embedder, IndexStore(tmp_path), lambda skill: f"{skill.name} | {skill.body}")
    assert embedder.asked == ["x | heat a mug", "heat | z"]
    assert recall.top("heat a mug", 1)[0][0] == 0


def test_texts_are_encoded_some_at_a_time_and_each_once(tmp_path: Path) -> None:
    class Counting(WordEmbedder):
        calls: ClassVar[list[int]] = []

        def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
            self.calls.append(len(texts))
            return super().encode(texts, kind)

    texts = [f"skill number {number}" for number in range(2500)]
    texts[2400] = texts[7]
    embedder = Counting()
    recall = Recall(library(*texts), embedder, IndexStore(tmp_path))
    assert (sum(embedder.calls), max(embedder.calls)) == (2499, 1024)
    expected = WordEmbedder().encode(texts, "document") @ WordEmbedder().encode(["skill number 7"], "query")[0]
    found = recall.top("skill number 7", 2500)
    assert sorted(index for index, _ in found) == list(range(2500))
    assert found == sorted(found, key=lambda item: (-item[1], item[0]))
    assert dict(found)[7] == dict(found)[2400]
    np.testing.assert_allclose([cosine for _, cosine in found], [expected[index] for index, _ in found], atol=1e-6)


def test_equal_metadata_tie_exactly_and_the_smallest_index_wins(tmp_path: Path) -> None:
    filler = [f"filler number {number}" for number in range(997)]
    texts = list(filler)
    for position in (3, 500, 996):
        texts[position] = "heat a mug"
    found = Recall(library(*texts), WordEmbedder(), IndexStore(tmp_path)).top("heat the mug", 3)
    assert [index for index, _ in found] == [3, 500, 996]
    assert len({cosine for _, cosine in found}) == 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "a b", "c d", "d", "e"]), min_size=1, max_size=30), st.data())
def test_recall_equals_a_full_sort(texts: list[str], data: st.DataObject) -> None:
    skills = library(*texts)
    embedder = WordEmbedder()
    query = data.draw(st.sampled_from(["a", "b d", "z"]))
    k = data.draw(st.integers(1, len(texts)))
    vectors = {text: embedder.encode([text], "document")[0] for text in texts}
    vector = embedder.encode([query], "query")[0]
    expected = sorted(range(len(texts)), key=lambda i: (-round(float(vectors[texts[i]] @ vector), 5), i))[:k]
    found = Recall(skills, embedder, TemporaryStore()).top(query, k)
    assert [index for index, _ in found] == expected


@pytest.mark.parametrize("k", [0, -1, 4])
def test_more_skills_than_there_are_is_an_error_with_both_numbers(k: int, tmp_path: Path) -> None:
    recall = Recall(library("a", "b", "c"), WordEmbedder(), IndexStore(tmp_path))
    with pytest.raises(LibraryError, match=f"{k} skills are asked for and the library has 3") as caught:
        recall.top("a", k)
    assert "1 to 3" in caught.value.fix
    assert len(recall.top("a", 3)) == 3


@pytest.mark.parametrize("kept", ["cache", "indexes"])
def test_a_second_start_embeds_nothing(kept: str, tmp_path: Path) -> None:
    skills = library("a", "b", "a", "c")

    def start(number: int) -> tuple[list[str], list[tuple[int, float]]]:
        embedder = WordEmbedder()
        cache = DiskCache(tmp_path / ("c.sqlite" if kept == "cache" else f"{number}.sqlite"))
        store = IndexStore(tmp_path / ("indexes" if kept == "indexes" else f"{number}"))
        recall = Recall(skills, CachedEmbedder(embedder, cache), store)
        return list(embedder.asked), recall.top("a b", 4)

    (first, found), (second, again) = start(1), start(2)
    assert (first, second) == (["a", "b", "c"], [])
    assert again == found


def test_other_texts_or_another_model_are_other_vectors(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    Recall(library("a", "b"), WordEmbedder(), store)
    for texts, model in ((("a", "c"), "words"), (("b", "a"), "words"), (("a", "b"), "other words")):
        embedder = WordEmbedder(model)
        Recall(library(*texts), embedder, store)
        assert embedder.asked == list(texts)


@pytest.mark.slow
def test_a_library_of_the_papers_size_is_searched_quickly(tmp_path: Path) -> None:
    skills = library(*(f"skill number {number} about topic {number % 977}" for number in range(67_884)))
    embedder, store = (
        CachedEmbedder(WordEmbedder(dimensions=384), DiskCache(tmp_path / "c.sqlite")),
        IndexStore(tmp_path),
    )
    Recall(skills, embedder, store)
    start = time.process_time()
    recall = Recall(skills, embedder, store)
    started = time.process_time() - start
    found = recall.top("topic 12", 30)
    searched = time.process_time() - start - started
    assert len(found) == 30
    assert np.diff([cosine for _, cosine in found]).max() <= 0
    assert started < 5
    assert searched < 1
