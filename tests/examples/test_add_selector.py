"""The example selector keeps the contract of all selectors and does what its guide says."""

from __future__ import annotations

from typing import Any

from rare_words import RareWords
from selector_contract import SKILLS, SelectorContract, task


class TestRareWords(SelectorContract):
    at_most = 1

    def make(self, parts: Any) -> RareWords:
        return RareWords(parts)


class LibraryOnly:
    library = SKILLS


def test_a_word_in_few_skills_decides() -> None:
    (chosen,) = RareWords(LibraryOnly(), top_k=1).open(task("find an object, then write invoices")).selection.skills
    assert chosen.id == "invoice"
    assert chosen.reason.startswith("Shares ")
