"""Whose outputs are whose inputs: the rule behind dependencies (released code, I/O overlap)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import LibraryError
from skillarena.selectors.graph_of_skills.tokens import signature, slug

WEAK = 0.5
"""Of two lists that share a token and match no better."""
_SAME = 1.0
_CONTAINED = 0.85
_BLOCK = 1024
MOST_MATCHES = 5_000_000
"""Pairs of matching items of different skills in one library; more take gigabytes and say nothing."""


def io_scores(outputs: Sequence[Sequence[str]], inputs: Sequence[Sequence[str]]) -> Any:
    """SciPy CSR float64[nodes, nodes]: how well a row's outputs match a column's inputs, where better than ``WEAK``.

    Pairs of items are gone through, outputs in the outer loop. The first whose slugs are equal (1.0) or contain one
    another (0.85) decides; without one it is the largest Jaccard index of their tokens.

    All follows from an item's slug, so each pair of different slugs is compared once, and skills are joined by the
    slugs that match.

    Args:
        outputs: of each node.
        inputs: of each node.

    Raises ``LibraryError`` when nearly everything matches, as in a library of copies of one template.
    """
    from scipy.sparse import csr_matrix

    size = len(outputs)
    produced, consumed = _Items.of(outputs), _Items.of(inputs)
    matches = _Matches.of(produced.slugs, consumed.slugs)
    producer, consumer, priority, score = _join(produced, matches, consumed)
    order = np.lexsort((priority, consumer, producer))
    producer, consumer, score = producer[order], consumer[order], score[order]
    pair = producer.astype(np.int64) * size + consumer
    first = np.diff(pair, prepend=-1) != 0
    return csr_matrix((score[first], (producer[first], consumer[first])), shape=(size, size))


@dataclass(frozen=True, slots=True)
class _Items:
    """The items of all nodes with their different slugs; items without any letter or digit match nothing."""

    slugs: list[str]
    nodes: NDArray[np.int64]
    """int64[items], by slug."""
    positions: NDArray[np.int64]
    """int64[items]: place of an item in its node's list."""
    starts: NDArray[np.int64]
    """int64[slugs + 1]: where the items of each slug begin."""

    @classmethod
    def of(cls, lists: Sequence[Sequence[str]]) -> _Items:
        numbers: dict[str, int] = {}
        rows = [
            (numbers.setdefault(whole, len(numbers)), node, position)
            for node, items in enumerate(lists)
            for position, item in enumerate(items)
            if (whole := slug(item))
        ]
        table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 3)
        starts = np.searchsorted(table[:, 0], np.arange(len(numbers) + 1))
        return cls(list(numbers), table[:, 1], table[:, 2], starts)


@dataclass(frozen=True, slots=True)
class _Matches:
    """Pairs of slugs that match better than ``WEAK``."""

    outputs: NDArray[np.int64]
    inputs: NDArray[np.int64]
    scores: NDArray[np.float64]
    decisive: NDArray[np.bool_]
    """Equal or contained: such a pair ends the search."""

    @classmethod
    def of(cls, outputs: Sequence[str], inputs: Sequence[str]) -> _Matches:
        decisive = {(a, b) for a, b in _contained(outputs, inputs)} | {(a, b) for b, a in _contained(inputs, outputs)}
        rows = [(a, b, _SAME if outputs[a] == inputs[b] else _CONTAINED, True) for a, b in decisive]
        rows += [(a, b, score, False) for a, b, score in _similar(outputs, inputs) if (a, b) not in decisive]
        table = np.array(rows, dtype=np.float64).reshape(-1, 4)
        return cls(table[:, 0].astype(np.int64), table[:, 1].astype(np.int64), table[:, 2], table[:, 3] > 0)


def _contained(parts: Sequence[str], wholes: Sequence[str]) -> Iterator[tuple[int, int]]:
    """(part, whole) wherever one text is inside the other; one scan of all wholes for each part."""
    text = "\n".join(wholes)
    starts = np.cumsum([0, *(len(whole) + 1 for whole in wholes)])
    for number, part in enumerate(parts):
        places = [found.start() for found in re.finditer(re.escape(part), text)]
        yield from ((number, int(whole)) for whole in np.unique(np.searchsorted(starts, places, side="right") - 1))


def _similar(outputs: Sequence[str], inputs: Sequence[str]) -> Iterator[tuple[int, int, float]]:
    """(output, input, Jaccard index) above ``WEAK``, from blocks of a product of sparse matrices."""
    numbers: dict[str, int] = {}
    left, right = _token_matrix(outputs, numbers), _token_matrix(inputs, numbers)
    left.resize(len(outputs), len(numbers))
    left_sizes, right_sizes = np.diff(left.indptr), np.diff(right.indptr)
    for start in range(0, len(outputs), _BLOCK):
        shared = (left[start : start + _BLOCK] @ right.T).tocoo()
        index = shared.data / (left_sizes[shared.row + start] + right_sizes[shared.col] - shared.data)
        for at in np.flatnonzero(index > WEAK):
            yield int(shared.row[at]) + start, int(shared.col[at]), float(index[at])


def _token_matrix(slugs: Sequence[str], numbers: dict[str, int]) -> Any:
    """SciPy CSR int32[slugs, tokens] of ones; new tokens get the next numbers."""
    from scipy.sparse import csr_matrix

    tokens = [[numbers.setdefault(token, len(numbers)) for token in signature([whole])] for whole in slugs]
    columns = np.array([number for row in tokens for number in row], dtype=np.int64)
    starts = np.cumsum([0, *map(len, tokens)])
    return csr_matrix((np.ones(len(columns), dtype=np.int32), columns, starts), shape=(len(slugs), len(numbers)))


def _join(
    produced: _Items, matches: _Matches, consumed: _Items
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Producer, consumer, priority (the smallest counts) and score of every pair of items that match."""
    left = np.diff(produced.starts)[matches.outputs]
    right = np.diff(consumed.starts)[matches.inputs]
    total = int((left * right).sum())
    if total > MOST_MATCHES:
        raise LibraryError(
            f"the library's inputs and outputs are so alike that {total:,} pairs of them match",
            "remove Inputs and Outputs sections that say the same in most skills, or use a smaller library",
        )
    match = np.repeat(np.arange(len(matches.scores)), left * right)
    within = np.arange(total) - np.repeat(np.cumsum(left * right) - left * right, left * right)
    output = produced.starts[matches.outputs[match]] + within // right[match]
    consumer_item = consumed.starts[matches.inputs[match]] + within % right[match]
    longest = 1 + max(int(consumed.positions.max(initial=0)), int(produced.positions.max(initial=0)))
    place = produced.positions[output] * longest + consumed.positions[consumer_item]
    scores = matches.scores[match]
    # Decisive pairs in the order in which they are gone through, then the others by score.
    priority = np.where(matches.decisive[match], place, longest**2 + (1 - scores))
    producer, consumer = produced.nodes[output], consumed.nodes[consumer_item]
    other = producer != consumer
    return producer[other], consumer[other], priority[other].astype(np.float64), scores[other]
