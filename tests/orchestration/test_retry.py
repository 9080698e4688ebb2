from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from statistics import mean

import pytest
import tenacity

from skillarena.orchestration.backbones.retry import Throttled, TryAgain, retry_after_seconds, retrying

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = float("inf")


def waits(attempt: int, fault: Exception, max_wait_s: float = 60.0) -> list[float]:
    """200 waits after the given failed attempt; nothing sleeps."""
    policy = retrying(5, max_wait_s, LATER)
    state = tenacity.RetryCallState(policy, None, (), {})
    state.attempt_number = attempt
    state.set_exception((type(fault), fault, None))
    return [policy.wait(state) for _ in range(200)]


def attempts(faults: list[Exception], max_retries: int, deadline: float = LATER) -> int:
    """Attempts made before giving up on an endpoint that fails in this way, the last one for ever."""
    made = 0

    def fails() -> None:
        nonlocal made
        made += 1
        raise faults[min(made, len(faults)) - 1]

    with pytest.raises(TryAgain):
        retrying(max_retries, 0.0, deadline)(fails)
    return made


def test_waits_grow_and_are_spread_over_their_range() -> None:
    means = [mean(waits(attempt, TryAgain("busy"))) for attempt in range(1, 6)]
    assert means == sorted(means)
    assert means[-1] > 4 * means[0]
    third = waits(3, TryAgain("busy"))
    assert min(third) < 0.5 and 1.5 < max(third) <= 2.0


def test_waits_have_a_ceiling() -> None:
    assert max(waits(50, TryAgain("busy"), max_wait_s=3.0)) <= 3.0


def test_refused_calls_wait_at_the_gate_only() -> None:
    assert set(waits(3, Throttled("too many"))) == {0.0}


def test_faults_count_as_attempts_and_refusals_do_not() -> None:
    assert attempts([TryAgain("busy")], max_retries=3) == 4
    assert attempts([*[Throttled("too many")] * 20, TryAgain("busy")], max_retries=3) == 24


def test_refusals_without_end_stop_at_the_deadline() -> None:
    assert attempts([Throttled("too many")], max_retries=3, deadline=time.monotonic() - 1) == 1


def test_other_exceptions_are_not_retried() -> None:
    calls = []

    def fails() -> None:
        calls.append(1)
        raise KeyError("bug")

    with pytest.raises(KeyError):
        retrying(5, 0.0, LATER)(fails)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7),
        ("0.5", 0.5),
        ("-3", 0),
        (format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90),
        (format_datetime(NOW - timedelta(seconds=90), usegmt=True), 0),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds
