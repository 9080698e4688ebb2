"""The cache on disk: shared by threads and processes, and never the reason why a run fails."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import resource
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from skillarena.selectors.cache import DiskCache, _connect, cached_rows, digest


def entries(first: int, last: int) -> dict[bytes, bytes]:
    return {digest(str(number)): str(number).encode() for number in range(first, last)}


def test_digest_keeps_parts_apart() -> None:
    assert len(digest("a")) == 32
    assert len({digest("ab", "c"), digest("a", "bc"), digest("abc"), digest("abc", ""), digest()}) == 5
    assert digest("lone \ud800") != digest("lone ?")


def test_values_outlive_the_object(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "cache.sqlite"
    DiskCache(path).put_many(entries(0, 2000))
    cache = DiskCache(str(path))
    assert cache.get_many(entries(0, 2000)) == entries(0, 2000)
    assert cache.get_many([digest("7"), digest("7"), digest("absent")]) == {digest("7"): b"7"}
    assert cache.get_many([]) == {}


def test_a_key_holds_its_last_value(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    cache.put_many({b"k": b"first"})
    cache.put_many({b"k": b"second", b"l": b""})
    assert cache.get_many([b"k", b"l"]) == {b"k": b"second", b"l": b""}


def test_a_damaged_value_in_a_sound_file_is_missing_and_can_be_stored_again(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    cache.put_many({b"k": b"value", b"l": b"other"})
    with closing(sqlite3.connect(tmp_path / "cache.sqlite")) as connection, connection:
        connection.execute("UPDATE entries SET value = 'abc' WHERE key = ?", (b"k",))
        connection.execute("UPDATE entries SET value = substr(value, 1, 6) WHERE key = ?", (b"l",))
    assert cache.get_many([b"k", b"l"]) == {}
    cache.put_many({b"k": b"value"})
    assert cache.get_many([b"k"]) == {b"k": b"value"}


def test_threads_share_one_cache(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    barrier = threading.Barrier(6)

    def work(number: int) -> int:
        barrier.wait(timeout=30)
        for step in range(10):
            cache.put_many(entries(step * 20, step * 20 + 20))
            assert len(cache.get_many(entries(0, step * 20 + 20))) == step * 20 + 20
        return number

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(work, range(6))) == list(range(6))


def work_in_process(path: Path, barrier: threading.Barrier) -> None:
    """Runs in a process of its own; a failed assertion gives a non-zero exit code."""
    cache = DiskCache(path)
    barrier.wait(timeout=60)
    for step in range(20):
        cache.put_many(entries(step * 20, step * 20 + 20))
        assert len(cache.get_many(entries(0, step * 20 + 20))) == step * 20 + 20


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("content", [None, b"this is no database " * 500], ids=["new", "damaged"])
def test_processes_share_one_cache(tmp_path: Path, method: str, content: bytes | None) -> None:
    path = tmp_path / "cache.sqlite"
    if content is not None:
        path.write_bytes(content)
    context: Any = multiprocessing.get_context(method)
    barrier = context.Barrier(4)
    processes = [context.Process(target=work_in_process, args=(path, barrier)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert DiskCache(path).get_many(entries(0, 400)) == entries(0, 400)
    assert len(list(tmp_path.glob("*.damaged-*"))) == (content is not None)


def put_in_process(cache: DiskCache) -> None:
    cache.put_many(entries(5, 10))


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_cache_in_use_may_cross_into_another_process(tmp_path: Path, method: str) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    cache.put_many(entries(0, 5))
    context: Any = multiprocessing.get_context(method)
    process = context.Process(target=put_in_process, args=(cache,))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == 0
    assert cache.get_many(entries(0, 10)) == entries(0, 10)
    assert pickle.loads(pickle.dumps(cache)).get_many(entries(0, 10)) == entries(0, 10)


@contextmanager
def warnings_of(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []
    with caplog.at_level(logging.WARNING, logger="skillarena.selectors.cache"):
        caplog.clear()
        yield found
        found.extend(record.getMessage() for record in caplog.records)


def test_a_file_that_is_no_database_is_moved_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "cache.sqlite"
    path.write_bytes(b"rubbish" * 1000)
    cache = DiskCache(path)
    with warnings_of(caplog) as messages:
        assert cache.get_many(entries(0, 3)) == {}
        cache.put_many(entries(0, 3))
        assert cache.get_many(entries(0, 3)) == entries(0, 3)
    assert len(messages) == 1
    assert "moved to" in messages[0]
    assert (tmp_path / "cache.sqlite.damaged-1").read_bytes() == b"rubbish" * 1000


@pytest.mark.parametrize(("column", "damaged"), [(b"key BLOB", b"k\xae\xae BLOB"), (b"value BLOB", b"vague BLOB")])
def test_a_file_whose_schema_is_damaged_is_begun_anew(tmp_path: Path, column: bytes, damaged: bytes) -> None:
    path = tmp_path / "cache.sqlite"
    first = DiskCache(path)
    first.put_many({b"k": b"value"})
    for connection in first._connections.values():
        connection.close()
    path.write_bytes(path.read_bytes().replace(column, damaged))
    cache = DiskCache(path)
    assert cache.get_many([b"k"]) == {}
    cache.put_many({b"k": b"value"})
    assert cache.get_many([b"k"]) == {b"k": b"value"}
    assert (tmp_path / "cache.sqlite.damaged-1").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="open files are counted in /proc")
def test_a_damaged_file_is_not_left_open(tmp_path: Path) -> None:
    path = tmp_path / "cache.sqlite"
    _connect(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CRE\xae\xaeE TABLE"))
    with pytest.raises((sqlite3.DatabaseError, UnicodeDecodeError)) as caught:
        _connect(path)
    opened = [number.resolve() for number in Path("/proc/self/fd").iterdir()]
    assert caught.value and path not in opened  # the error is held, and so is what its frames hold


def test_a_file_damaged_inside_is_moved_aside_and_earlier_copies_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "cache.sqlite"
    (tmp_path / "cache.sqlite.damaged-1").write_bytes(b"earlier")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)")
        connection.executemany("INSERT INTO entries VALUES (?, ?)", entries(0, 5000).items())
    data = bytearray(path.read_bytes())
    data[4096:] = b"\x5a" * (len(data) - 4096)  # the first page, which holds the schema, stays
    path.write_bytes(data)
    cache = DiskCache(path)
    with warnings_of(caplog) as messages:
        cache.put_many(entries(0, 3))
    assert cache.get_many(entries(0, 5000)) == entries(0, 3)
    assert [("moved to" in message) for message in messages] == [True]
    assert (tmp_path / "cache.sqlite.damaged-1").read_bytes() == b"earlier"
    assert (tmp_path / "cache.sqlite.damaged-2").exists()


def check_left_out(cache: DiskCache, caplog: pytest.LogCaptureFixture) -> None:
    with warnings_of(caplog) as messages:
        for _ in range(3):
            cache.put_many({digest("big"): b"x" * 1_000_000})
            assert cache.get_many([digest("big")]) == {}
    assert len(messages) == 1
    assert "left out from now on" in messages[0]


def test_a_cache_that_cannot_be_made_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("x")
    check_left_out(DiskCache(tmp_path / "file" / "cache.sqlite"), caplog)
    (tmp_path / "folder").mkdir()
    check_left_out(DiskCache(tmp_path / "folder"), caplog)


def test_a_database_that_refuses_writes_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "cache.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE VIEW entries AS SELECT 1 AS key, 2 AS value")
    check_left_out(DiskCache(path), caplog)


def use_without_rights(path: Path) -> None:
    """Runs in a process of its own, which gives up the superuser's rights if it has them."""
    if os.geteuid() == 0:
        os.setuid(65_534)
    cache = DiskCache(path)
    cache.put_many(entries(0, 3))
    assert cache.get_many(entries(0, 3)) == {}


def test_a_read_only_folder_fails_no_run() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cache.sqlite").touch()
        (folder / "cache.sqlite").chmod(0o444)
        folder.chmod(0o555)
        process = multiprocessing.get_context("fork").Process(
            target=use_without_rights, args=(folder / "cache.sqlite",)
        )
        process.start()
        process.join(timeout=60)
        folder.chmod(0o755)
        assert process.exitcode == 0
        assert [path.name for path in folder.iterdir()] == ["cache.sqlite"]


def fill_disk(path: Path) -> None:
    """Runs in a process of its own that may write files of 256 KiB at most, which is what a full disk looks like."""
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (262_144, 262_144))
    cache = DiskCache(path)
    cache.put_many({digest("small"): b"x"})
    assert cache.get_many([digest("small")]) == {digest("small"): b"x"}
    cache.put_many({digest("big"): b"x" * 1_000_000})
    assert cache.get_many([digest("small")]) == {}


def test_a_full_disk_fails_no_run(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=fill_disk, args=(tmp_path / "cache.sqlite",))
    process.start()
    process.join(timeout=60)
    assert process.exitcode == 0
    assert DiskCache(tmp_path / "cache.sqlite").get_many([digest("small"), digest("big")]) == {digest("small"): b"x"}


def test_a_callers_mistake_is_not_taken_for_a_bad_file(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    with pytest.raises(TypeError):
        cache.put_many({b"k": object()})  # type: ignore[dict-item]
    assert cache.get_many([b"k"]) == {}
    cache.put_many({b"k": b"v"})
    assert cache.get_many([b"k"]) == {b"k": b"v"}


def test_rows_are_computed_once_and_in_steps(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    asked: list[int] = []

    def squares(numbers: list[int]) -> NDArray[np.float32]:
        asked.append(len(numbers))
        return np.array([[number, number**2] for number in numbers], dtype=np.float32)

    numbers = [*range(1500), 3, 3]
    keys = [digest(str(number)) for number in numbers]
    rows, computed = cached_rows(cache, keys, numbers, squares)
    assert (computed, asked) == (1500, [1024, 476])
    assert rows.dtype == np.float32
    assert (rows == np.array([[number, number**2] for number in numbers])).all()
    again, computed = cached_rows(DiskCache(cache.path), keys, numbers, squares)
    assert (computed, len(asked)) == (0, 2)
    assert (again == rows).all()


def test_an_interrupted_computation_keeps_what_was_finished(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache.sqlite")
    keys = [digest(str(number)) for number in range(1500)]

    def interrupted(numbers: list[int]) -> NDArray[np.float32]:
        if numbers[0] > 0:
            raise KeyboardInterrupt
        return np.array(numbers, dtype=np.float32)

    with pytest.raises(KeyboardInterrupt):
        cached_rows(cache, keys, range(1500), interrupted)
    assert len(cache.get_many(keys)) == 1024
