"""The stand-in for a ranking model."""

from __future__ import annotations

import pytest

from skillarena.conf.errors import ConfigError
from skillarena.selectors.interface import Skill
from skillarena.selectors.llm_ranking import make_ids, question, read_ranking
from skillarena.selectors.word_ranker import WordRanker


def test_it_ranks_by_common_words_and_keeps_the_order_of_ties() -> None:
    skills = [
        Skill("1", "cook", "", "Boil water."),
        Skill("2", "walk", "", "Go."),
        Skill("3", "heat", "", "Heat a mug."),
    ]
    ids = make_ids(3, "letters")
    reply = WordRanker().chat([{"role": "user", "content": question("heat the mug", skills, ids)}])
    assert read_ranking(reply.text, ids).named == ("C", "A", "B")
    assert reply.usage.prompt_tokens > reply.usage.completion_tokens > 0


def test_it_refuses_what_is_no_ranking() -> None:
    with pytest.raises(ConfigError, match="can rank skills, nothing else"):
        WordRanker().chat([{"role": "user", "content": "What does this skill need?"}])
