"""A small set of the project's own: goals of ALFWorld and ScienceWorld in several wordings, and what they need.

It goes with every library that the labels know (see ``labels.py``): a query's task type says which skills it needs.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter

from skillarena.conf.errors import LibraryError
from skillarena.selectors.labels import LabelledLibrary, Labels, load_labels
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.retrieval.dataset import Dataset, Judgement, Query, Role

NEEDED_GRADE, RELATED_GRADE = 3.0, 1.0
"""Gains for nDCG of a labelled skill and of one that helps with a part of the task."""
_FILE = Path(__file__).with_name("data") / "bundled_queries.json"


class _TaskType(BaseModel):
    model_config = ConfigDict(extra="forbid")

    queries: list[str]
    """Wordings of goals."""
    related: list[str]
    """Names of skills of the bundled library that help with a part."""


_TYPES = TypeAdapter(dict[str, dict[str, _TaskType]])


def bundled_set(library: SkillLibrary, labels: Labels | None = None) -> Dataset:
    """The set for one library.

    Of several skills with a labelled name the first by id is needed, as ``selector=oracle`` gives it, and the others
    are related.

    Args:
        library: what to choose from.
        labels: which skills a task type needs; None takes the shipped ones.

    Raises:
        LibraryError: the library has none of the labelled skills of the set's task types.
    """
    labelled = LabelledLibrary(labels or load_labels(), library)
    queries: list[Query] = []
    unlabelled: list[str] = []
    for benchmark, task_types in _TYPES.validate_json(_FILE.read_bytes()).items():
        for task_type, content in task_types.items():
            judgements = _judgements(labelled, library, benchmark, task_type, content.related)
            if not judgements:
                unlabelled.append(f"{benchmark} {task_type}")
                continue
            queries += [
                Query(f"{benchmark}/{task_type}/{number}", text, benchmark, task_type, judgements)
                for number, text in enumerate(content.queries, start=1)
            ]
    if not queries:
        raise LibraryError(
            "the library has no labelled skill for any task type of the bundled set",
            "choose library=bundled, or give data of your own with --data FOLDER",
        )
    notes = [f"without labelled skills in this library and left out: {', '.join(unlabelled)}"] if unlabelled else []
    return Dataset("bundled", tuple(queries), library, tuple(notes))


def _judgements(
    labelled: LabelledLibrary, library: SkillLibrary, benchmark: str, task_type: str, related: list[str]
) -> tuple[Judgement, ...]:
    """What a task type needs, and what is related to it; empty where nothing is labelled."""
    alike = labelled.needed(benchmark, task_type)
    needed = list(dict.fromkeys(skills[0].id for skills in alike))
    if not needed:
        return ()
    others = [skill.id for skills in alike for skill in skills[1:]]
    others += [skill.id for skill in library.skills if skill.name in related]
    return (
        *(Judgement(skill, NEEDED_GRADE, Role.CORE) for skill in needed),
        *(Judgement(skill, RELATED_GRADE, Role.RELATED) for skill in dict.fromkeys(others) if skill not in needed),
    )
