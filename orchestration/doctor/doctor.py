"""`skillarena doctor`: the command."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.console import (
    EXIT_INCOMPLETE,
    EXIT_OK,
    console_for_results,
    logging_to,
    plain,
    plain_json,
)
from skillarena.orchestration.doctor.checking import run_checks
from skillarena.orchestration.doctor.choice import all_checks, checks_for
from skillarena.orchestration.doctor.discretion import secret_values, without
from skillarena.orchestration.doctor.finding import Finding, Status
from skillarena.orchestration.doctor.models import shipped_key_variables
from skillarena.orchestration.doctor.needs import needs_of_cells
from skillarena.orchestration.preflight import check_shared
from skillarena.orchestration.settings import Settings

_STYLES = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red"}
_WORDS = {Status.OK: "ok", Status.WARN: "to look at", Status.FAIL: "failed"}


def examine(all_settings: Sequence[Settings], *, experiment: bool, as_json: bool) -> int:
    """Check this machine and print what was found.

    Args:
        all_settings: as for ``run_cells``.
        experiment: they were asked for: what they need must be there, and the rest is left out.
        as_json: print plain data instead of a table.

    Returns:
        The exit code (see ``console.py``): 1 when a check failed.

    Raises:
        SkillArenaError: the experiment could not even be planned.
    """
    check_shared(all_settings)
    settings, secrets = all_settings[0], shipped_key_variables()
    if experiment:
        needs = needs_of_cells(all_settings)
        secrets += needs.keys
        checks = checks_for(settings, needs)
    else:
        checks = all_checks(settings)
    console = Console(stderr=True, highlight=False)
    began = time.monotonic()
    with logging_to(console), console.status("") as status:
        logging.getLogger("skillarena").setLevel(logging.WARNING)
        found = run_checks(checks, lambda names: status.update(f"checking: {', '.join(names)}"))
    took = time.monotonic() - began
    hidden = secret_values(secrets)
    if as_json:
        sys.stdout.write(plain_json(without(_json(found, took), hidden)) + "\n")
    else:
        _print(found, took, hidden)
    failed = any(finding.status is Status.FAIL for finding in found.values())
    return EXIT_INCOMPLETE if failed else EXIT_OK


def _json(found: Mapping[str, Finding], took: float) -> str:
    checks = [
        {
            "check": name,
            "status": finding.status.value,
            "found": finding.found,
            "fix": finding.fix,
            "facts": dict(finding.facts),
        }
        for name, finding in found.items()
    ]
    ready = all(finding.status is not Status.FAIL for finding in found.values())
    return orjson.dumps(
        {"ready": ready, "seconds": round(took, 1), "checks": checks}, option=orjson.OPT_INDENT_2
    ).decode()


def _print(found: Mapping[str, Finding], took: float, hidden: Sequence[str]) -> None:
    out = console_for_results()
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        table.add_column(overflow="fold")
    for name, finding in found.items():
        table.add_row(Text(finding.status, style=_STYLES[finding.status]), name, _text(finding.found, hidden))
        if finding.fix:
            table.add_row("", "", _text(f"fix: {finding.fix}", hidden))
    out.print(table)
    counts = Counter(finding.status for finding in found.values())
    words = ", ".join(f"{counts[status]} {_WORDS[status]}" for status in Status if counts[status])
    out.print(Text(f"{len(found)} checks in {took:.0f} s: {words}"))


def _text(text: str, hidden: Sequence[str]) -> Text:
    return Text(plain(without(text, hidden)))
