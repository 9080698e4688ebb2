"""SkillRouter: what its models read, byte for byte, and how it chooses."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from real_libraries import LARGE, HashedWords, pool, public_skills
from selector_contract import HOT_MUG, SKILLS, ScoredParts, SelectorContract, WordEmbedder, task, up_to
from temporary_store import TemporaryStore
from tiny_qwen3 import INSTRUCTION, make_causal, make_encoder, reference_of

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import CachedEmbedder, SentenceTransformerEmbedder
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selection, Selector, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.measure import measured
from skillarena.selectors.qwen3_reranker import Qwen3Reranker
from skillarena.selectors.skillrouter import SkillRouter, encoded_text, reranked_text

CONF = Path(__file__).parents[2] / "conf"


class TestSkillRouter(SelectorContract):
    at_least = at_most = 2

    def make(self, parts: Any) -> Selector:
        if len(parts.library) == 1:
            return SkillRouter(parts, recall=1, top_k=1)
        return SkillRouter(parts, recall=up_to(20, parts), top_k=2)

    def test_works_with_a_library_of_one_skill(self, parts: ScoredParts) -> None:
        parts.library = SkillLibrary(parts.library.skills[:1])
        assert len(self.make(parts).open(task(HOT_MUG)).selection.skills) == 1


class TestSkillRouterEncoder(SelectorContract):
    at_most = 1

    def make(self, parts: Any) -> Selector:
        return SkillRouter(parts, recall=up_to(20, parts), rerank=False)


# --- what the models read

LONG = Skill("x", "n", "d" * 600, "b" * 9000)


def test_the_encoder_reads_name_description_and_body_between_bars_up_to_their_caps() -> None:
    caps = {"description_chars": 500, "body_chars": 8000}
    assert encoded_text(SKILLS.by_id["heat"], **caps) == (
        "object-heater | Heats a held object. Use when holding an object. | Use the microwave."
    )
    assert encoded_text(LONG, **caps) == "n | " + "d" * 500 + " | " + "b" * 8000
    assert encoded_text(Skill("x", "n", "", ""), **caps) == "n |  | "


def test_the_reranker_reads_less_of_the_body_or_none() -> None:
    assert reranked_text(LONG, "flat_full") == "n | " + "d" * 500 + " | " + "b" * 2000
    assert reranked_text(LONG, "flat_nd") == "n | " + "d" * 500
    assert reranked_text(Skill("x", "n", "", ""), "flat_full") == "n |  | "
    assert reranked_text(Skill("x", "n", "", ""), "flat_nd") == "n | "


def test_the_published_models_get_the_instructions_they_were_trained_with() -> None:
    embedder = yaml.safe_load((CONF / "embedder" / "skillrouter_embedding_0_6b.yaml").read_text(encoding="utf-8"))
    assert embedder["query_prompt"] == (
        "Instruct: Given a task description, retrieve the most relevant skill document that would help an agent"
        " complete the task\nQuery:"
    )
    assert (embedder["document_prompt"], embedder["max_length"]) == ("", 4096)
    reranker = yaml.safe_load((CONF / "reranker" / "skillrouter_reranker_0_6b.yaml").read_text(encoding="utf-8"))
    assert (reranker["instruction"], reranker["separator"]) == (INSTRUCTION, "blank_line")
    assert reranker["max_length"] == 4096


# --- how it chooses, worked out by hand


class Table:
    """An embedder and a reranker whose numbers are written down."""

    identity = "table"

    def __init__(self, vectors: dict[str, list[float]], logits: dict[str, float]) -> None:
        self.vectors = vectors
        self.logits = logits
        self.queries: list[str] = []
        self.pairs: list[tuple[str, str]] = []

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        if kind == "query":
            self.queries += texts
            return np.array([[1, 0]] * len(texts), dtype=np.float32)
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.pairs += pairs
        return np.array([self.logits[document] for _, document in pairs], dtype=np.float32)


class TableParts:
    library = SkillLibrary(tuple(Skill(name, name, f"about {name}", f"body {name}") for name in "abcde"))

    def __init__(self) -> None:
        self.indexes = TemporaryStore()
        cosines = {"a": 0.6, "b": 0.8, "c": 1.0, "d": 0.0, "e": 0.28}
        self.embedder = self.reranker = Table(
            {f"{n} | about {n} | body {n}": [x, round((1 - x * x) ** 0.5, 6)] for n, x in cosines.items()},
            {f"{n} | about {n} | body {n}": logit for n, logit in {"a": 2.5, "b": -1.0, "c": -1.0, "e": 9.0}.items()},
        )


def select(parts: Any, goal: str = "goal", **options: Any) -> Selection:
    return SkillRouter(parts, **options).open(task(goal)).selection


def test_candidates_by_cosine_are_reranked_by_logit_and_ties_keep_the_encoders_order() -> None:
    parts = TableParts()
    selection = select(parts, recall=3, top_k=2)
    rows = selection.details["candidates"]
    assert [(row["id"], round(row["cosine"], 4), row["score"]) for row in rows] == [
        ("c", 1.0, -1.0),
        ("b", 0.8, -1.0),
        ("a", 0.6, 2.5),
    ]
    assert selection.details["ranking"] == ["a", "c", "b"]
    assert [(skill.id, skill.score) for skill in selection.skills] == [("a", 2.5), ("c", -1.0)]
    assert parts.reranker.pairs == [("goal", f"{n} | about {n} | body {n}") for n in "cba"]


def test_without_reranking_the_encoders_order_stands_and_no_reranker_is_needed() -> None:
    parts = TableParts()
    selection = select(parts, recall=4, top_k=2, rerank=False)
    assert selection.details["ranking"] == ["c", "b", "a", "e"]
    assert [skill.id for skill in selection.skills] == ["c", "b"]
    assert parts.reranker.pairs == []
    assert SkillRouter(parts, recall=4, rerank=False).needs == ("embedder",)
    assert SkillRouter(parts, recall=4).needs == ("embedder", "reranker")


def test_the_encoder_reads_a_cut_instruction_and_the_reranker_all_of_it() -> None:
    parts = TableParts()
    goal = "x" * 2500
    select(parts, goal, recall=3)
    assert parts.embedder.queries == ["x" * 2000]
    assert {query for query, _ in parts.reranker.pairs} == {goal}


def test_skills_that_differ_only_behind_the_cap_tie_in_library_order(tmp_path: Path) -> None:
    twins = SkillLibrary(tuple(Skill(i, "n", "d", "b" * 8000 + i) for i in ("c", "a", "b")))
    parts = ScoredParts(twins, WordEmbedder(), HeuristicParser(), tmp_path)
    assert select(parts, recall=3).details["ranking"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recall": 0}, "recall must be a whole number"),
        ({"recall": 2, "top_k": 3}, "top_k=3 asks for more skills than recall=2"),
        ({"recall": 2, "top_k": 0}, "top_k must be a whole number"),
        ({"recall": 2, "body_chars": 0}, "body_chars must be a whole number"),
        ({"recall": 2, "document": "flat-full"}, "did you mean 'flat_full'"),
    ],
)
def test_options_without_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        select(TableParts(), **options)


def test_a_library_smaller_than_recall_is_refused_with_both_numbers() -> None:
    with pytest.raises(LibraryError, match=r"recall=20 .* 5"):
        select(TableParts())


# --- with models of the published make


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_checkpoints_of_its_make_run_from_end_to_end(tmp_path: Path) -> None:
    """The models of the shipped choices, shrunk and with random weights, against both worked out pair by pair."""
    import torch
    from tiny_qwen3 import by_hand
    from transformers import AutoTokenizer, Qwen3Model

    encoder, causal = make_encoder(tmp_path / "encoder"), make_causal(tmp_path / "causal")
    shipped = {
        group: yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))
        for group, name in (
            ("embedder", "skillrouter_embedding_0_6b"),
            ("reranker", "skillrouter_reranker_0_6b"),
        )
    }
    here = {"device": "cpu", "dtype": "float32", "max_length": 1024}
    known = reference_of(tmp_path, causal, separator="\n\n")
    for section in shipped.values():
        del section["_target_"], section["name"]
    embedder = SentenceTransformerEmbedder(**{**shipped["embedder"], **here, "model": str(encoder)})
    reranker = Qwen3Reranker(**{**shipped["reranker"], **here, "model": str(causal), "reference": known})

    parts: Any = SimpleNamespace(library=SKILLS, embedder=embedder, reranker=reranker, indexes=TemporaryStore())
    selection = select(parts, HOT_MUG, recall=4, top_k=2)

    tokenizer, network = AutoTokenizer.from_pretrained(encoder), Qwen3Model.from_pretrained(encoder).eval()

    def vector(text: str) -> NDArray[np.float64]:
        with torch.no_grad():
            last = network(tokenizer(text, return_tensors="pt")["input_ids"]).last_hidden_state[0, -1].numpy()
        return np.asarray(last / np.linalg.norm(last), dtype=np.float64)

    query = vector(shipped["embedder"]["query_prompt"] + HOT_MUG)
    texts = {skill.id: f"{skill.name} | {skill.description} | {skill.body}" for skill in SKILLS.skills}
    cosines = {skill_id: float(vector(text) @ query) for skill_id, text in texts.items()}
    nearest = sorted(cosines, key=lambda skill_id: -cosines[skill_id])[:4]
    logits = dict(zip(nearest, by_hand(causal, [(HOT_MUG, texts[i]) for i in nearest], separator="\n\n"), strict=True))

    rows = selection.details["candidates"]
    assert [row["id"] for row in rows] == nearest
    np.testing.assert_allclose([row["cosine"] for row in rows], [cosines[i] for i in nearest], atol=1e-4)
    np.testing.assert_allclose([row["score"] for row in rows], [logits[i] for i in nearest], atol=1e-3)
    assert selection.details["ranking"] == sorted(nearest, key=lambda skill_id: -logits[skill_id])


# --- real libraries


@pytest.mark.parametrize("benchmark", ["alfworld", "scienceworld"])
def test_real_libraries_are_ranked_whole(benchmark: Any, tmp_path: Path) -> None:
    library = public_skills(benchmark)
    parts = ScoredParts(library, HashedWords(), HeuristicParser(), tmp_path)
    selection = select(parts, HOT_MUG, recall=20, top_k=2)
    assert len(set(selection.details["ranking"])) == 20
    texts = [encoded_text(skill, description_chars=500, body_chars=8000) for skill in library.skills]
    cosines = HashedWords().encode(texts, "document") @ HashedWords().encode([HOT_MUG], "query")[0]
    best = sorted(range(len(texts)), key=lambda i: -cosines[i])[:20]
    assert [row["id"] for row in selection.details["candidates"]] == [library.skills[i].id for i in best]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [2_000, pytest.param(LARGE, marks=pytest.mark.long)])
def test_large_libraries_take_bounded_time_and_memory(size: int, tmp_path: Path) -> None:
    library = pool(size)
    words = HashedWords()
    parts = ScoredParts(library, CachedEmbedder(words, DiskCache(tmp_path / "v.sqlite")), HeuristicParser(), tmp_path)
    selector = SkillRouter(parts)
    tracemalloc.start()
    start = time.process_time()
    first = measured(selector, parts, task(HOT_MUG))
    indexed, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(first.details["ranking"]) == 20
    assert words.longest_call <= 1024
    vectors = size * 384 * 4
    assert peak < vectors + 60e6, f"{peak / 1e6:.0f} MB"
    start = time.process_time()
    again = measured(selector, parts, task("put two book in desk."))
    searched = time.process_time() - start
    print(f"\n{size} skills: indexed in {indexed:.1f} s with {peak / 1e6:.0f} MB, searched in {searched:.3f} s")
    assert again.details["ranking"] != first.details["ranking"]
    assert indexed < 60 + size / 200
    assert searched < 5
