"""Which ALFWorld games the suites play."""

from __future__ import annotations

import os
from pathlib import Path


def official() -> bool:
    """ALFWorld's own games are where ALFWORLD_DATA says; the package sets that variable too, also without any games."""
    root = os.environ.get("ALFWORLD_DATA")
    return bool(root) and (Path(root) / "json_2.1.1" / "valid_seen").is_dir()
