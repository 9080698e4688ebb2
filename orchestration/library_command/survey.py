"""A library as it was read, with what repeats in it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import Rejection, SkillLibrary
from skillarena.selectors.near_duplicates import Repeat, repeats


@dataclass(frozen=True)
class Survey:
    """Skills of a library, those that repeat others, and documents that are not in it."""

    library: SkillLibrary
    repeats: tuple[Repeat, ...]
    """By place in ``library.skills``; equal texts and nearly equal ones."""

    @property
    def skills(self) -> Sequence[Skill]:
        """In order of their ids."""
        return self.library.skills

    @cached_property
    def rejected(self) -> list[Rejection]:
        """Documents that cannot be used."""
        return [entry for entry in self.library.rejections if not entry.repeat]

    @cached_property
    def read_twice(self) -> list[Rejection]:
        """Documents of equal id and content, of which the library holds the first only."""
        return [entry for entry in self.library.rejections if entry.repeat]

    @cached_property
    def exact(self) -> list[Repeat]:
        """Skills whose text is another one's, under another id."""
        return [repeat for repeat in self.repeats if repeat.exact]

    @cached_property
    def near(self) -> list[Repeat]:
        """Skills whose text is nearly another one's."""
        return [repeat for repeat in self.repeats if not repeat.exact]

    @cached_property
    def shared_names(self) -> dict[str, list[Skill]]:
        """Names of several skills, the commonest first."""
        by_name: defaultdict[str, list[Skill]] = defaultdict(list)
        for skill in self.skills:
            by_name[skill.name].append(skill)
        shared = [(name, skills) for name, skills in by_name.items() if len(skills) > 1]
        return dict(sorted(shared, key=lambda entry: (-len(entry[1]), entry[0])))

    def plain(self, repeat: Repeat) -> dict[str, Any]:
        """A repetition as plain data."""
        skill, earlier = self.skills[repeat.index], self.skills[repeat.earlier]
        return {
            "id": skill.id,
            "source": skill.source,
            "repeats": earlier.id,
            "similarity": round(repeat.similarity, 3),
        }


def survey(library: SkillLibrary, threshold: float) -> Survey:
    """Compare all documents of a library. Raises ``ConfigError`` for a threshold that makes no sense."""
    with ProgressBar("comparing documents", len(library)) as bar:
        texts = [skill.text for skill in library.skills]
        return Survey(library, tuple(repeats(texts, threshold=threshold, progress=bar.advance)))
