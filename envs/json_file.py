"""JSON files that hold what can be made again: written as a whole, and made again when they are damaged."""

from __future__ import annotations

import json
import logging
import tempfile
from pathlib import Path
from typing import Any

from skillarena.conf.errors import EnvError

_FIX = "let cache_dir or the variable SKILLARENA_CACHE name a folder that you can write to"

logger = logging.getLogger(__name__)


def read_json(path: Path) -> Any:
    """The file's value, or None when there is no file or it is damaged (which is logged).

    Raises:
        EnvError: the file cannot be read.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvError(f"cannot read {path}: {error.strerror}", _FIX) from error
    except (ValueError, RecursionError) as error:
        logger.warning("%s is damaged and will be made again (%s)", path, error)
        return None


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` so that readers find the old file or the new one, never a part, whoever else writes it.

    Raises:
        EnvError: the file cannot be written.
    """
    text = json.dumps(value, ensure_ascii=False, indent=1)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, delete=False) as file:
            new = Path(file.name)
            try:
                file.write(text)
                file.close()
                new.replace(path)
            except BaseException:
                new.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise EnvError(f"cannot write {path}: {error.strerror}", _FIX) from error
