"""Where files that can be made again are kept."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from skillarena.conf.user_path import user_path


def cache_root() -> Path:
    """The folder named by ``SKILLARENA_CACHE``, else the user's cache folder of this system; it may not exist yet.

    Raises ``ConfigError`` when the variable's value can be no path.
    """
    named = os.environ.get("SKILLARENA_CACHE")
    return user_path(named).absolute() if named else Path(platformdirs.user_cache_dir("skillarena"))
