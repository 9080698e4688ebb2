"""What is computed once for a library."""

from __future__ import annotations

import threading
import time
from pathlib import Path

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
