"""Which texts of a skill a configured selector has embedded."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.assembly import target
from skillarena.orchestration.settings import Settings, label
from skillarena.selectors.graph_of_skills.fields import read_node
from skillarena.selectors.graph_of_skills.selector import GraphOfSkills
from skillarena.selectors.interface import Skill
from skillarena.selectors.recall import metadata
from skillarena.selectors.skilldag.selector import SkillDag
from skillarena.selectors.skilldag.views import self_text
from skillarena.selectors.skillrouter import SkillRouter, encoded_text, reranked_text

Text = Callable[[Skill], str]


def found_by(settings: Settings) -> Text:
    """The text by which skills are found; name and description for methods that say nothing else.

    Raises:
        ConfigError: that text is only known once a language model has read the skills.
    """
    method, options = _method(settings)
    if issubclass(method, SkillRouter):
        description_chars, body_chars = int(options["description_chars"]), int(options["body_chars"])
        return partial(encoded_text, description_chars=description_chars, body_chars=body_chars)
    if issubclass(method, SkillDag):
        return self_text
    if issubclass(method, GraphOfSkills):
        if options["extraction"] == "llm":
            raise ConfigError(
                f"{label(settings.selector)} embeds what a language model reads out of the skills",
                "its first run does both; or set selector.extraction=rules",
            )
        return lambda skill: read_node(skill).embedded
    return metadata


def judged_by(settings: Settings) -> Text:
    """The text that the reranker reads of a candidate."""
    method, options = _method(settings)
    if issubclass(method, SkillRouter):
        return partial(reranked_text, document=options["document"])
    return lambda skill: skill.text


def _method(settings: Settings) -> tuple[type, dict[str, Any]]:
    method = target(settings.selector, "selector")
    defaults = {name: option.default for name, option in inspect.signature(method).parameters.items()}
    return method if isinstance(method, type) else object, {**defaults, **settings.selector}
