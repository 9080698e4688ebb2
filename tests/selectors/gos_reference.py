"""Graph of Skills written out for one pair or node at a time, to compare the fast form with."""

from __future__ import annotations

import re
from collections.abc import Sequence

_STOP = (
    "a an and any arg args array bool boolean data dict file float for from in input int json list object of on or "
    "output path record result set str string text the to value"
)
STOP = set(_STOP.split())


def sig(values: Sequence[str]) -> set[str]:
    tokens = {re.sub("[^a-z0-9]+", "_", value.lower()).strip("_") for value in values}
    words = {word.rstrip("s") for value in values for word in re.findall("[a-z0-9]+", value.lower())}
    return (tokens | {word for word in words if len(word) >= 3 and word not in STOP}) - {""}


def io(outputs: Sequence[str], inputs: Sequence[str]) -> float:
    best = 0.0
    for output in outputs:
        for taken in inputs:
            a, b = (re.sub("[^a-z0-9]+", "_", text.lower()).strip("_") for text in (output, taken))
            if a and a == b:
                return 1.0
            if a and b and (a in b or b in a):
                return 0.85
            shared, union = sig([output]) & sig([taken]), sig([output]) | sig([taken])
            if shared:
                best = max(best, 0.5, len(shared) / len(union))
    return best


def ov(query: set[str], values: Sequence[str]) -> float:
    return len(query & sig(values)) / len(query) if query else 0.0


def shared(a: Sequence[str], b: Sequence[str]) -> float:
    left, right = sig(a), sig(b)
    return len(left & right) / min(len(left), len(right)) if left and right else 0.0
