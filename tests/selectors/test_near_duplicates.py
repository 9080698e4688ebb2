"""Documents that repeat others are found without comparing all with all."""

from __future__ import annotations

import random
import re
import time

import pytest
from real_libraries import pool

from skillarena.conf.errors import ConfigError
from skillarena.selectors.near_duplicates import SHINGLE, Repeat, repeats

WORDS = [f"word{number}" for number in range(3000)]


def document(chance: random.Random, length: int = 120) -> list[str]:
    return chance.choices(WORDS, k=length)


def edited(words: list[str], edits: int, chance: random.Random) -> list[str]:
    """The same document with some words replaced, far from each other."""
    changed = list(words)
    for place in chance.sample(range(0, len(words), SHINGLE), edits):
        changed[place] = "another"
    return changed


def jaccard(one: str, other: str) -> float:
    """By the book: sets of five words in a row."""
    first, second = (
        {tuple(words[start : start + SHINGLE]) for start in range(max(1, len(words) - SHINGLE + 1))}
        for words in (re.findall(r"\w+", text.lower()) for text in (one, other))
    )
    return len(first & second) / len(first | second)


def test_equal_texts_and_texts_that_differ_in_a_word_are_told_apart() -> None:
    chance = random.Random(1)
    first, other = document(chance), document(chance)
    texts = [" ".join(words) for words in (first, other, edited(first, 1, chance), first, other)]
    found = repeats(texts)
    assert [(repeat.index, repeat.earlier, repeat.exact) for repeat in found] == [
        (2, 0, False),
        (3, 0, True),
        (4, 1, True),
    ]
    assert found[0].similarity == pytest.approx(jaccard(texts[2], texts[0]))


def test_nearly_all_pairs_above_the_threshold_are_found_and_none_below() -> None:
    chance = random.Random(2)
    originals = [document(chance) for _ in range(60)]
    copies = [edited(words, chance.choice([1, 2, 3, 5, 8]), chance) for words in originals for _ in range(3)]
    texts = [" ".join(words) for words in (*originals, *copies)]
    found = {repeat.index: repeat for repeat in repeats(texts, threshold=0.8)}
    expected = {
        index: max(jaccard(texts[index], " ".join(original)) for original in originals)
        for index in range(len(originals), len(texts))
    }
    for repeat in found.values():
        assert repeat.similarity == pytest.approx(jaccard(texts[repeat.index], texts[repeat.earlier]))
        assert repeat.similarity >= 0.8
    near = [index for index, similarity in expected.items() if similarity >= 0.8]
    assert len(near) > 50
    assert sum(index in found for index in near) >= 0.99 * len(near)
    assert not [index for index in range(len(originals)) if index in found]


def test_case_and_spaces_do_not_count_as_a_difference_of_words() -> None:
    text = " ".join(document(random.Random(3)))
    assert repeats([text, text.upper().replace(" ", "\n")]) == [Repeat(1, 0, 1.0, exact=False)]


def test_chinese_texts_are_compared_character_by_character() -> None:
    text = "".join(random.Random(4).choices([chr(0x4E00 + number) for number in range(500)], k=300))
    changed = text[:100] + "的" + text[101:]
    (found,) = repeats([text, changed])
    assert 0.9 < found.similarity < 1


def test_short_and_empty_texts_are_repeats_of_their_likes_only() -> None:
    assert [(r.index, r.earlier) for r in repeats(["", "a b", "!", "a b", "a c", ""])] == [(2, 0), (3, 1), (5, 0)]


def test_many_fillings_of_one_template_stay_quick() -> None:
    chance = random.Random(5)
    template = document(chance, 400)
    texts = [" ".join(edited(template, 30, chance)) for _ in range(3000)]
    began = time.process_time()
    repeats(texts, threshold=0.9)
    assert time.process_time() - began < 20


@pytest.mark.parametrize("threshold", [0.5, 0.0, 1.01, float("nan")])
def test_a_threshold_that_would_miss_pairs_is_refused(threshold: float) -> None:
    with pytest.raises(ConfigError, match="above 0"):
        repeats(["a"], threshold=threshold)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_pool_takes_minutes_at_most() -> None:
    skills = pool().skills
    began = time.process_time()
    found = repeats([skill.text for skill in skills])
    assert time.process_time() - began < 120
    assert len(skills) == 67_884
    assert sum(repeat.exact for repeat in found) == len(skills) - len({skill.text for skill in skills})
    assert 2_000 < len(found) < 5_000
