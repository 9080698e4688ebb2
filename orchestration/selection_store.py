"""Selections kept on disk: one for each selector configuration, library and task, whatever the backbone and seed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from skillarena.conf.errors import DataError
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.interface import Selection

FORMAT = 2
"""Raise it when the stored form or the built-in methods change, so that older selections are computed anew."""


class SelectionStore:
    """Selections by their key (``Cell.selection_key``); only the driver reads and writes it."""

    def __init__(self, cache_dir: Path) -> None:
        self._cache = DiskCache(cache_dir / "selections.sqlite")

    def get(self, key: str) -> Selection | None:
        """The stored selection, or None; one of another form (written by another version) counts as none."""
        stored = self._cache.get_many([bytes.fromhex(key)]).get(bytes.fromhex(key))
        try:
            return None if stored is None else selection_from_json(stored)
        except DataError:
            return None

    def put(self, key: str, selection: Selection) -> None:
        """Keep a selection."""
        self._cache.put_many({bytes.fromhex(key): selection_to_json(selection)})


def selection_to_json(selection: Selection) -> bytes:
    """A selection as JSON."""
    return orjson.dumps(asdict(selection), option=orjson.OPT_SERIALIZE_NUMPY)


def selection_from_json(data: bytes) -> Selection:
    """The inverse of ``selection_to_json``. Raises ``DataError`` for anything else."""
    try:
        return _SCHEMA.validate_python(orjson.loads(data))
    except orjson.JSONDecodeError as error:
        problem = str(error)
    except ValidationError as error:
        first = error.errors()[0]
        problem = ": ".join([*map(str, first["loc"]), first["msg"]])
    raise DataError(f"not a selection ({problem})", "it was written by another version or is damaged")


_SCHEMA = TypeAdapter(Selection)
