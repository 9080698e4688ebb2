from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from statistics import mean

import pytest
import tenacity

from skillarena.orchestration.backbones.retry import TryAgain, retry_after_seconds, retrying

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def waits(attempt: int, fault: Exception, max_wait_s: float = 60.0) -> list[float]:
    """200 waits after the given failed attempt; nothing sleeps."""
    policy = retrying(5, max_wait_s)
    state = tenacity.RetryCallState(policy, None, (), {})
    state.attempt_number = attempt
    state.set_exception((type(fault), fault, None))
    return [policy.wait(state) for _ in range(200)]


def test_waits_grow_and_are_spread_over_their_range() -> None:
    means = [mean(waits(attempt, TryAgain("busy"))) for attempt in range(1, 6)]
    assert means == sorted(means)
    assert means[-1] > 4 * means[0]
    third = waits(3, TryAgain("busy"))
    assert min(third) < 0.5 and 1.5 < max(third) <= 2.0


def test_waits_have_a_ceiling() -> None:
    assert max(waits(50, TryAgain("busy"), max_wait_s=3.0)) <= 3.0


def test_wait_is_never_shorter_than_the_server_asks_and_differs_between_clients() -> None:
    asked = waits(1, TryAgain("busy", retry_after_s=10.0))
    assert min(asked) >= 10.0 and max(asked) <= 11.0
    assert len(set(asked)) > 100


def test_overlong_request_to_wait_is_cut() -> None:
    assert max(waits(1, TryAgain("busy", retry_after_s=3600.0), max_wait_s=5.0)) <= 5.5


def test_other_exceptions_are_not_retried() -> None:
    calls = []

    def fails() -> None:
        calls.append(1)
        raise KeyError("bug")

    with pytest.raises(KeyError):
        retrying(5, 0.0)(fails)
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
