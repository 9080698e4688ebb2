"""Where files that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_root() -> Path:
    """The folder named by ``SKILLARENA_CACHE``, else the user's cache folder of this system; it may not exist yet."""
    named = os.environ.get("SKILLARENA_CACHE")
    return Path(named).expanduser().absolute() if named else Path(platformdirs.user_cache_dir("skillarena"))
