"""The project's own retrieval set: every task type of the labels, with the skills that each needs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from skillarena.conf.errors import LibraryError
from skillarena.selectors.interface import Skill
from skillarena.selectors.labels import Labels, load_labels
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.retrieval.bundled_set import bundled_set
from skillarena.selectors.retrieval.dataset import Dataset, Judgement, Role

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "skills"


@pytest.fixture(scope="module")
def bundled() -> Dataset:
    return bundled_set(SkillLibrary.load(["bundled"]))


def test_every_labelled_task_type_is_asked_for_in_several_wordings(bundled: Dataset) -> None:
    labelled = {(benchmark, task_type) for benchmark, types in load_labels().types.items() for task_type in types}
    wordings = Counter((query.benchmark, query.task_type) for query in bundled.queries)
    assert wordings.keys() == labelled
    assert min(wordings.values()) >= 4
    assert len({query.text for query in bundled.queries}) == len({query.id for query in bundled.queries})
    assert bundled.notes == ()


def test_every_judged_skill_is_in_the_library_and_judged_once(bundled: Dataset) -> None:
    assert bundled.absent() == {}
    for query in bundled.queries:
        skills = [item.skill for item in query.judgements]
        assert len(set(skills)) == len(skills)
        assert {item.role for item in query.judgements} == {Role.CORE, Role.RELATED}


def test_every_related_name_is_a_skill_of_the_bundled_library(bundled: Dataset) -> None:
    from skillarena.selectors.retrieval import bundled_set as module

    names = {skill.name for skill in bundled.library.skills}
    content = module._TYPES.validate_json(module._FILE.read_bytes())
    assert {name for types in content.values() for item in types.values() for name in item.related} <= names


def test_needed_skills_are_those_of_the_labels(bundled: Dataset) -> None:
    query = next(query for query in bundled.queries if query.task_type == "pick_heat_then_place_in_recep")
    needed = [item for item in query.judgements if item.role is Role.CORE]
    assert needed == [
        Judgement("alfworld/serve-item-hot", 3, Role.CORE),
        Judgement("alfworld/sweep-rooms-for-object", 3, Role.CORE),
    ]


def test_a_type_without_labelled_skills_is_left_out_and_named() -> None:
    library = SkillLibrary((Skill("x/1", "boiler", "", "b"), Skill("x/2", "boiler", "", "c"), Skill("y", "y", "", "y")))
    dataset = bundled_set(library, Labels({"scienceworld": {"boil": ("boiler",), "melt": ("melter",)}}))
    assert {query.task_type for query in dataset.queries} == {"boil"}
    assert dataset.queries[0].judgements == (Judgement("x/1", 3, Role.CORE), Judgement("x/2", 1, Role.RELATED))
    assert "scienceworld melt" in dataset.notes[0]
    with pytest.raises(LibraryError, match="no labelled skill for any task type"):
        bundled_set(library, Labels({"elsewhere": {"boil": ("boiler",)}}))


def test_real_skill_libraries_have_what_the_set_needs() -> None:
    if not SHARED.is_dir():
        pytest.skip(f"no skills at {SHARED}")
    dataset = bundled_set(SkillLibrary.load([SHARED / "alfworld", SHARED / "scienceworld"]))
    assert Counter(query.benchmark for query in dataset.queries) == {"alfworld": 36, "scienceworld": 108}
    assert dataset.absent() == {}
