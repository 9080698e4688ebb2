"""Files that name a sweep's cells."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skillarena.conf.errors import DataError
from skillarena.orchestration.sweep_file import read_sweep, read_sweep_name, write_sweep


def cells(*folders: Path) -> Any:
    return [SimpleNamespace(directory=folder) for folder in folders]


def test_names_the_cells_relative_to_itself(tmp_path: Path) -> None:
    output = tmp_path / "out"
    folders = [output / "cells" / "one", output / "cells" / "two", tmp_path / "elsewhere"]
    path = write_sweep(output, "0123456789ab", cells(*folders))
    assert path == output / "sweeps" / "0123456789ab.json"
    assert read_sweep(path) == folders
    assert read_sweep_name(path) == "0123456789ab"
    assert str(tmp_path) not in path.read_text()


def test_still_fits_after_the_output_folder_moved(tmp_path: Path) -> None:
    path = write_sweep(tmp_path / "out", "0123456789ab", cells(tmp_path / "out" / "cells" / "one"))
    shutil.move(tmp_path / "out", tmp_path / "moved")
    moved = tmp_path / "moved" / path.relative_to(tmp_path / "out")
    assert read_sweep(moved) == [tmp_path / "moved" / "cells" / "one"]


def test_the_same_sweep_writes_the_same_file(tmp_path: Path) -> None:
    first = write_sweep(tmp_path, "0123456789ab", cells(tmp_path / "cells" / "one")).read_bytes()
    assert write_sweep(tmp_path, "0123456789ab", cells(tmp_path / "cells" / "one")).read_bytes() == first


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"sweep": "a", "cells": [3]}', '{"sweep": "a", "cells": 3}', "\x00"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not a sweep's file") as caught:
        read_sweep(path)
    assert "sweeps" in caught.value.fix


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a sweep's file"):
        read_sweep(tmp_path / "none.json")
