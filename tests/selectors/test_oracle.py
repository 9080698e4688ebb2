"""The labelled skills of a task's type, and the labels themselves."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from real_libraries import LARGE, pool, public_skills
from selector_contract import HOT_MUG, SKILLS, ScoredParts, SelectorContract, bundled

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.envs.alfworld_games import TASK_TYPES
from skillarena.envs.interface import Task
from skillarena.selectors.interface import Selection, Selector, Skill
from skillarena.selectors.labels import SHIPPED, LabelledLibrary, Labels, load_labels
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.oracle import Oracle

SCIENCEWORLD_TYPES = (
    "boil",
    "change-the-state-of-matter-of",
    "chemistry-mix",
    "chemistry-mix-paint-secondary-color",
    "chemistry-mix-paint-tertiary-color",
    "find-animal",
    "find-living-thing",
    "find-non-living-thing",
    "find-plant",
    "freeze",
    "grow-fruit",
    "grow-plant",
    "identify-life-stages-1",
    "identify-life-stages-2",
    "inclined-plane-determine-angle",
    "inclined-plane-friction-named-surfaces",
    "inclined-plane-friction-unnamed-surfaces",
    "lifespan-longest-lived",
    "lifespan-longest-lived-then-shortest-lived",
    "lifespan-shortest-lived",
    "measure-melting-point-known-substance",
    "measure-melting-point-unknown-substance",
    "melt",
    "mendelian-genetics-known-plant",
    "mendelian-genetics-unknown-plant",
    "power-component",
    "power-component-renewable-vs-nonrenewable-energy",
    "test-conductivity",
    "test-conductivity-of-unknown-substances",
    "use-thermometer",
)
OWN = {"alfworld": {"any": ["water-boiler", "carry-one-thing-across", "heat", "no such skill", "water-boiler"]}}


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return written(tmp_path, OWN)


def written(folder: Path, content: object) -> Path:
    path = folder / "labels.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


class Parts:
    def __init__(self, library: SkillLibrary = SKILLS) -> None:
        self.library = library


def select(library: SkillLibrary, task_type: str, benchmark: str = "alfworld", **options: Any) -> Selection:
    parts: Any = Parts(library)
    return Oracle(parts, **options).open(Task(benchmark, "s", "0" * 64, "t", task_type, HOT_MUG)).selection


def ids(selection: Selection) -> list[str]:
    return [skill.id for skill in selection.skills]


class TestOracle(SelectorContract):
    at_least = 0
    at_most = 2

    @pytest.fixture(autouse=True)
    def labels(self, own: Path) -> None:
        self.path = own

    def make(self, parts: Any) -> Selector:
        return Oracle(parts, labels=self.path)

    def test_finds_something_in_every_library_of_this_suite(self, parts: ScoredParts) -> None:
        task = Task("alfworld", "s", "0" * 64, "t", "any", HOT_MUG)
        assert self.make(parts).open(task).selection.skills


# --- what it gives


def test_labelled_skills_are_given_by_name_or_id_in_the_labels_order(own: Path) -> None:
    selection = select(SKILLS, "any", labels=own)
    assert ids(selection) == ["boil", "heat"]
    assert [skill.score for skill in selection.skills] == [1.0, 0.5]
    assert selection.marks == ()
    assert selection.details["ranking"] == ["boil", "heat"]


def test_top_k_keeps_the_most_needed(own: Path) -> None:
    selection = select(SKILLS, "any", labels=own, top_k=1)
    assert ids(selection) == ["boil"]
    assert selection.details["ranking"] == ["boil", "heat"]
    assert ids(select(SKILLS, "any", labels=own, top_k=9)) == ["boil", "heat"]


@pytest.mark.parametrize(("benchmark", "task_type"), [("alfworld", "other"), ("scienceworld", "any")])
def test_a_type_without_labels_gets_nothing_and_a_mark(own: Path, benchmark: str, task_type: str) -> None:
    selection = select(SKILLS, task_type, benchmark, labels=own)
    assert (ids(selection), selection.marks) == ([], ("not_labelled",))


def test_of_skills_with_one_name_the_first_is_given_and_an_id_comes_before_a_name(tmp_path: Path) -> None:
    skills = SkillLibrary((Skill("b", "x", "", ""), Skill("a", "x", "", ""), Skill("c", "b", "", "")))
    path = written(tmp_path, {"alfworld": {"twice": ["x", "a"], "id": ["b"]}})
    assert ids(select(skills, "twice", labels=path)) == ["a"]
    assert ids(select(skills, "id", labels=path)) == ["b"]
    needed = LabelledLibrary(load_labels(path), skills).needed("alfworld", "twice")
    assert [[skill.id for skill in alike] for alike in needed] == [["a", "b"], ["a"]]


def test_it_needs_no_model_and_knows_its_labels(own: Path, tmp_path: Path) -> None:
    parts: Any = Parts()
    assert Oracle.needs == ()
    here = Oracle(parts, labels=own).identity
    (tmp_path / "elsewhere").mkdir()
    assert Oracle(parts, labels=written(tmp_path / "elsewhere", OWN)).identity == here
    assert Oracle(parts, labels=written(tmp_path, {"alfworld": {"any": ["heat"]}})).identity != here


# --- what is refused


def test_labels_for_another_library_are_refused_with_the_nearest_name(tmp_path: Path) -> None:
    path = written(tmp_path, {"alfworld": {"any": ["object-heatre", "nothing like it"]}})
    with pytest.raises(LibraryError, match=r"none of the 2 .* 'object-heatre'; did you mean 'object-heater'"):
        select(SKILLS, "any", labels=path)
    with pytest.raises(LibraryError, match="none of the 0 labelled skills"):
        select(SKILLS, "any", labels=written(tmp_path, {}))
    with pytest.raises(LibraryError, match=r"selector\.labels"):
        select(SKILLS, "any")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "should be an object"),
        ({"alfworld": ["heat"]}, r"alfworld .*should be an object"),
        ({"alfworld": {"any": "heat"}}, r"alfworld\.any .*valid array"),
        ({"alfworld": {"any": [3]}}, r"alfworld\.any\.0 .*valid string"),
    ],
)
def test_files_of_another_form_are_refused_with_the_place(tmp_path: Path, content: object, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as raised:
        load_labels(written(tmp_path, content))
    assert "TASK_TYPE" in raised.value.fix


def test_missing_and_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_labels(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_labels(tmp_path)
    (tmp_path / "bad.json").write_bytes(b'{"a": \xff')
    with pytest.raises(ConfigError, match="no labels file"):
        load_labels(tmp_path / "bad.json")


@pytest.mark.parametrize("top_k", [0, -1, True])
def test_top_k_below_one_is_refused(own: Path, top_k: int) -> None:
    with pytest.raises(ConfigError, match="top_k must be a whole number"):
        select(SKILLS, "any", labels=own, top_k=top_k)


# --- the shipped labels


def test_all_task_types_are_the_benchmarks_own_and_all_are_labelled_for_the_bundled_library() -> None:
    types = load_labels(SHIPPED / "bundled.json").types
    assert {benchmark: sorted(found) for benchmark, found in types.items()} == {
        "alfworld": sorted(TASK_TYPES),
        "scienceworld": sorted(SCIENCEWORLD_TYPES),
    }
    for file in SHIPPED.glob("*.json"):
        for benchmark, found in load_labels(file).types.items():
            assert found.keys() <= types[benchmark].keys()


@pytest.mark.slow
def test_scienceworld_has_these_task_types() -> None:
    import scienceworld

    listed = json.loads((Path(scienceworld.__file__).parent / "tasks.json").read_text(encoding="utf-8"))
    assert sorted(task["task_name"] for task in listed) == sorted(SCIENCEWORLD_TYPES)


def test_every_bundled_label_is_a_bundled_skill_of_its_benchmark() -> None:
    labels = load_labels(SHIPPED / "bundled.json")
    labelled = LabelledLibrary(labels, bundled())
    for benchmark, types in labels.types.items():
        for task_type, words in types.items():
            needed = labelled.needed(benchmark, task_type)
            assert 1 <= len(words) == len(needed) <= 2
            assert all(len(alike) == 1 and alike[0].id.startswith(f"{benchmark}/") for alike in needed)


@pytest.mark.parametrize("benchmark", ["alfworld", "scienceworld"])
def test_every_public_label_is_a_public_skill(benchmark: Any) -> None:
    library = public_skills(benchmark)
    labels = load_labels(SHIPPED / "zjunlp_skills.json")
    labelled = LabelledLibrary(labels, library)
    for task_type, words in labels.types[benchmark].items():
        needed = labelled.needed(benchmark, task_type)
        assert [alike[0].name for alike in needed] == list(words)
        assert all(len(alike) == 1 for alike in needed)


def test_alfworlds_public_labels_follow_the_published_map_from_plan_actions() -> None:
    skill_of = {
        "go": "alfworld-location-navigator",
        "pick": "alfworld-object-picker",
        "put": "alfworld-object-placer",
        "clean": "alfworld-clean-object",
        "heat": "alfworld-object-heater",
        "cool": "alfworld-object-cooler",
        "toggle": "alfworld-device-operator",
    }
    plans = {
        "look_at_obj_in_light": ("go", "pick", "toggle"),
        "pick_and_place_simple": ("go", "pick", "put"),
        "pick_clean_then_place_in_recep": ("go", "pick", "clean", "put"),
        "pick_cool_then_place_in_recep": ("go", "pick", "cool", "put"),
        "pick_heat_then_place_in_recep": ("go", "pick", "heat", "put"),
        "pick_two_obj_and_place": ("go", "pick", "put"),
    }
    types = load_labels(SHIPPED / "zjunlp_skills.json").types["alfworld"]
    assert {name: set(words) for name, words in types.items()} == {
        name: {skill_of[action] for action in plan} for name, plan in plans.items()
    }


def test_without_a_file_all_shipped_labels_are_joined() -> None:
    joined, *parts = [load_labels(path) for path in (None, *sorted(SHIPPED.glob("*.json")))]
    assert set(joined.words()) == {word for part in parts for word in part.words()}
    heat = ("alfworld", "pick_heat_then_place_in_recep")
    assert ids(select(bundled(), heat[1])) == ["alfworld/serve-item-hot", "alfworld/sweep-rooms-for-object"]
    assert isinstance(joined, Labels)


@pytest.mark.slow
def test_a_library_of_the_papers_size_is_looked_up_quickly() -> None:
    library = pool()
    assert len(library) == LARGE
    start = time.process_time()
    selection = select(library, "pick_heat_then_place_in_recep")
    assert len(selection.skills) == 4
    assert time.process_time() - start < 2
    start = time.process_time()
    with pytest.raises(LibraryError, match="none of"):
        select(SkillLibrary(tuple(s for s in library.skills if not s.id.startswith("zjunlp/"))), "boil")
    assert time.process_time() - start < 60
