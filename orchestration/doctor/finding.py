"""What one check found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """Runs are possible, but something is not as it should be, or not there."""
    FAIL = "fail"
    """What was asked for cannot run."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer."""

    status: Status
    found: str
    """What is there, or what is wrong."""
    fix: str = ""
    """What to do; empty when there is nothing to do."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The same for machines: plain data."""


def ok(found: str, **facts: Any) -> Finding:
    """All is well."""
    return Finding(Status.OK, found, facts=facts)


def lacking(needed: bool, found: str, fix: str, **facts: Any) -> Finding:
    """Something is missing, which fails only where it is needed."""
    return Finding(Status.FAIL if needed else Status.WARN, found, fix, facts)
