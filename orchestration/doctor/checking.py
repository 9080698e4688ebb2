"""Runs checks side by side, each with a time-out; one that raises has failed and stops no other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread

from skillarena.conf.errors import SkillArenaError
from skillarena.orchestration.doctor.finding import Finding, Status

TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Check:
    """Something to look at."""

    name: str
    """What people call it, for example ``Java``."""
    look: Callable[[], Finding]
    timeout_s: float = TIMEOUT_S
    late: Status = Status.FAIL
    """What it counts as when it is not done in time."""


def run_checks(checks: Sequence[Check], tell: Callable[[Sequence[str]], None]) -> dict[str, Finding]:
    """Run all checks at once.

    A check that is late goes on in its thread, which does not keep the process from ending.

    Args:
        checks: with names that differ.
        tell: gets the names of those under way whenever one is done.

    Returns:
        What each found, by name, in the order of ``checks``.
    """
    answers: SimpleQueue[tuple[str, Finding]] = SimpleQueue()
    started = time.monotonic()
    for check in checks:
        Thread(target=_answer, args=(check, answers), name=f"doctor {check.name}", daemon=True).start()
    open_checks = {check.name: check for check in checks}
    found: dict[str, Finding] = {}
    while open_checks:
        tell(list(open_checks))
        next_end = started + min(check.timeout_s for check in open_checks.values())
        try:
            name, finding = answers.get(timeout=max(0.0, next_end - time.monotonic()))
        except Empty:
            for check in [check for check in open_checks.values() if started + check.timeout_s <= time.monotonic()]:
                found[open_checks.pop(check.name).name] = _late(check)
            continue
        if open_checks.pop(name, None) is not None:
            found[name] = finding
    return {check.name: found[check.name] for check in checks}


def _answer(check: Check, answers: SimpleQueue[tuple[str, Finding]]) -> None:
    try:
        finding = check.look()
    except SkillArenaError as error:
        finding = Finding(Status.FAIL, error.message, error.fix)
    except (Exception, SystemExit) as error:  # packages that are broken may raise anything while they are imported
        said = next(iter(str(error).strip().splitlines()), "")
        finding = Finding(Status.FAIL, f"the check failed: {type(error).__name__}: {said}".rstrip(": "))
    answers.put((check.name, finding))


def _late(check: Check) -> Finding:
    return Finding(
        check.late,
        f"not done after {check.timeout_s:g} s",
        "try again when the machine is less busy; if it stays so, something it waits for hangs",
    )
