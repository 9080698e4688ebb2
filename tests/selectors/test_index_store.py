"""What is computed once for a library."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from skillarena.conf.errors import BackboneError
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.measure import is_offline


def test_it_is_computed_once_and_found_by_another_object(tmp_path: Path) -> None:
    calls: list[bool] = []

    def make() -> bytes:
        calls.append(is_offline())
        return b"graph"

    assert IndexStore(tmp_path / "new").get_or_make("graph", "library", "model", make=make) == b"graph"
    assert IndexStore(tmp_path / "new").get_or_make("graph", "library", "model", make=make) == b"graph"
    assert calls == [True]


def test_another_key_or_kind_is_another_content(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)
    keys = [("graph", "a"), ("graph", "b"), ("links", "a"), ("graph", "a", ""), ("graph",)]
    for number, (kind, *key) in enumerate(keys):
        store.get_or_make(kind, *key, make=lambda number=number: bytes([number]))
    again = [store.get_or_make(kind, *key, make=lambda: b"new") for kind, *key in keys]
    assert again == [bytes([number]) for number in range(len(keys))]


def test_of_two_at_once_one_computes(tmp_path: Path) -> None:
    calls: list[int] = []

    def make() -> bytes:
        calls.append(1)
        time.sleep(0.2)
        return b"x"

    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(IndexStore(tmp_path).get_or_make("k", make=make)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert found == [b"x"] * 4
    assert len(calls) == 1


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    store = IndexStore(tmp_path)

    def fail() -> bytes:
        raise BackboneError("no answer")

    with pytest.raises(BackboneError):
        store.get_or_make("k", make=fail)
    assert store.get_or_make("k", make=lambda: b"y") == b"y"


def test_a_folder_that_cannot_be_made_costs_time_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    store = IndexStore(tmp_path / "file" / "indexes")
    assert [store.get_or_make("k", make=lambda: b"z") for _ in range(2)] == [b"z", b"z"]
    assert "cannot be kept" in caplog.text


MATRIX = np.arange(12, dtype=np.float32).reshape(6, 2)


def blocks(calls: list[int]) -> Callable[[], Iterator[np.ndarray]]:
    def make() -> Iterator[np.ndarray]:
        calls.append(1)
        yield MATRIX[:4]
        yield MATRIX[4:]

    return make


def test_a_matrix_is_made_once_and_mapped_from_its_file(tmp_path: Path) -> None:
    calls: list[int] = []
    for _ in range(2):
        found = IndexStore(tmp_path / "new").vectors_or_make("vectors", "a", rows=6, make=blocks(calls))
        assert found.tolist() == MATRIX.tolist()
        assert not found.flags.owndata and not found.flags.writeable
    assert len(calls) == 1
    file, lock = sorted((tmp_path / "new").iterdir())
    assert lock.name == f"{file.name}.lock"
    assert np.fromfile(file, dtype=np.float32, count=MATRIX.size).tolist() == MATRIX.ravel().tolist()


@pytest.mark.parametrize("left", [0, 1, 20, 47])
def test_a_matrix_cut_off_is_made_again(left: int, tmp_path: Path) -> None:
    calls: list[int] = []
    store = IndexStore(tmp_path)
    store.vectors_or_make("vectors", rows=6, make=blocks(calls))
    file = next(path for path in tmp_path.iterdir() if path.suffix != ".lock")
    file.write_bytes(file.read_bytes()[:left])
    for _ in range(2):
        assert store.vectors_or_make("vectors", rows=6, make=blocks(calls)).tolist() == MATRIX.tolist()
    assert len(calls) == 2


def test_a_matrix_that_cannot_be_kept_is_given_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    calls: list[int] = []
    store = IndexStore(tmp_path / "file" / "indexes")
    assert store.vectors_or_make("vectors", rows=6, make=blocks(calls)).tolist() == MATRIX.tolist()
    assert "cannot be kept" in caplog.text
    assert len(calls) == 1


def test_a_full_disk_leaves_no_part_of_a_matrix(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    found = IndexStore(tmp_path).vectors_or_make("vectors", rows=6, make=blocks([]))
    assert found.tolist() == MATRIX.tolist()
    assert "No space left" in caplog.text
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_a_matrix_whose_making_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> Iterator[np.ndarray]:
        yield MATRIX[:4]
        raise BackboneError("no answer")

    store = IndexStore(tmp_path)
    with pytest.raises(BackboneError):
        store.vectors_or_make("vectors", rows=6, make=fail)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]
    assert store.vectors_or_make("vectors", rows=6, make=blocks([])).tolist() == MATRIX.tolist()
