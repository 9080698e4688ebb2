"""What asking a model about a whole library takes, said before anything is asked."""

from __future__ import annotations

from skillarena.selectors.graph_of_skills.asking import TRIES
from skillarena.selectors.graph_of_skills.extraction import extraction_prompt
from skillarena.selectors.graph_of_skills.fields import read_node
from skillarena.selectors.graph_of_skills.graph import Recipe
from skillarena.selectors.graph_of_skills.linking import SHOWN
from skillarena.selectors.graph_of_skills.relations import relations_prompt
from skillarena.selectors.interface import Indexing
from skillarena.selectors.library import SkillLibrary

_CHARS_PER_TOKEN = 4
_ANSWER_CHARS = 800
"""Of an answer, which adds fields to a skill, and is part of the prompt when it is asked for again."""


def indexing(library: SkillLibrary, recipe: Recipe) -> Indexing | None:
    """Calls at most, each question asked twice, and their prompt tokens by length; None where no model is asked.

    Which skills are candidates of which is not known before the graph is made, so every skill counts with as many as
    are ever shown, all of the library's mean length.
    """
    if "llm" not in (recipe.extraction, recipe.linking):
        return None
    questions = chars = 0
    added = 0
    if recipe.extraction == "llm":
        added = _ANSWER_CHARS
        questions += len(library)
        chars += sum(len(extraction_prompt(skill)) for skill in library.skills)
    if recipe.linking == "llm":
        asked = len(library) - 1  # a pair is asked about with the skill that comes first
        bare = len(relations_prompt([]))
        shown = sum(len(relations_prompt([read_node(skill)])) - bare + added for skill in library.skills)
        questions += asked
        chars += asked * bare + min(1 + SHOWN, asked + 1) * shown
    calls = TRIES * questions
    answers = calls * _ANSWER_CHARS // _CHARS_PER_TOKEN
    return Indexing(calls, (TRIES * chars + questions * _ANSWER_CHARS) // _CHARS_PER_TOKEN, answers)
