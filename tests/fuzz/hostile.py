"""Hostile text and data for every parser: bytes, Unicode that misleads, broken and deep JSON, and long runs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import wraps
from typing import Any

import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

CASES = int(os.environ.get("FUZZ_CASES", "200"))
"""Cases for each parser; ``make test-fuzz`` takes 100,000."""
DEAR = max(CASES // 20, 10)
"""Cases of tests that take a file or a process for each, tens of milliseconds."""
SLOWEST = 2.0
"""Seconds of processor time that one case may take; parsers are linear, so a usual one takes less than a millisecond.
The clock on the wall would count what other programs do."""

ODD = (
    "\x00", "\x1b[2J", "\u202e", "\u2066", "\ufeff", "\ufffe", "\u2028", "\x85", "\ud800", "é", "界", "🤖", "١", "½",
    " ", "\t", "\n", "\r\n", "\n\n", "---\n", "```", "```json\n", "<think>", "</think>", "{", "}", "[", "]", '"', "'",
    "\\", "\\u0000", "\\ud800", ":", ": ", ",", ">", "- ", "# ", "*", "&a", "*a", "!!python/object:os.system ", "|",
    "%", "null", "NaN", "1e999", "-0", "true", "0" * 30, "9" * 5000, "a" * 3000, "(" * 500, "[" * 2000, '{"a":' * 1500,
)  # fmt: skip
"""Pieces that parsers stumble over."""


def fuzzed(test: Any, cases: int = CASES) -> Any:
    """Decorator of a test with ``given``: the number of cases and the longest time of one."""
    inner = test.hypothesis.inner_test

    @wraps(inner)
    def timed(*args: Any, **kwargs: Any) -> None:
        began = time.process_time()
        inner(*args, **kwargs)
        took = time.process_time() - began
        assert took < SLOWEST, f"one case took {took:.1f} s"

    test.hypothesis.inner_test = timed
    return settings(max_examples=cases, deadline=None, database=None, suppress_health_check=list(HealthCheck))(test)


def dear(test: Any) -> Any:
    """The same with fewer cases."""
    return fuzzed(test, DEAR)


def texts(*words: str) -> st.SearchStrategy[str]:
    """Texts of a parser's own words between odd pieces."""
    piece = st.sampled_from((*words, *ODD)) | st.text(max_size=6)
    return st.lists(piece, max_size=24).map("".join)


def data(*words: str) -> st.SearchStrategy[bytes]:
    """The same as bytes, or any bytes."""
    encoded = texts(*words).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return encoded | st.binary(max_size=120)


PLAIN: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
"""Any JSON."""


def changed(sample: Any) -> st.SearchStrategy[bytes]:
    """JSON like a good sample with one of its values replaced, left out or added, or cut off somewhere."""
    whole = orjson.dumps(sample)
    paths = tuple(_paths(sample))

    def replaced(path: Sequence[Any], value: Any, leave_out: bool) -> bytes:
        plain = orjson.loads(whole)
        if not path:
            return orjson.dumps(value)
        inner = plain
        for key in path[:-1]:
            inner = inner[key]
        if leave_out:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return orjson.dumps(plain)

    return st.one_of(
        st.builds(replaced, st.sampled_from(paths), PLAIN, st.booleans()),
        st.integers(0, len(whole)).map(lambda end: whole[:end]),
        st.builds(
            lambda at, noise: whole[:at] + noise + whole[at + len(noise) :],
            st.integers(0, len(whole)),
            st.binary(max_size=4),
        ),
    )


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        found += _paths(item, (*path, key))
    return found
