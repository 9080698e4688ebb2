"""What ties skills to each other: shared tools, shared tags, fitting schemas, known dependencies (SPEM paper).

A skill document says none of this in so many words, so what counts as what is ours:

* tools: what it writes as code, by first word (``heat`` of ``heat {object} with {appliance}``);
* tags: the words of its name that not all candidates have;
* schema: what the words of one skill's result share with those of another's precondition;
* known dependencies: another skill named in its text, or an order of skills in a remembered procedure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.interface import Skill
from skillarena.selectors.skill_structure import parse_document

LEAST_OVERLAP = 0.2
"""Jaccard index from which sets of words count as shared."""
_READ = 20_000
"""Characters of a document that are read for tools and names."""
_CODE = re.compile(r"`([A-Za-z][\w-]*)")
_WORD = re.compile(r"[^\W\d_]{3,}")
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        "the and for are was has have had its that this with from into onto been being must should can will not any all"
        " object task state agent skill",
    )
)
"""Words that fit every skill of a text world."""


@dataclass(frozen=True, slots=True)
class Facets:
    """A skill's parts that others can share or build on."""

    name: str
    tools: frozenset[str]
    tags: frozenset[str]
    takes: frozenset[str]
    """Words of the precondition; empty when nothing is required."""
    gives: frozenset[str]
    """Words of the result."""
    text: str
    """The beginning of the document, lower case."""


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """float32[k, k] each, 0 where there is no link, zero diagonals."""

    tools: NDArray[np.float32]
    """Jaccard index of tools, symmetric."""
    tags: NDArray[np.float32]
    """Jaccard index of tags, symmetric."""
    schema: NDArray[np.float32]
    """[i, j]: Jaccard index of what i gives and j takes."""
    known: NDArray[np.float32]
    """[i, j]: 1 where j is known to build on i."""


def facets(skill: Skill) -> Facets:
    """The facets of one skill; any text has some."""
    parsed = parse_document(skill)
    return Facets(
        name=skill.name.lower(),
        tools=frozenset(word.lower() for word in _CODE.findall(skill.body[:_READ])),
        tags=frozenset(re.split(r"[\W_]+", skill.name.lower())) - {""},
        takes=_words(parsed.precondition or ""),
        gives=_words(parsed.completion),
        text=f"{skill.description}\n{skill.body[:_READ]}".lower(),
    )


def link(ids: Sequence[str], skills: Sequence[Facets], order: Set[tuple[str, str]]) -> Links:
    """What ties some skills to each other.

    Args:
        ids: the skills.
        skills: their facets.
        order: pairs of ids of which the second builds on the first, from remembered procedures.
    """
    common = frozenset.intersection(*(skill.tags for skill in skills)) if len(skills) > 1 else frozenset()
    tags = [skill.tags - common for skill in skills]
    tools = [skill.tools for skill in skills]
    gives, takes = [skill.gives for skill in skills], [skill.takes for skill in skills]
    return Links(
        tools=_overlaps(tools, tools),
        tags=_overlaps(tags, tags),
        schema=_overlaps(gives, takes),
        known=_matrix(len(skills), lambda i, j: (ids[i], ids[j]) in order or _names(skills[j], skills[i])),
    )


def _names(later: Facets, earlier: Facets) -> bool:
    """Whether a document names another skill. A name of one word would be found in documents that do not mean it."""
    return len(earlier.tags) > 1 and earlier.name != later.name and earlier.name in later.text


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _PLAIN


def _overlaps(rows: Sequence[Set[Hashable]], columns: Sequence[Set[Hashable]]) -> NDArray[np.float32]:
    def jaccard(i: int, j: int) -> float:
        either = len(rows[i] | columns[j])
        index = len(rows[i] & columns[j]) / either if either else 0.0
        return index if index >= LEAST_OVERLAP else 0.0

    return _matrix(len(rows), jaccard)


def _matrix(size: int, value: Callable[[int, int], float]) -> NDArray[np.float32]:
    return np.array(
        [[0.0 if i == j else value(i, j) for j in range(size)] for i in range(size)], dtype=np.float32
    ).reshape(size, size)
