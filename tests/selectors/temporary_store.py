"""An index store for parts that are made where no test's own folder is at hand."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from pathlib import Path

from skillarena.selectors.index_store import IndexStore


class TemporaryStore(IndexStore):
    """Its folder is removed when it is."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(prefix="skillarena-test-")
        weakref.finalize(self, shutil.rmtree, folder)
        super().__init__(Path(folder))
