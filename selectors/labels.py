"""Which skills a task of each type needs, as people labelled it: the upper bound, and the truth of a retrieval test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import TypeAdapter, ValidationError

from skillarena.conf.errors import ConfigError, LibraryError, nearest
from skillarena.conf.user_path import user_path
from skillarena.selectors.cache import digest
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary

SHIPPED = Path(__file__).with_name("skill_labels")
"""Labels for the bundled library and, by name only, for the ALFWorld and ScienceWorld skills of zjunlp/Skills. Those of
its ALFWorld skills follow SkillDAG's map from plan actions to skills (arXiv 2606.03056, skill-use metric)."""

_FILE = TypeAdapter(dict[str, dict[str, list[str]]])
_MOST_HINTS = 5
"""Comparing a word with all names of a large library takes seconds."""
_FORM = 'write {"BENCHMARK": {"TASK_TYPE": ["skill name or id", …]}}, the most needed skill first'


@dataclass(frozen=True, slots=True)
class Labels:
    """Skill names or ids by benchmark and task type, the most needed first, without repeats."""

    types: Mapping[str, Mapping[str, tuple[str, ...]]]
    """For example ``types["alfworld"]["pick_and_place_simple"]``."""

    @property
    def identity(self) -> str:
        """Digest of the labels, 64 hex digits; where they were read from does not matter."""
        return digest(orjson.dumps(self.types, option=orjson.OPT_SORT_KEYS).decode()).hex()

    def words(self) -> list[str]:
        """Every name and id in use, once, in order."""
        return sorted({word for types in self.types.values() for words in types.values() for word in words})


class LabelledLibrary:
    """Labels as skills of one library.

    A word that is an id means that skill; any other means every skill of that name, and none when there is none, so
    that one set of labels serves several libraries.

    Args:
        labels: what is needed.
        library: where it is looked up.

    Raises:
        LibraryError: the library has none of the labelled skills.
    """

    def __init__(self, labels: Labels, library: SkillLibrary) -> None:
        by_name: dict[str, list[Skill]] = {}
        for skill in library.skills:
            by_name.setdefault(skill.name, []).append(skill)
        self._labels = labels
        self._skills = {
            word: (library.by_id[word],) if word in library.by_id else tuple(by_name[word])
            for word in labels.words()
            if word in library.by_id or word in by_name
        }
        if not self._skills:
            raise LibraryError(
                f"none of the {len(labels.words())} labelled skills is in the library{_nearest_name(labels, by_name)}",
                "name a labels file made for this library in selector.labels, or choose the library the labels are for",
            )

    def needed(self, benchmark: str, task_type: str) -> tuple[tuple[Skill, ...], ...]:
        """What a type of task needs: for each labelled word that the library has, the skills that fit it.

        Empty for a type without labels, or with none in this library. Several words may mean the same skill.
        """
        words = self._labels.types.get(benchmark, {}).get(task_type, ())
        return tuple(self._skills[word] for word in words if word in self._skills)


def _nearest_name(labels: Labels, names: Iterable[str]) -> str:
    """What a label may have meant, as part of a message."""
    choices = list(names)
    hints = ((word, nearest(word, choices)) for word in labels.words()[:_MOST_HINTS])
    return next((f": there is no {word!r}{hint}" for word, hint in hints if hint), "")


def load_labels(path: str | Path | None = None) -> Labels:
    """Labels from a JSON file, or the shipped ones.

    Args:
        path: a file of the form ``{"BENCHMARK": {"TASK_TYPE": ["skill name or id", …]}}``; None means all shipped
            files, joined.

    Raises:
        ConfigError: the file is missing or has another form.
    """
    files = sorted(SHIPPED.glob("*.json")) if path is None else [user_path(path)]
    joined: dict[str, dict[str, list[str]]] = {}
    for file in files:
        for benchmark, types in _read(file).items():
            for task_type, words in types.items():
                joined.setdefault(benchmark, {}).setdefault(task_type, []).extend(words)
    return Labels(
        {
            benchmark: {task_type: tuple(dict.fromkeys(words)) for task_type, words in types.items()}
            for benchmark, types in joined.items()
        }
    )


def _read(path: Path) -> dict[str, dict[str, list[str]]]:
    try:
        return _FILE.validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"selector.labels: {str(path)!r} cannot be read ({error.strerror})", _FORM) from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}".strip() for e in error.errors()[:5])
        raise ConfigError(f"selector.labels: {path} is no labels file: {problems}", _FORM) from error
