"""Candidates stand out of their row of similarities: limits, caps and ties against values worked out otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.selectors.interface import Skill
from skillarena.selectors.skilldag import candidates
from skillarena.selectors.skilldag.candidates import choose_candidates
from skillarena.selectors.skilldag.views import DistinctVectors, preview, self_text


class Given:
    """An embedder that knows the vector of each text."""

    identity = "given"

    def __init__(self, vectors: dict[str, Sequence[float]]) -> None:
        self._vectors = vectors

    def encode(self, texts: Sequence[str], kind: Any) -> np.ndarray:
        return np.array([self._vectors[text] for text in texts], dtype=np.float32)


def vectors_of(rows: Sequence[Sequence[float]]) -> DistinctVectors:
    known = {str(list(row)): row for row in rows}
    return DistinctVectors([str(list(row)) for row in rows], Given(known), "document")


def with_cosines(cosines: Sequence[float]) -> DistinctVectors:
    """Skill 0, and others with these similarities to it and none among themselves."""
    rows = [[1.0] + [0.0] * len(cosines)]
    for at, cosine in enumerate(cosines):
        rows.append([cosine] + [float(np.sqrt(1 - cosine**2)) * (other == at) for other in range(len(cosines))])
    return vectors_of(rows)


def of_first(selves: DistinctVectors) -> list[int]:
    pairs = choose_candidates(np.array([0]), DistinctVectors(["x"], Given({"x": selves.of([0])[0]}), "query"), selves)
    assert (pairs[:, 0] == 0).all()
    return [int(at) for at in pairs[:, 1]]


def test_the_limit_is_mean_plus_deviation_and_must_be_exceeded() -> None:
    # mean 0.4, population deviation 0.1414..: limit 0.5414; 0.54 stays below, and at least three are kept anyway
    assert of_first(with_cosines([0.2, 0.3, 0.4, 0.5, 0.6])) == [5, 4, 3]
    # mean 0.55, deviation 0.0957: limit 0.6457; three of eight exceed it, and a fourth does not
    assert of_first(with_cosines([0.65, 0.66, 0.67, 0.6, 0.45, 0.45, 0.46, 0.46])) == [3, 2, 1]


def test_the_limit_is_never_below_035() -> None:
    # all values but five are 0: mean + deviation is about 0.19
    rest = [0.0] * 40
    assert of_first(with_cosines([0.36, 0.37, 0.38, 0.39, 0.34, *rest])) == [4, 3, 2, 1]


def test_the_limit_is_never_above_075() -> None:
    # mean 0.75, deviation 0.19: without the cap none of the first five would do
    assert of_first(with_cosines([0.9, 0.9, 0.9, 0.9, 0.9, 0.74, 0.5, 0.5, 0.5])) == [1, 2, 3, 4, 5]


def test_at_most_twelve_are_kept_and_of_equal_ones_the_earlier() -> None:
    assert of_first(with_cosines([0.5] * 3 + [0.8] * 15)) == list(range(4, 16))


def test_at_least_three_are_kept_if_there_are_as_many() -> None:
    assert of_first(with_cosines([0.1, 0.1, 0.1, 0.1])) == [1, 2, 3]
    assert of_first(with_cosines([0.1, 0.2])) == [2, 1]
    assert of_first(with_cosines([])) == []


def expected(anchor: int, view: np.ndarray, selves: np.ndarray) -> list[int]:
    """The rule once more, in plain words."""
    cosines = {at: float(view @ row) for at, row in enumerate(selves) if at != anchor}
    values = np.array(list(cosines.values()))
    limit = min(0.75, max(0.35, values.mean() + values.std()))
    ranked = sorted(cosines, key=lambda at: (-cosines[at], at))
    above = [at for at in ranked if cosines[at] > limit][:12]
    return above if len(above) >= 3 else ranked[:3]


@pytest.mark.parametrize("cells", [1, 200, 1 << 23])
def test_blocks_of_any_size_give_what_one_row_at_a_time_gives(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_BLOCK_CELLS", cells)
    random = np.random.default_rng(1)
    selves = random.normal(size=(60, 6)) + 0.7
    selves[20:30] = selves[5]  # equal texts
    selves = (selves / np.linalg.norm(selves, axis=1, keepdims=True)).astype(np.float32)
    anchors = np.array([0, 5, 7, 22, 59])
    views = random.normal(size=(5, 6)) + 0.7
    views = (views / np.linalg.norm(views, axis=1, keepdims=True)).astype(np.float32)
    pairs = choose_candidates(anchors, vectors_of(views.tolist()), vectors_of(selves.tolist()))
    assert pairs.tolist() == [
        [anchor, at]
        for anchor, view in zip(anchors.tolist(), views, strict=True)
        for at in expected(anchor, view, selves)
    ]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(0, 1000))
def test_any_library_gives_distinct_candidates_within_the_caps(size: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 3, size=(size, 3)) + 0.01
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    selves = vectors_of(rows.tolist())
    pairs = choose_candidates(np.arange(size), selves, selves)
    assert len({tuple(pair) for pair in pairs.tolist()}) == len(pairs)
    assert (pairs[:, 0] != pairs[:, 1]).all()
    counts = np.bincount(pairs[:, 0], minlength=size)
    assert (counts >= min(3, size - 1)).all()
    assert (counts <= 12).all()


def test_equal_texts_tie_exactly() -> None:
    texts = ["b", "a", "b", "c"]
    vectors = DistinctVectors(texts, Given({"a": [1, 0], "b": [0, 1], "c": [0.6, 0.8]}), "document")
    assert vectors.vectors.shape == (3, 2)
    assert vectors.of([0, 1, 2]).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_a_skill_is_what_its_id_description_and_first_lines_say() -> None:
    skill = Skill("the-id", "name", "It heats.", "# Title\n\nGo  there.\n## Steps\n- heat\n" + "x" * 2000)
    assert self_text(skill).startswith("the-id: It heats.\n\nGo there. - heat xxx")
    assert len(preview(skill)) == 1200
    assert self_text(Skill("bare", "", "", "")) == "bare:"
