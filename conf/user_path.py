"""Paths as people write them in options, configuration and variables of the environment."""

from __future__ import annotations

import os
from pathlib import Path

from skillarena.conf.errors import ConfigError

_SHOWN = 80


def user_path(text: str | Path) -> Path:
    """A path, with the home folder in place of ``~``; whether anything is there does not matter.

    Raises:
        ConfigError: no file can have this name: it is too long, holds a character that no name may hold, or names the
            home of somebody unknown.
    """
    try:
        os.fsencode(text)
        path = Path(text).expanduser()
        if "\0" in str(path):
            raise ValueError("it holds a NUL")
        path.exists()
    except (OSError, ValueError, RuntimeError) as error:
        shown = f"{str(text)[:_SHOWN]!r}" + ("…" if len(str(text)) > _SHOWN else "")
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise ConfigError(f"{shown} cannot be a path ({reason})", "give a file or folder of this machine") from error
    return path


def is_folder(path: Path) -> bool:
    """Whether a folder is there; False as well where there can be none, as a name in the path is too long."""
    try:
        return path.is_dir()
    except OSError:
        return False
