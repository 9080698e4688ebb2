"""Parses kept on disk: what is asked again, what is not, and what it counts as."""

from __future__ import annotations

from dataclasses import astuple, replace
from pathlib import Path

import pytest
from selector_contract import HOT_MUG, task

from skillarena.conf.errors import BackboneError
from skillarena.envs.interface import Task
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.interface import ParsedSkill, ParsedTask, Parser, Skill
from skillarena.selectors.parser_cache import CachedParser

SKILL = Skill("heat", "object-heater", "Heats a held object.", "Use a microwave.")


class CountingParser:
    """Counts what it is asked; fails while ``down``."""

    def __init__(self, identity: str = "counting/1", fallback: bool = False) -> None:
        self.identity = identity
        self.asked: list[str] = []
        self.down = False
        self.fallback = fallback

    def parse_task(self, task: Task) -> ParsedTask:
        self._ask(task.goal)
        return ParsedTask((task.goal,), ("a", "b"), self.fallback, prompt_tokens=10, completion_tokens=2, llm_calls=3)

    def parse_skill(self, skill: Skill) -> ParsedSkill:
        self._ask(skill.name)
        return ParsedSkill(None, "c", self.fallback, prompt_tokens=50, completion_tokens=5, llm_calls=1)

    def _ask(self, what: str) -> None:
        if self.down:
            raise BackboneError("down")
        self.asked.append(what)


def cached(parser: Parser, tmp_path: Path) -> CachedParser:
    return CachedParser(parser, DiskCache(tmp_path / "parses.sqlite"))


def test_parses_outlive_the_object_unchanged(tmp_path: Path) -> None:
    inner = CountingParser()
    first, second = cached(inner, tmp_path), cached(inner, tmp_path)
    assert first.parse_task(task(HOT_MUG)) == second.parse_task(task(HOT_MUG)) == inner.parse_task(task(HOT_MUG))
    assert first.parse_skill(SKILL) == second.parse_skill(SKILL)
    assert inner.asked == [HOT_MUG, HOT_MUG, SKILL.name]


@pytest.mark.parametrize("goal", ["", "名 🜁 \x00 \n", "\ud800 lone surrogate"])
def test_any_text_can_be_kept(goal: str, tmp_path: Path) -> None:
    inner = CountingParser()
    assert cached(inner, tmp_path).parse_task(task(goal)) == cached(inner, tmp_path).parse_task(task(goal))
    assert len(inner.asked) == 1


def test_fallbacks_are_kept_with_their_mark(tmp_path: Path) -> None:
    inner = CountingParser(fallback=True)
    for _ in range(2):
        parser = cached(inner, tmp_path)
        assert parser.parse_task(task(HOT_MUG)).fallback
        assert parser.parse_skill(SKILL).fallback
    assert inner.asked == [HOT_MUG, SKILL.name]


def test_an_unreachable_model_raises_and_leaves_nothing(tmp_path: Path) -> None:
    inner = CountingParser()
    parser = cached(inner, tmp_path)
    inner.down = True
    with pytest.raises(BackboneError):
        parser.parse_task(task(HOT_MUG))
    with pytest.raises(BackboneError):
        parser.parse_skill(SKILL)
    inner.down = False
    parser.parse_task(task(HOT_MUG))
    parser.parse_skill(SKILL)
    assert inner.asked == [HOT_MUG, SKILL.name]


def test_another_parser_benchmark_or_text_is_parsed_anew(tmp_path: Path) -> None:
    inner, other = CountingParser(), CountingParser("counting/2")
    cached(inner, tmp_path).parse_task(task(HOT_MUG))
    cached(inner, tmp_path).parse_task(task(HOT_MUG, "scienceworld"))
    cached(inner, tmp_path).parse_task(task(HOT_MUG + "!"))
    cached(other, tmp_path).parse_task(task(HOT_MUG))
    cached(inner, tmp_path).parse_skill(SKILL)
    cached(inner, tmp_path).parse_skill(replace(SKILL, body="Use a stove."))
    assert len(inner.asked) == 5
    assert len(other.asked) == 1


def test_the_same_text_under_another_id_is_the_same_skill(tmp_path: Path) -> None:
    inner = CountingParser()
    cached(inner, tmp_path).parse_skill(SKILL)
    cached(inner, tmp_path).parse_skill(replace(SKILL, id="other", source="elsewhere"))
    assert inner.asked == [SKILL.name]


def test_online_cost_counts_every_task_and_offline_cost_only_new_skills(tmp_path: Path) -> None:
    inner = CountingParser()
    for _ in range(2):
        parser = cached(inner, tmp_path)
        parser.parse_task(task(HOT_MUG))
        parser.parse_skill(SKILL)
        parser.parse_skill(SKILL)
        assert astuple(parser.online) == (10, 2, 3)
    assert astuple(parser.offline) == (0, 0, 0)
    other = cached(CountingParser("counting/2"), tmp_path)
    other.parse_skill(SKILL)
    other.parse_skill(SKILL)
    assert astuple(other.offline) == (50, 5, 1)


def test_it_is_a_parser_with_the_identity_of_the_one_inside(tmp_path: Path) -> None:
    parser = cached(CountingParser(), tmp_path)
    assert isinstance(parser, Parser)
    assert parser.identity == "counting/1"
