"""JSON files that are written as a whole and survive damage."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skillarena.conf.errors import EnvError
from skillarena.envs.json_file import read_json, write_json


def test_values_come_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "value.json"
    value = {"text": "50 °C", "list": [1, 2.5, None]}
    write_json(file, value)
    assert read_json(file) == value


def test_missing_file_is_no_value(tmp_path: Path) -> None:
    assert read_json(tmp_path / "missing.json") is None


@pytest.mark.parametrize("content", [b"", b'{"a": ', b"\xff\xfe"])
def test_damaged_file_is_no_value_and_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    file = tmp_path / "value.json"
    file.write_bytes(content)
    with caplog.at_level(logging.WARNING):
        assert read_json(file) is None
    assert str(file) in caplog.text


def test_failed_write_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    write_json(file, 1)
    with pytest.raises(TypeError):
        write_json(file, object())
    assert read_json(file) == 1
    assert list(tmp_path.iterdir()) == [file]


def test_folder_that_cannot_be_written_is_one_error_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder is needed")
    for call in (lambda: write_json(tmp_path / "taken" / "value.json", 1), lambda: read_json(tmp_path / "taken" / "v")):
        with pytest.raises(EnvError) as caught:
            call()
        assert "SKILLARENA_CACHE" in caught.value.fix


def test_readers_never_see_a_part(tmp_path: Path) -> None:
    file = tmp_path / "value.json"
    values = [[n] * 20_000 for n in range(8)]
    write_json(file, values[0])
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(write_json, file, value) for value in values]
        while not all(write.done() for write in writes):
            assert read_json(file) in values
        for write in writes:
            write.result()
    assert list(tmp_path.iterdir()) == [file]
