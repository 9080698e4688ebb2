"""Skills by lot: reproducible, without repeats, none preferred."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from real_libraries import LARGE, pool, public_skills
from scipy.stats import chisquare
from selector_contract import SKILLS, SelectorContract, up_to

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import Selector
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.random_choice import RandomChoice


class TestRandomChoice(SelectorContract):
    at_least = at_most = 2

    def make(self, parts: Any) -> Selector:
        return RandomChoice(parts, top_k=up_to(2, parts))


class Parts:
    def __init__(self, library: SkillLibrary = SKILLS) -> None:
        self.library = library


def drawn(number: int = 0, library: SkillLibrary = SKILLS, **options: Any) -> list[str]:
    parts: Any = Parts(library)
    one = Task("alfworld", "valid_seen", f"{number:064x}", "t", "any", "the goal does not matter")
    return [skill.id for skill in RandomChoice(parts, **options).open(one).selection.skills]


def test_the_draw_is_the_same_in_every_process_and_version() -> None:
    assert [drawn(number, top_k=2) for number in range(3)] == [["place", "twin"], ["find", "boil"], ["twin", "heat"]]


def test_the_goal_does_not_matter_and_the_task_does() -> None:
    parts: Any = Parts()
    selector = RandomChoice(parts, top_k=3)
    same = [Task("alfworld", "valid_seen", "f" * 64, "t", "any", goal) for goal in ("a", "b")]
    assert selector.open(same[0]).selection == selector.open(same[1]).selection
    assert len({tuple(drawn(number, top_k=3)) for number in range(50)}) > 20


def test_another_seed_draws_others() -> None:
    assert len({tuple(drawn(top_k=3, seed=seed)) for seed in range(50)}) > 20


def test_every_ordered_pair_is_equally_likely() -> None:
    pairs = Counter(tuple(drawn(number, top_k=2)) for number in range(6000))
    assert len(pairs) == 6 * 5
    assert chisquare(list(pairs.values())).pvalue > 0.001


def test_as_many_as_there_are_is_a_shuffle_and_more_are_refused() -> None:
    assert sorted(drawn(top_k=6)) == [skill.id for skill in SKILLS.skills]
    with pytest.raises(LibraryError, match=r"top_k=7 .* 6"):
        drawn(top_k=7)
    with pytest.raises(ConfigError, match="top_k must be a whole number"):
        drawn(top_k=0)


def test_it_needs_no_model() -> None:
    assert RandomChoice.needs == ()


@pytest.mark.parametrize("benchmark", ["alfworld", "scienceworld"])
def test_real_libraries_are_drawn_from_whole(benchmark: Any) -> None:
    library = public_skills(benchmark)
    seen = {skill_id for number in range(600) for skill_id in drawn(number, library)}
    assert seen == {skill.id for skill in library.skills}


@pytest.mark.slow
def test_a_draw_from_the_papers_number_of_skills_takes_no_time() -> None:
    library = pool()
    start = time.process_time()
    for number in range(1000):
        assert len(set(drawn(number, library, top_k=2))) == 2
    assert len(library) == LARGE
    assert time.process_time() - start < 1
