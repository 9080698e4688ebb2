"""Whether the clocks can be trusted: time-outs run on one, time stamps and certificates on the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime

import httpx

from skillarena.orchestration.doctor.finding import Finding, Status, ok
from skillarena.orchestration.tracking_store import redacted

_TIMEOUT_S = 5.0
_MOST_SKEW_S = 60.0
_NAP_S = 0.1
_MOST_DRIFT_S = 1.0
_FIX = "let the system keep its time: timedatectl set-ntp true (in a container or virtual machine: on its host)"


def clock(servers: Sequence[str]) -> Finding:
    """Compare the two clocks with each other, and the wall clock with the first server that tells its time.

    Args:
        servers: URLs; those that do not answer are passed over.
    """
    steady, wall = time.monotonic(), time.time()
    time.sleep(_NAP_S)
    passed, shown = time.monotonic() - steady, time.time() - wall
    if passed < _NAP_S / 2 or abs(shown - passed) > _MOST_DRIFT_S:
        why = f"in {passed:.2f} s of the monotonic clock the wall clock went {shown:.2f} s"
        return Finding(Status.FAIL if passed < _NAP_S / 2 else Status.WARN, why, _FIX)
    for server in servers:
        skew = _skew(server)
        if skew is None:
            continue
        found = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} {redacted(server)}"
        if abs(skew) > _MOST_SKEW_S:
            return Finding(Status.WARN, found, _FIX, {"skew_s": round(skew), "server": redacted(server)})
        return ok(f"steady; at most {abs(skew) + 1:.0f} s from {redacted(server)}", skew_s=round(skew))
    return ok("steady; not compared with others, as no server to compare with answers")


def _skew(server: str) -> float | None:
    """Seconds that this clock is ahead; None when the server does not tell its time."""
    try:
        before = time.time()
        answer = httpx.head(server, timeout=_TIMEOUT_S)
        middle = (before + time.time()) / 2
        said = parsedate_to_datetime(answer.headers["date"]).timestamp()
        return middle - (said + 0.5 + int(answer.headers.get("age", 0)))  # a Date is cut to whole seconds
    except (httpx.HTTPError, httpx.InvalidURL, OSError, KeyError, ValueError):
        return None
