"""What every selection method must do, whatever it computes: the suite, and parts to run it with."""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
import pytest

from skillarena.envs.interface import Task
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import SentenceTransformerEmbedder
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import MARKS, Embedder, Parser, SelectionCost, Selector, SelectorSession, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.llm import CachedLlm, ChatModel, NoModel
from skillarena.selectors.measure import counters, measured
from skillarena.selectors.parser_cache import CachedParser
from skillarena.selectors.rerankers import CachedReranker, SimilarityReranker

HOT_MUG = "put a hot mug in coffeemachine."
BOIL = (
    "Your task is to boil water. For compounds without a boiling point, combusting the substance is also acceptable. "
    "First, focus on the substance. Then, take actions that will cause it to change its state of matter."
)
GOALS = (HOT_MUG, BOIL, "put two book in desk.", "sing")
ODD_GOALS = ["", "?", "Ünïcode ‮ 🜁🜄 \x00 名\n\n\tput", "x" * 5000, "do this; do that; " * 200]

SKILLS = SkillLibrary(
    (
        Skill("find", "object-finder", "Finds a mug or another object and takes it from its place.", "Go and look."),
        Skill("heat", "object-heater", "Heats a held object. Use when holding an object.", "Use the microwave."),
        Skill("place", "object-placer", "Puts a held object on a shelf.", "## Prerequisites\n- You hold an object."),
        Skill("boil", "water-boiler", "Boils water on a stove.", "## Outcome\nThe water is steam."),
        Skill("invoice", "invoice-writer", "Writes invoices for customers.", "Sums up the items."),
        Skill("twin", "object-finder", "", ""),
    )
)


def up_to(wanted: int, parts: Any) -> int:
    """A count that a library of any size can meet."""
    return min(wanted, len(parts.library))


def task(goal: str, benchmark: str = "alfworld") -> Task:
    return Task(benchmark, "valid_seen", f"{zlib.crc32(goal.encode('utf-8', 'replace')):064x}", "t", "any", goal)


class WordEmbedder:
    """Texts as counts of hashed words."""

    identity = "words"

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> np.ndarray:
        vectors = np.full((len(texts), 128), 1e-3, dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for word in re.findall(r"\w+", text.lower()):
                vector[zlib.crc32(word.encode()) % 128] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class RememberingEmbedder:
    """Embeds a text once in the life of the test process."""

    def __init__(self, embedder: Embedder) -> None:
        self.identity = embedder.identity
        self._embedder = embedder
        self._vectors: dict[tuple[str, str], np.ndarray] = {}

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> np.ndarray:
        new = list(dict.fromkeys(text for text in texts if (kind, text) not in self._vectors))
        self._vectors |= {(kind, text): row for text, row in zip(new, self._embedder.encode(new, kind), strict=True)}
        return np.array([self._vectors[kind, text] for text in texts])


@cache
def minilm() -> Embedder:
    return RememberingEmbedder(SentenceTransformerEmbedder(model="minilm", device="cpu"))


@cache
def bundled() -> SkillLibrary:
    return SkillLibrary.load(["bundled"])


class ScoredParts:
    """A library with models that count what they do."""

    def __init__(
        self, library: SkillLibrary, embedder: Embedder, parser: Parser, cache: Path, llm: ChatModel | None = None
    ) -> None:
        self.library = library
        self.embedder = embedder
        reranker = SimilarityReranker(embedder=embedder, scale=12.0, threshold=0.3)
        self.reranker = CachedReranker(reranker, DiskCache(cache / "scores.sqlite"))
        self.parser = CachedParser(parser, DiskCache(cache / "parses.sqlite"))
        self.llm = CachedLlm(llm or NoModel(), DiskCache(cache / "answers.sqlite"))
        self.indexes = IndexStore(cache / "indexes")

    def cost(self) -> SelectionCost:
        return counters(self.reranker, self.parser, self.llm)


class SelectorContract:
    """Subclass it as ``Test…``, make the method in ``make``, and say how many skills it may choose."""

    at_least = 1
    at_most = 4
    tools = 0
    """Tools that its sessions offer."""
    llm: ChatModel | None = None
    """The language model it asks."""

    def make(self, parts: Any) -> Selector:
        """The method with options that fit the parts' library, which may hold a single skill."""
        raise NotImplementedError

    @pytest.fixture(params=["words", pytest.param("minilm", marks=pytest.mark.slow)])
    def parts(self, request: pytest.FixtureRequest, tmp_path: Path) -> ScoredParts:
        if request.param == "words":
            return ScoredParts(SKILLS, WordEmbedder(), HeuristicParser(), tmp_path, self.llm)
        return ScoredParts(bundled(), minilm(), HeuristicParser(), tmp_path, self.llm)

    def test_chooses_skills_of_the_library_without_repeats_and_within_bounds(self, parts: ScoredParts) -> None:
        selector = self.make(parts)
        for goal in GOALS:
            selection = selector.open(task(goal)).selection
            ids = [skill.id for skill in selection.skills]
            assert len(set(ids)) == len(ids)
            assert self.at_least <= len(ids) <= self.at_most
            assert selection.details["chosen"] == ids
            assert set(selection.marks) <= MARKS.keys()
            for skill in selection.skills:
                original = parts.library.by_id[skill.id]
                assert (skill.name, skill.description, skill.text) == (
                    original.name,
                    original.description,
                    original.text,
                )
                assert np.isfinite(skill.score)
                assert skill.reason

    def test_chooses_the_same_again_and_in_a_new_object(self, parts: ScoredParts) -> None:
        selector = self.make(parts)
        first = [selector.open(task(goal)).selection for goal in GOALS]
        backwards = [self.make(parts).open(task(goal)).selection for goal in reversed(GOALS)]
        assert first == [selector.open(task(goal)).selection for goal in GOALS]
        assert first == backwards[::-1]

    def test_gives_a_selection_that_travels(self, parts: ScoredParts) -> None:
        selection = self.make(parts).open(task(HOT_MUG)).selection
        assert pickle.loads(pickle.dumps(selection)) == selection
        assert orjson.loads(orjson.dumps(selection.details)) == selection.details

    def test_session_has_tools_of_different_names_and_closes(self, parts: ScoredParts) -> None:
        session = self.make(parts).open(task(HOT_MUG))
        assert isinstance(session, SelectorSession)
        names = [tool.name for tool in session.tools]
        assert len(set(names)) == len(names) == self.tools
        session.close()

    @pytest.mark.parametrize("goal", ODD_GOALS, ids=["empty", "mark", "unicode", "long", "many-steps"])
    def test_takes_any_instruction(self, parts: ScoredParts, goal: str) -> None:
        selection = self.make(parts).open(task(goal, benchmark="elsewhere")).selection
        assert self.at_least <= len(selection.skills) <= self.at_most
        orjson.dumps(selection.details)

    def test_works_with_a_library_of_one_skill(self, parts: ScoredParts) -> None:
        parts.library = SkillLibrary(parts.library.skills[:1])
        selection = self.make(parts).open(task(HOT_MUG)).selection
        assert len(selection.skills) == min(1, self.at_most)

    def test_costs_what_its_parts_did(self, parts: ScoredParts) -> None:
        selector = self.make(parts)
        first = measured(selector, parts, task(HOT_MUG)).cost
        assert first.pairs_scored == parts.reranker.scored
        assert first.seconds > 0
        again = measured(selector, parts, task(HOT_MUG)).cost
        assert again.pairs_scored == 0
        assert again.pairs_cached == first.pairs_scored + first.pairs_cached

    def test_loads_no_model_when_it_is_made(self, parts: ScoredParts) -> None:
        class LibraryOnly:
            library = parts.library

        self.make(LibraryOnly())
