"""What the command line prints and the exit codes it gives."""

from __future__ import annotations

import sys

from skillarena.conf.errors import SkillArenaError

EXIT_OK = 0
EXIT_INCOMPLETE = 1
"""Everything ran, but some episodes or cells have no result."""
EXIT_MISTAKE = 2
"""Nothing could run: a mistake in the configuration, data, library, environment or backbone."""
EXIT_INTERRUPTED = 130
"""Stopped by the user; the same command continues."""


def print_error(error: SkillArenaError) -> int:
    """One message with the fix on standard error; returns the exit code."""
    print(f"error: {error}", file=sys.stderr)
    return EXIT_MISTAKE
