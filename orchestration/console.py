"""What the command line prints and the exit codes it gives."""

from __future__ import annotations

import json
import logging
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillarena.conf.errors import SkillArenaError
from skillarena.conf.redaction import without_credentials

EXIT_OK = 0
EXIT_INCOMPLETE = 1
"""Everything ran, but some episodes or cells have no result."""
EXIT_MISTAKE = 2
"""Nothing could run: a mistake in the configuration, data, library, environment or backbone."""
EXIT_BUDGET = 3
"""``run.max_tokens`` or ``run.max_cost`` is used up; the same command continues with a new budget."""
EXIT_INTERRUPTED = 130
"""Stopped by the user; the same command continues."""


if TYPE_CHECKING:
    from rich.console import Console

_WIDTH_OF_FILES = 160


def console_for_results() -> Console:
    """Standard output: as wide as the terminal (or ``COLUMNS`` says), and wide enough for any table in a file."""
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if known else _WIDTH_OF_FILES)


def plain(text: object) -> str:
    """Text without control characters, which a file or a server could use to command the terminal."""
    return str(text).translate(_SHOWN)


def plain_json(text: str) -> str:
    """JSON that says the same without control characters: they are escaped, as JSON itself does with most."""
    return text.translate(_ESCAPED)


def _commands(code: int) -> bool:
    return chr(code) not in "\n\t" and unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs")


class _Shown(dict[int, int]):
    """What stands for a character, looked up once for each."""

    def __missing__(self, code: int) -> int:
        self[code] = ord("\ufffd") if _commands(code) else code
        return self[code]


class _Escaped(dict[int, int | str]):
    """What stands for a character in JSON, likewise."""

    def __missing__(self, code: int) -> int | str:
        self[code] = json.dumps(chr(code))[1:-1] if _commands(code) else code
        return self[code]


_SHOWN, _ESCAPED = _Shown(), _Escaped()


def print_error(error: SkillArenaError) -> int:
    """One message with the fix on standard error; returns the exit code."""
    print(f"error: {plain(without_credentials(str(error)))}", file=sys.stderr)
    return EXIT_MISTAKE


@contextmanager
def logging_to(console: Console) -> Iterator[None]:
    """What the run has to say above the live display, without timestamps in the way."""
    from rich.logging import RichHandler

    handler = RichHandler(console=console, show_path=False, show_time=False, markup=False)
    logger = logging.getLogger("skillarena")
    logger.setLevel(logging.INFO)
    handler.addFilter(_without_control_characters)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = True


def _without_control_characters(record: logging.LogRecord) -> bool:
    record.msg, record.args = plain(record.getMessage()), ()
    return True
