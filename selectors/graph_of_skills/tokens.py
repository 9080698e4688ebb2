"""Texts as sets of tokens: what every comparison of Graph of Skills counts (released code, signature tokens)."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STOP_TEXT = (
    "a an and any arg args array bool boolean data dict file float for from in input int json list object of on or "
    "output path record result set str string text the to value"
)
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_OTHER = re.compile(r"[^a-z0-9]+")


def slug(text: str) -> str:
    """Lower case, with one ``_`` for each run of other characters than a-z and 0-9; empty for a text of only those."""
    return _OTHER.sub("_", text.lower()).strip("_")


def signature(texts: Iterable[str]) -> set[str]:
    """The slug of each text, and its words without trailing ``s``, but for stop words and words below 3 letters.

    A slug is a token of its own, however short: equal texts share one even where all their words are stop words.
    """
    tokens: set[str] = set()
    for text in texts:
        whole = slug(text)
        if whole:
            tokens.add(whole)
            tokens.update(_words(whole))
    return tokens


def _words(whole: str) -> Iterable[str]:
    bare = (word.rstrip("s") for word in whole.split("_"))
    return (word for word in bare if len(word) >= 3 and word not in _STOP_WORDS)
