"""Which cells one command's sweep was made of, kept beside them: ``OUTPUT_DIR/sweeps/NAME.json``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from skillarena.conf.errors import DataError
from skillarena.envs.json_file import write_json
from skillarena.orchestration.cells import Cell


def write_sweep(output_dir: Path, name: str, cells: Sequence[Cell]) -> Path:
    """Note a sweep's cells; the same sweep writes the same file. Returns the file.

    Args:
        output_dir: the run's output folder.
        name: the sweep's name, as its parent run in MLflow has it.
        cells: preflighted cells.

    Raises:
        EnvError: the folder cannot be written.
    """
    path = output_dir / "sweeps" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    folders = [os.path.relpath(cell.directory, path.parent) for cell in cells]
    write_json(path, {"sweep": name, "cells": folders})
    return path


def read_sweep(path: Path) -> list[Path]:
    """Cell folders of a sweep file. Raises ``DataError`` when it is none."""
    return [Path(os.path.normpath(path.parent / folder)) for folder in _read(path).cells]


def read_sweep_name(path: Path) -> str:
    """The name under which MLflow knows the sweep of a file. Raises ``DataError`` when it is none."""
    return _read(path).sweep


class _Sweep(BaseModel):
    sweep: str
    cells: list[Annotated[str, Field(pattern=r"^[^\x00]+$")]] = Field(min_length=1)


def _read(path: Path) -> _Sweep:
    try:
        return _Sweep.model_validate_json(path.read_bytes())
    except OSError as error:
        problem = type(error).__name__
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join([*map(str, first["loc"][:1]), first["msg"]])
    raise DataError(
        f"{path}: not a sweep's file ({problem})",
        "give a file of OUTPUT_DIR/sweeps, an output folder or a cell's folder",
    )
