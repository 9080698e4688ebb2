"""Which tokens the fields of all nodes have, kept so that one query is compared with every node at once."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.tokens import signature

Group = Literal["name", "about", "tags", "tooling", "io", "examples", "inputs", "outputs", "all"]
GROUPS: tuple[Group, ...] = ("name", "about", "tags", "tooling", "io", "examples", "inputs", "outputs", "all")
"""Fields whose tokens are counted together: ``about`` is capability and description, ``io`` inputs and outputs, ``all``
everything with each list as one text."""

_LONGEST_TOKEN = 64
"""Slugs of whole descriptions are long, and only compared for equality, for which a digest does."""


def grouped(node: Node) -> Mapping[Group, Sequence[str]]:
    """The texts of each group."""
    lists = (node.inputs, node.outputs, node.tags, node.tooling, node.examples)
    return {
        "name": (node.name,),
        "about": (node.capability, node.description),
        "tags": node.tags,
        "tooling": node.tooling,
        "io": (*node.inputs, *node.outputs),
        "examples": node.examples,
        "inputs": node.inputs,
        "outputs": node.outputs,
        "all": (node.name, node.description, node.capability, *("\n".join(items) for items in lists), node.snippet),
    }


@dataclass(frozen=True, slots=True)
class Postings:
    """The nodes that have each token in one group of fields."""

    starts: NDArray[np.int64]
    """int64[tokens + 1]: where the nodes of each token begin in ``nodes``."""
    nodes: NDArray[np.int32]
    """int32[pairs], ascending for each token."""

    def of(self, token: int) -> NDArray[np.int32]:
        """The nodes that have one token."""
        return self.nodes[self.starts[token] : self.starts[token + 1]]


class Lexicon:
    """Tokens of all nodes by group, as an inverted index.

    Args:
        size: number of nodes.
        numbers: tokens by number; those longer than 64 characters as digests.
        postings: of each group.
    """

    def __init__(self, size: int, numbers: Mapping[str, int], postings: Mapping[Group, Postings]) -> None:
        self.size = size
        self._numbers = numbers
        self._postings = postings
        self._sizes = {group: np.bincount(postings[group].nodes, minlength=size) for group in GROUPS}

    @classmethod
    def build(cls, nodes: Sequence[Node]) -> Lexicon:
        """Read all nodes once; time and memory grow with their text."""
        numbers: dict[str, int] = {}
        pairs: dict[Group, tuple[array[int], array[int]]] = {group: (array("i"), array("i")) for group in GROUPS}
        for index, node in enumerate(nodes):
            for group, values in grouped(node).items():
                found = [numbers.setdefault(_key(token), len(numbers)) for token in signature(values)]
                pairs[group][0].extend(found)
                pairs[group][1].extend([index] * len(found))
        return cls(len(nodes), numbers, {group: _inverted(*pairs[group], len(numbers)) for group in GROUPS})

    def counts(self, group: Group, tokens: Iterable[str]) -> NDArray[np.int64]:
        """int64[nodes]: how many of these different tokens each node has in a group."""
        found = [self._postings[group].of(number) for number in map(self._number, tokens) if number is not None]
        return np.bincount(np.concatenate(found), minlength=self.size) if found else np.zeros(self.size, dtype=np.int64)

    def sizes(self, group: Group) -> NDArray[np.int64]:
        """int64[nodes]: how many tokens each node has in a group."""
        return self._sizes[group]

    def shared(self, group: Group, values: Sequence[str]) -> NDArray[np.float64]:
        """float64[nodes]: tokens that some values share with each node, as a share of the smaller set."""
        tokens = signature(values)
        counts = self.counts(group, tokens)
        return np.asarray(counts / np.maximum(np.minimum(len(tokens), self._sizes[group]), 1))

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Everything as plain arrays, from which :meth:`from_arrays` makes the same again."""
        texts = "\n".join(self._numbers).encode()  # in order of their numbers; no token holds a line feed
        plain: dict[str, NDArray[np.generic]] = {
            "size": np.array([self.size]),
            "tokens": np.frombuffer(texts, dtype=np.uint8),
        }
        for group in GROUPS:
            plain[f"{group}.starts"] = self._postings[group].starts
            plain[f"{group}.nodes"] = self._postings[group].nodes
        return plain

    @classmethod
    def from_arrays(cls, plain: Mapping[str, NDArray[np.generic]]) -> Lexicon:
        """The lexicon that gave these arrays."""
        texts = plain["tokens"].tobytes().decode()
        numbers = {token: number for number, token in enumerate(texts.split("\n"))} if texts else {}
        postings = {
            group: Postings(
                np.asarray(plain[f"{group}.starts"], dtype=np.int64),
                np.asarray(plain[f"{group}.nodes"], dtype=np.int32),
            )
            for group in GROUPS
        }
        return cls(int(np.asarray(plain["size"], dtype=np.int64)[0]), numbers, postings)

    def _number(self, token: str) -> int | None:
        return self._numbers.get(_key(token))


def _key(token: str) -> str:
    # The dot tells a digest from a token: those hold only letters, digits and underscores.
    return token if len(token) <= _LONGEST_TOKEN else f".{blake2b(token.encode(), digest_size=16).hexdigest()}"


def _inverted(tokens: array[int], nodes: array[int], count: int) -> Postings:
    by_token = np.argsort(np.frombuffer(tokens, dtype=np.int32), kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(np.frombuffer(tokens, dtype=np.int32), minlength=count))))
    return Postings(starts.astype(np.int64), np.frombuffer(nodes, dtype=np.int32)[by_token])
