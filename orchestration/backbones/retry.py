"""When to ask a chat endpoint again, and how long to wait before."""

from __future__ import annotations

import logging
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import tenacity

log = logging.getLogger(__name__)


class TryAgain(Exception):
    """One attempt failed for a reason that may pass."""

    def __init__(self, reason: str, *, retry_after_s: float | None = None, wasted_tokens: int = 0) -> None:
        super().__init__(reason)
        self.retry_after_s = retry_after_s
        """What the server asked for, in seconds from now; None when it asked for nothing."""
        self.wasted_tokens = wasted_tokens
        """Tokens of a reply that could not be used."""


def retrying(max_retries: int, max_wait_s: float) -> tenacity.Retrying:
    """The retry policy: exponential back-off with full jitter, never less than the server's ``Retry-After``.

    Args:
        max_retries: attempts after the first one.
        max_wait_s: longest back-off in seconds; a longer ``Retry-After`` is cut to it (plus up to a tenth, see below).
    """
    back_off = tenacity.wait_random_exponential(multiplier=0.5, max=max_wait_s)

    def wait(state: tenacity.RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        asked = fault.retry_after_s or 0.0 if isinstance(fault, TryAgain) else 0.0
        # A little more than asked for, or all clients that were turned away together come back together.
        spread = random.uniform(1.0, 1.1)  # noqa: S311
        return max(back_off(state), min(asked, max_wait_s) * spread)

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TryAgain),
        stop=tenacity.stop_after_attempt(max_retries + 1),
        wait=wait,
        before_sleep=_tell,
        reraise=True,
    )


def _tell(state: tenacity.RetryCallState) -> None:
    fault = state.outcome.exception() if state.outcome else None
    log.info("attempt %d gave %s; the next one follows in %.1f s", state.attempt_number, fault, state.upcoming_sleep)


def retry_after_seconds(header: str | None, now: datetime | None = None) -> float | None:
    """Read a ``Retry-After`` header, seconds or an HTTP date; None when there is none or it makes no sense."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
