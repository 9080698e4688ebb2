"""When to ask a chat endpoint again, and how long to wait before."""

from __future__ import annotations

import logging
import math
import time
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import tenacity

from skillarena.orchestration.backbones.interface import Usage

log = logging.getLogger(__name__)


class TryAgain(Exception):
    """One attempt failed for a reason that may pass."""

    def __init__(self, reason: str, *, wasted: Usage | None = None) -> None:
        super().__init__(reason)
        self.wasted = wasted or Usage()
        """What a reply took that could not be used."""


class Throttled(TryAgain):
    """The endpoint has too many calls. The gate lets this one through again in time, so it is no failed attempt."""


def retrying(max_retries: int, max_wait_s: float, deadline: float) -> tenacity.Retrying:
    """The retry policy of one call: exponential back-off with full jitter after faults.

    Calls that were throttled do not wait here: the gate spaces them out for all calls together.

    Args:
        max_retries: failed attempts after the first one.
        max_wait_s: longest back-off in seconds.
        deadline: ``time.monotonic()`` after which no attempt begins.
    """
    back_off = tenacity.wait_random_exponential(multiplier=0.5, max=max_wait_s)
    failed = 0

    def stop(state: tenacity.RetryCallState) -> bool:
        nonlocal failed
        failed += not isinstance(_fault(state), Throttled)
        return failed > max_retries or time.monotonic() >= deadline

    def wait(state: tenacity.RetryCallState) -> float:
        return 0.0 if isinstance(_fault(state), Throttled) else back_off(state)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TryAgain), stop=stop, wait=wait, before_sleep=_tell, reraise=True
    )


def _fault(state: tenacity.RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None


def _tell(state: tenacity.RetryCallState) -> None:
    log.info(
        "attempt %d gave %s; the next one follows in %.1f s", state.attempt_number, _fault(state), state.upcoming_sleep
    )


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header, seconds or an HTTP date; None when there is none or it makes no sense."""
    if not header:
        return None
    try:
        seconds = float(header)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
    except (ValueError, TypeError, IndexError, OverflowError):  # whatever the parser stumbles over
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
