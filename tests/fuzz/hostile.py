"""Hostile text and data for every parser: bytes, Unicode that misleads, broken and deep JSON, and long runs."""

from __future__ import annotations

import gc
import inspect
import os
import random
import time
from collections.abc import Sequence
from functools import wraps
from typing import Any

import orjson
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

CASES = int(os.environ.get("FUZZ_CASES", "200"))
"""Cases for each parser; ``make test-fuzz`` takes 100,000."""
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
_ODD_BYTES = (*(piece.encode("utf-8", "surrogatepass") for piece in ODD), b"\xff", b"\xc3", b"\x80")
_TEXTS = ("text", "goal", "header", "problem", "wanted", "given", "word", "choices", "things", "ids")
"""Arguments that hold what others wrote."""
_VARIANTS = 20
_FEWEST = 20  # cases of Hypothesis's own
_LONGEST = 8_000  # characters of a mutation


def fuzzed(test: Any) -> Any:
    """Decorator of a test with ``given``: at least so many cases, and the longest time of one.

    Where an argument is outside text (bytes, or named in ``_TEXTS``), each case that Hypothesis makes is followed by
    ``_VARIANTS - 1`` mutations of it, as making a case mostly takes longer than reading it.
    """
    inner = test.hypothesis.inner_test
    varied = [
        name
        for name, kind in inspect.signature(inner).parameters.items()
        if kind.annotation == "bytes" or name in _TEXTS
    ]

    @wraps(inner)
    def timed(**arguments: Any) -> None:
        _within_time(inner, arguments)
        rng = random.Random(repr(arguments))
        for _ in range(_VARIANTS - 1 if varied else 0):
            variant = {**arguments, **{name: mutated(arguments[name], rng) for name in varied}}
            try:
                _within_time(inner, variant)
            except Exception as error:
                error.add_note(f"mutated to { ({name: variant[name] for name in varied})!r}")
                raise

    test.hypothesis.inner_test = timed
    examples = max(CASES // _VARIANTS, min(CASES, _FEWEST)) if varied else CASES
    return settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))(test)


def _within_time(inner: Any, arguments: dict[str, Any]) -> None:
    gc.disable()  # what earlier cases have left is not this one's
    began = time.process_time()
    try:
        inner(**arguments)
    finally:
        took = time.process_time() - began
        gc.enable()
    assert took < SLOWEST, f"one case took {took:.1f} s"


def mutated(value: Any, rng: random.Random) -> Any:
    """Text, bytes, or a list with one of them, after one to four small changes.

    Pieces are left out, doubled, moved, repeated, replaced or put in.
    """
    if isinstance(value, list):
        place = rng.randrange(len(value)) if value else 0
        is_text = bool(value) and isinstance(value[place], str)
        return [*value[:place], mutated(value[place], rng), *value[place + 1 :]] if is_text else [*value, *value]
    for _ in range(rng.randint(1, 4)):
        start, end = sorted(rng.randint(0, len(value)) for _ in range(2))
        piece = value[start:end]
        odd = rng.choice(ODD) if isinstance(value, str) else rng.choice(_ODD_BYTES)
        value = rng.choice(
            [
                value[:start] + value[end:],
                value[:end] + piece + value[end:],
                value[:start] + value[end:] + piece,
                value[:start] + piece * rng.randint(2, 40) + value[end:],
                value[:start] + odd + value[start:],
                value[:start] + odd + value[end:],
                value[:start],
            ]
        )[:_LONGEST]
    return value


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
