"""Lends helpers of the other tests, and prints what was broken and how long it took to go on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
sys.path += [str(TESTS / "orchestration"), str(TESTS / "selectors")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of all faults."""
    injections = sys.modules.get("injections")
    if injections is None or not injections.DIARY:
        return
    terminalreporter.section("injected faults")
    terminalreporter.write_line(injections.table(injections.DIARY))
