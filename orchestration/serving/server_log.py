"""What a model server's log says about why it failed."""

from __future__ import annotations

import re

_PREFIX = re.compile(
    r"^(?:\([\w -]+ pid=\d+\)\s*)?(?:(?:INFO|WARNING|ERROR|DEBUG)\s+\d\d-\d\d [\d:]+\s+\[[^\]]*\]\s*)?"
)
_FAULT = re.compile(r"[\w.]*(?:error|exception)\b.{0,3}:|.*\b(?:error|killed|out of memory)\b", re.IGNORECASE)
_FOLLOWS = re.compile(r"engine core initialization failed|failed core proc|see (?:root cause|stack trace) above", re.I)
_MOST_FAULTS = 3
_MOST_LINES = 3
_LONGEST_LINE = 300


def reasons(log: str) -> list[str]:
    """The lines of a log that explain a failure: its last distinct faults, or its last lines when it names none.

    Prefixes of vLLM's log lines and tracebacks are left out, and so are faults that only follow from others.
    """
    lines = [bare for line in log.splitlines() if (bare := _PREFIX.sub("", line).strip()) and set(bare) - set("^~= -")]
    faults = [line for line in lines if _FAULT.match(line) and not _FOLLOWS.search(line)]
    chosen = list(dict.fromkeys(faults))[-_MOST_FAULTS:] or lines[-_MOST_LINES:]
    return [line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in chosen]
