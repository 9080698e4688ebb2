"""Exact search for the 30 nearest skills against numpy and FAISS, and what an index takes to build, load and hold.

    python benchmarks/bench_retrieval.py                 2,000, 67,884 and 1,000,000 skills; 4 GB of disk for a while
    python benchmarks/bench_retrieval.py --quick         without the largest
    python benchmarks/bench_retrieval.py --pool FILE     the texts of a pool's skills, then numbered copies of them

All vectors have 1024 numbers and unit length. They are made from texts by a stand-in for an embedder whose own time is
taken off, so everything else is what a selector does: `Recall` over a library, its matrix in the index store.

The search is compared with what one writes in numpy, a product and `argpartition`, on the same matrix in ordinary
memory (the largest one is searched where it lies, as two of it would not fit everywhere). Both know the query's vector
already. ``64 at once, each`` is the time for one of 64 queries asked together, over numpy's time for one query.
FAISS's flat index is the third part where the package is installed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from multiprocessing import get_context
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
import psutil
import typer
from harness import REPEATS, Result, interleaved, machine, ratio, report, seconds
from numpy.typing import NDArray

from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import CachedEmbedder
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.nearest import nearest
from skillarena.selectors.recall import Recall

DIMENSIONS = 1024
TOP = 30
TOGETHER = 64
PAPER = 67_884
"""Skills in the SkillReranker paper's library; the bounds hold for this size."""
SIZES = (2_000, PAPER, 1_000_000)
_ONE_QUERY_REPEATS = 101
"""Both parts read the same matrix and differ by a few hundredths, so their medians have to be sharp."""
_LARGE_BYTES = 10**9
"""Matrices above are there once only: no second copy for numpy or FAISS, no embedding cache."""
_WORKERS = 4
_TIMEOUT_S = 300.0
_TABLE = 4096
_ENCODED_AT_ONCE = 1024

Matrix = NDArray[np.float32]


def bench(*, quick: bool, pool: Path | None = None, sizes: Sequence[int] | None = None) -> Iterator[Result]:
    """All results, size by size."""
    if find_spec("faiss") is None:
        typer.echo("FAISS is left out: it is not installed (pip install faiss-cpu)")
    skills = SkillLibrary.load([pool]).skills if pool else ()
    texts = list(dict.fromkeys(skill.metadata for skill in skills))
    for size in sizes or (SIZES[:2] if quick else SIZES):
        with TemporaryDirectory(prefix="skillarena-bench-") as folder:
            yield from _one_size(_texts(texts, size), Path(folder), repeats=3 if quick else REPEATS)


def _texts(pool: Sequence[str], size: int) -> list[str]:
    """The pool's texts, each once, and as many numbered copies as are missing."""
    known = pool or ["skill"]
    return [*pool[:size], *(f"{known[number % len(known)]} {number}" for number in range(len(pool), size))]


class Stand:
    """A stand-in for an embedder: texts to random unit vectors, near where parts of a text's digest agree."""

    identity = "stand-in/1"

    def __init__(self) -> None:
        self.seconds = 0.0
        """Its own time."""
        self._table = np.random.default_rng(0).standard_normal((_TABLE, DIMENSIONS), dtype=np.float32)

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> Matrix:
        """float32[n, 1024], rows of unit length; queries and documents alike."""
        started = time.perf_counter()
        digests = b"".join(sha256(text.encode()).digest()[:6] for text in texts)
        places = np.frombuffer(digests, dtype="<u2").reshape(-1, 3) % _TABLE
        rows = self._table[places].sum(axis=1)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.seconds += time.perf_counter() - started
        return np.asarray(rows, dtype=np.float32)


def _library(texts: Sequence[str]) -> SkillLibrary:
    return SkillLibrary(tuple(Skill(f"{number:08}", text, "", "") for number, text in enumerate(texts)))


def _one_size(texts: Sequence[str], folder: Path, repeats: int) -> Iterator[Result]:
    library, stand, store = _library(texts), Stand(), IndexStore(folder / "indexes")
    started = time.perf_counter()
    recall = Recall(library, stand, store)
    build = time.perf_counter() - started - stand.seconds
    skills = f"{len(texts):,} skills"
    on_disk = sum(path.stat().st_size for path in (folder / "indexes").iterdir())
    detail = {"file_bytes": on_disk, "embedding_left_out_s": stand.seconds}
    yield Result("retrieval", f"{skills}: build the index, embedding left out", build, "s", detail=detail)
    yield from _load(library, stand, store, folder, repeats)
    yield from _search(recall, len(texts), on_disk, repeats)
    del recall  # pages that this process maps too would count for others by half
    if on_disk < _LARGE_BYTES:
        yield _memory(texts, folder, on_disk)


def _load(library: SkillLibrary, stand: Stand, store: IndexStore, folder: Path, repeats: int) -> Iterator[Result]:
    """A second process's start: the texts are known, the matrix is mapped and no number is read yet."""
    name = f"{len(library):,} skills: load the index"
    load = partial(Recall, library, stand, store)
    if len(library) * DIMENSIONS * 4 >= _LARGE_BYTES:
        times = [seconds(load) for _ in range(repeats)]
        yield Result("retrieval", name, statistics.median(times), "s", detail={"repeats": repeats})
        return
    cached = CachedEmbedder(stand, DiskCache(folder / "embeddings.sqlite"))
    texts = [skill.metadata for skill in library.skills]

    def read_cache() -> Matrix:
        blocks = [texts[at : at + _ENCODED_AT_ONCE] for at in range(0, len(texts), _ENCODED_AT_ONCE)]
        return np.concatenate([cached.encode(block, "document") for block in blocks])

    stock, ours = interleaved([read_cache, load], repeats)
    detail = {"cache_s": statistics.median(stock), "mapped_s": statistics.median(ours), "repeats": repeats}
    yield Result("retrieval", name, statistics.median(ours), "s", detail=detail)
    name = f"{name}, against reading its vectors from the embedding cache"
    yield Result("retrieval", name, ratio(stock, ours), "x", detail=detail)


def _search(recall: Recall, size: int, on_disk: int, repeats: int) -> Iterator[Result]:
    skills = f"{size:,} skills: top {TOP}"
    mapped = recall.vectors()
    large = on_disk >= _LARGE_BYTES
    matrix = mapped if large else np.array(mapped)
    queries = Stand().encode([f"query {number}" for number in range(TOGETHER)], "query")

    def numpy_one() -> NDArray[np.intp]:
        return np.argpartition(matrix @ queries[0], -TOP)[-TOP:]

    def numpy_together() -> NDArray[np.intp]:
        return np.argpartition(queries @ matrix.T, -TOP, axis=1)[:, -TOP:]

    def ours_one() -> object:
        return nearest(mapped, queries[:1], TOP)

    def ours_together() -> object:
        return nearest(mapped, queries, TOP)

    often = repeats if large or repeats < REPEATS else _ONE_QUERY_REPEATS
    stock, ours = interleaved([numpy_one, ours_one], often)
    many_stock, many_ours = interleaved([numpy_together, ours_together], repeats)
    each = [taken / TOGETHER for taken in many_ours]
    bounds = (1.0, 5.0) if size == PAPER else (None, None)
    yield _against("numpy", f"{skills}, one query", stock, ours, bounds[0])
    yield _against("numpy's one query", f"{skills}, {TOGETHER} at once, each", stock, each, bounds[1])
    yield _against("numpy", f"{skills}, {TOGETHER} at once", many_stock, many_ours)
    if not large and find_spec("faiss") is not None:  # apart, as its threads spin on after an answer
        index = _faiss_index(matrix)
        stock, ours = interleaved([lambda: index.search(queries[:1], TOP), ours_one], often)
        yield _against("FAISS flat", f"{skills}, one query", stock, ours)
        stock, ours = interleaved([lambda: index.search(queries, TOP), ours_together], repeats)
        yield _against("FAISS flat", f"{skills}, {TOGETHER} at once", stock, ours)
    yield _differences(mapped, queries, size)


def _faiss_index(matrix: Matrix) -> Any:
    import faiss

    index = faiss.IndexFlatIP(DIMENSIONS)
    index.add(matrix)
    return index


def _against(
    other: str, name: str, stock: Sequence[float], ours: Sequence[float], bound: float | None = None
) -> Result:
    detail = {
        "other_ms": 1000 * statistics.median(stock),
        "ours_ms": 1000 * statistics.median(ours),
        "repeats": len(ours),
    }
    return Result("retrieval", f"{name}, against {other}", ratio(stock, ours), "x", bound, detail=detail)


def _differences(matrix: Matrix, queries: Matrix, size: int) -> Result:
    """Rows, order and products against a full stable sort of the product."""
    wrong = 0
    for some in (queries[:1], queries[:8]):
        products = np.ascontiguousarray((matrix @ some.T).T)
        expected = np.argsort(-products, axis=1, kind="stable")[:, :TOP]
        rows, values = nearest(matrix, some, TOP)
        wrong += int((rows != expected).sum() + (values != np.take_along_axis(products, expected, axis=1)).sum())
    name = f"{size:,} skills: top {TOP} of 9 queries that differ from a full sort"
    return Result("retrieval", name, wrong, "skills", 0, at_least=False)


def _memory(texts: Sequence[str], folder: Path, on_disk: int) -> Result:
    one, several = (_held(texts, folder, workers) for workers in (1, _WORKERS))
    name = f"{len(texts):,} skills: memory of {_WORKERS} processes' indexes over one process's"
    detail = {"one_bytes": one, f"{_WORKERS}_bytes": several, "file_bytes": on_disk, "counted": "PSS"}
    # Below, what each process has for itself (the rows of skills, buffers) outweighs the matrix.
    bound = 1.25 if len(texts) >= PAPER else None
    return Result("retrieval", name, several / one, "x", bound, at_least=False, detail=detail)


def _held(texts: Sequence[str], folder: Path, workers: int) -> int:
    """Bytes by which processes grow that load the same index and search it, shared pages divided among them (PSS)."""
    context = get_context("spawn")
    grown, together = context.Queue(), context.Barrier(workers)
    processes = [context.Process(target=_hold, args=(texts, folder, grown, together)) for _ in range(workers)]
    for process in processes:
        process.start()
    try:
        return sum(grown.get(timeout=_TIMEOUT_S) for _ in processes)
    finally:
        for process in processes:
            process.join(_TIMEOUT_S)
            process.kill()


def _hold(texts: Sequence[str], folder: Path, grown: Queue[int], together: Barrier) -> None:
    library, stand = _library(texts), Stand()
    np.ones((64, 64), dtype=np.float32) @ np.ones((64, 64), dtype=np.float32)  # buffers that any product needs
    before = psutil.Process().memory_full_info().pss
    recall = Recall(library, stand, IndexStore(folder / "indexes"))
    recall.top("query", TOP)
    together.wait(_TIMEOUT_S)
    after = psutil.Process().memory_full_info().pss
    together.wait(_TIMEOUT_S)  # nobody ends while another counts
    grown.put(after - before)


def main(
    quick: Annotated[bool, typer.Option(help="Without the largest size, fewer repeats.")] = False,
    pool: Annotated[Path | None, typer.Option(help="Pool of skills whose texts are used.")] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Measure; exit code 1 when a bound is missed."""
    where = machine()
    raise typer.Exit(report(bench(quick=quick, pool=pool), where, out))


if __name__ == "__main__":
    typer.run(main)
