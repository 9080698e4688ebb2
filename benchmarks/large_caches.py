"""How large caches of scores and parses get, and how long reading from them takes."""

from __future__ import annotations

import gc
import os
import random
import sqlite3
import statistics
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import orjson
from harness import REPEATS, Result

from skillarena.selectors.cache import DiskCache
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.library import SkillLibrary

_INSERTED = 100_000
_KEY_BYTES = 32
_SAMPLE = 20_000
_SCORES_READ, _PARSES_READ = 300, 31
"""What one selection reads: its pairs in one call, and the parses of its task and candidates one by one."""


def large_caches(entries: int) -> Iterator[Result]:
    """Caches of scores and of parses in their own format, filled in order of their keys."""
    lot = random.Random(0)  # noqa: S311 (no secret)
    scores = [np.float32(lot.uniform(-10, 10)).tobytes() for _ in range(256)]
    parser, skills = HeuristicParser(), SkillLibrary.load(["bundled"]).skills
    parses = [orjson.dumps(asdict(parser.parse_skill(skill))) for skill in skills]
    yield from _cache("scores", entries, scores, lambda keys: [keys])
    yield from _cache("parses", entries, parses, lambda keys: [[key] for key in keys])


def _cache(
    what: str, entries: int, values: Sequence[bytes], calls: Callable[[list[bytes]], list[list[bytes]]]
) -> Iterator[Result]:
    """Size and reading of one cache, beside a small one.

    Args:
        what: its name.
        entries: how many.
        values: what they hold, in turns.
        calls: the keys of one selection as it asks for them.
    """
    title = f"{what} cache, {entries:,} entries"
    with TemporaryDirectory(prefix="skillarena-bench-") as name:
        large, small = Path(name) / "large.sqlite", Path(name) / "small.sqlite"
        started = time.perf_counter()
        keys = fill(large, entries, values)
        filling = time.perf_counter() - started
        small_keys = _random_keys(_SAMPLE)
        DiskCache(small).put_many({key: values[at % len(values)] for at, key in enumerate(small_keys)})
        gc.collect()  # closes its connection; the last one moves all into the file
        size = large.stat().st_size
        detail = {
            "bytes_per_entry": size / entries,
            "bytes_per_entry_written_in_any_order": small.stat().st_size / _SAMPLE,
            "value_bytes": statistics.mean(map(len, values)),
            "fill_s": filling,
        }
        yield Result("selection", f"{title}: size on disk", size / 1024**3, "GiB", detail=detail)
        count = _SCORES_READ if what == "scores" else _PARSES_READ
        yield from _reading(f"{title}: read {count}", (large, keys), (small, small_keys), count, calls)


def _reading(
    title: str,
    large: tuple[Path, list[bytes]],
    small: tuple[Path, list[bytes]],
    count: int,
    calls: Callable[[list[bytes]], list[list[bytes]]],
) -> Iterator[Result]:
    lot = random.Random(1)  # noqa: S311 (no secret)
    times: dict[str, list[float]] = {"cold": [], "warm": [], "absent": [], "small": []}
    found = 0

    def timed(kind: str, cache: DiskCache, keys: list[bytes]) -> int:
        started = time.perf_counter()
        hits = sum(len(cache.get_many(some)) for some in calls(keys))
        times[kind].append(time.perf_counter() - started)
        return hits

    small_cache = DiskCache(small[0])
    small_cache.get_many(small[1][:1])  # opens it
    for _ in range(REPEATS):
        wanted = lot.sample(large[1], count)
        _forget(large[0])
        cache = DiskCache(large[0])
        found += timed("cold", cache, wanted)
        timed("warm", cache, wanted)
        found -= timed("absent", cache, _random_keys(count))
        timed("small", small_cache, lot.sample(small[1], count))
    medians = {f"{kind}_ms": 1000 * statistics.median(took) for kind, took in times.items()}
    detail = {**medians, "repeats": REPEATS, "found": found / (REPEATS * count)}
    for kind, words in (("cold", "nothing of the file in memory"), ("warm", "again"), ("absent", "none is there")):
        yield Result("selection", f"{title}, {words}", medians[f"{kind}_ms"], "ms", detail=detail)
    slower = medians["warm_ms"] / medians["small_ms"]
    yield Result("selection", f"{title} again, over as many among {_SAMPLE:,}", slower, "x", detail=detail)


def fill(path: Path, entries: int, values: Sequence[bytes]) -> list[bytes]:
    """A cache with many entries, written past the cache's own checks; returns a sample of its keys."""
    DiskCache(path).put_many({})  # makes the table
    gc.collect()  # closes its connection, which is part of a cycle
    stored = [zlib.crc32(value).to_bytes(4, "big") + value for value in values]
    sample: list[bytes] = []
    lot = np.random.default_rng(0)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -500000"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN")
        for first in range(0, entries, _INSERTED):
            count = min(_INSERTED, entries - first)
            keys = np.empty((count, _KEY_BYTES), dtype=np.uint8)
            keys[:, 8:] = np.frombuffer(lot.bytes(count * (_KEY_BYTES - 8)), dtype=np.uint8).reshape(count, -1)
            numbers = np.arange(first, first + count, dtype=np.uint64) * np.uint64(2**64 // entries)
            keys[:, :8] = numbers.astype(">u8").view(np.uint8).reshape(count, 8)
            rows = [row.tobytes() for row in keys]
            sample += rows[:: max(1, entries // _SAMPLE)]
            connection.executemany(
                "INSERT INTO entries VALUES (?, ?)",
                ((key, stored[(first + at) % len(stored)]) for at, key in enumerate(rows)),
            )
        connection.execute("COMMIT")
    return sample


def _random_keys(count: int) -> list[bytes]:
    return [os.urandom(_KEY_BYTES) for _ in range(count)]


def _forget(path: Path) -> None:
    """Let the system drop a file's pages from memory, where it has a way."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)
