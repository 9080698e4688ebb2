"""Graph of Skills as a selector: the suite, golden values, options, real libraries and large ones."""

from __future__ import annotations

import resource
import time
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from selector_contract import BOIL, GOALS, HOT_MUG, SKILLS, ScoredParts, SelectorContract, WordEmbedder, minilm, task

from skillarena.conf.errors import ConfigError
from skillarena.selectors.graph_of_skills.selector import GraphOfSkills
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Embedder, Selector, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.measure import measured

DATA = Path(__file__).parents[3] / "shared" / "data"


class TestGraphOfSkills(SelectorContract):
    at_most = 3

    def make(self, parts: Any) -> Selector:
        return GraphOfSkills(parts)


class TestGraphOfSkillsReleased(SelectorContract):
    at_most = 8

    def make(self, parts: Any) -> Selector:
        return GraphOfSkills(parts, orientation="released", top_n=8, top_k=8)


def parts(folder: Path, library: SkillLibrary = SKILLS, embedder: Embedder | None = None) -> ScoredParts:
    return ScoredParts(library, embedder or WordEmbedder(), HeuristicParser(), folder)


@cache
def shipped(name: str) -> SkillLibrary:
    path = DATA / "skills" / name
    if not path.is_dir():
        pytest.skip(f"there is no {path}")
    return SkillLibrary.load([path])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (
            "put a hot mug in coffeemachine",
            [
                ("heat-object-with-appliance", 1.038, True),
                ("object-cooler", 0.703, True),
                ("object-heater", 0.569, True),
                ("appliance-preparer", 0.473, False),
                ("object-state-modifier", 0.413, False),
            ],
        ),
        (
            "put a clean fork in countertop",
            [
                ("clean-object", 1.418, True),
                ("object-storer", 0.906, True),
                ("object-placer", 0.707, True),
                ("object-disposer", 0.660, True),
                ("tool-user", 0.658, True),
            ],
        ),
    ],
)
def test_the_released_code_is_reproduced(tmp_path: Path, goal: str, expected: list[tuple[str, float, bool]]) -> None:
    given = parts(tmp_path, shipped("alfworld"), minilm())
    details = GraphOfSkills(given, orientation="released", top_n=5, top_k=5).open(task(goal)).selection.details
    assert (details["graph"]["nodes"], details["graph"]["near_duplicates"], details["graph"]["edges"]) == (37, 29, {})
    found = [
        (row["name"].removeprefix("alfworld-"), round(row["score"], 3), row["seed"] is not None)
        for row in details["bundle"]
    ]
    assert found == expected


@pytest.mark.slow
def test_the_character_limit_binds_before_the_released_number_of_skills(tmp_path: Path) -> None:
    given = parts(tmp_path, shipped("alfworld"), minilm())
    selector = GraphOfSkills(given, orientation="released", top_n=8, top_k=8)
    assert [len(selector.open(task(goal)).selection.skills) for goal in GOALS[:3]] == [6, 6, 6]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alfworld", "scienceworld"])
@pytest.mark.parametrize("orientation", ["paper", "released"])
def test_real_libraries_serve_their_tasks(tmp_path: Path, name: str, orientation: Any) -> None:
    given = parts(tmp_path, shipped(name), minilm())
    selector = GraphOfSkills(given, orientation=orientation)
    selection = selector.open(task(HOT_MUG if name == "alfworld" else BOIL)).selection
    assert len(selection.skills) == 3
    wanted = "heat" if name == "alfworld" else "boil"
    assert any(wanted in skill.name or wanted in skill.description.lower() for skill in selection.skills)


CHAIN = SkillLibrary(
    (
        # The consumer comes before its producer.
        Skill("a-eat", "eater", "Eats.", "## Inputs\n- warm soup bowl\n"),
        Skill("b-cook", "cooker", "Cooks.", "## Outputs\n- warm soup bowl\n## Inputs\n- raw vegetable pile\n"),
        Skill("c-cut", "cutter", "Cuts.", "## Output\n- raw vegetable pile\n"),
        *(Skill(f"d-{number}", f"other {number}", f"Word{number} alone.", "") for number in range(30)),
    )
)


def test_prerequisites_that_match_nothing_are_reached_along_edges(tmp_path: Path) -> None:
    selector = GraphOfSkills(parts(tmp_path, CHAIN), seeds=1, top_n=3, top_k=3)
    selection = selector.open(task("eater eats")).selection
    assert [skill.id for skill in selection.skills] == ["a-eat", "b-cook", "c-cut"]
    assert [row["seed"] for row in selection.details["bundle"]] == [1, None, None]
    assert [skill.reason.rsplit("; ")[-1] for skill in selection.skills] == ["seed 1."] + 2 * [
        "reached through the graph."
    ]
    assert selection.details["relations"] == [
        {"source": "b-cook", "target": "a-eat", "type": "dependency", "weight": 1.0},
        {"source": "c-cut", "target": "b-cook", "type": "dependency", "weight": 1.0},
    ]
    assert selection.marks == ()


def test_the_released_orientation_turns_edges_around_and_says_so(tmp_path: Path) -> None:
    selector = GraphOfSkills(parts(tmp_path, CHAIN), orientation="released", seeds=1, top_n=3, top_k=3)
    details = selector.open(task("eater eats")).selection.details
    assert details["orientation"] == "released"
    assert [(row["source"], row["target"]) for row in details["relations"]] == [
        ("a-eat", "b-cook"),
        ("b-cook", "c-cut"),
    ]


def test_a_graph_without_edges_is_marked(tmp_path: Path) -> None:
    selection = GraphOfSkills(parts(tmp_path)).open(task(HOT_MUG)).selection
    assert selection.marks == ("unlinked",)
    assert {row["seed"] for row in selection.details["bundle"]} <= {1, 2, 3, 4, 5}


def test_the_ranking_goes_on_behind_the_bundle_as_far_as_the_walk(tmp_path: Path) -> None:
    selector = GraphOfSkills(parts(tmp_path), top_n=2, top_k=1)
    details = selector.open(task(HOT_MUG)).selection.details
    assert len(details["chosen"]) == 1
    assert details["ranking"][:2] == [row["id"] for row in details["bundle"]]
    assert sorted(details["ranking"]) == sorted(row["id"] for row in details["seeds"])


def test_a_tight_limit_leaves_fewer_skills(tmp_path: Path) -> None:
    given = parts(tmp_path)
    sizes = [
        len(GraphOfSkills(given, max_chars=chars).open(task("find a mug")).selection.skills)
        for chars in (100, 250, 12_000)
    ]
    assert sizes == [1, 2, 3]


def test_skills_that_share_a_name_are_nodes_of_their_own(tmp_path: Path) -> None:
    twins = SkillLibrary(tuple(Skill(f"s{number}", "mug heater", "Heats a mug.", "x") for number in range(4)))
    selection = GraphOfSkills(parts(tmp_path, twins)).open(task(HOT_MUG)).selection
    assert len({skill.id for skill in selection.skills}) == 3


def test_indexing_is_no_part_of_a_selections_time_and_is_done_once(tmp_path: Path) -> None:
    class SlowEmbedder(WordEmbedder):
        asked = 0

        def encode(self, texts: Any, kind: Any) -> np.ndarray:
            if kind == "document":
                SlowEmbedder.asked += 1
                time.sleep(0.5)
            return super().encode(texts, kind)

    given = parts(tmp_path, embedder=SlowEmbedder())
    selector = GraphOfSkills(given)
    assert SlowEmbedder.asked == 0
    assert measured(selector, given, task(HOT_MUG)).cost.seconds < 0.4
    measured(selector, given, task(BOIL))
    assert SlowEmbedder.asked == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"orientation": "released "}, "did you mean 'released'"),
        ({"extraction": "llms"}, "did you mean 'llm'"),
        ({"linking": "rules"}, "linking='rules' is no choice"),
        ({"seeds": 0}, "seeds must be"),
        ({"top_n": 0}, "top_n must be"),
        ({"top_k": 5}, "top_k=5 asks for more skills than the 4"),
        ({"max_chars": 0}, "max_chars must be"),
    ],
)
def test_options_without_sense_are_refused(tmp_path: Path, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        GraphOfSkills(parts(tmp_path), **options)


class ByteEmbedder:
    """Texts as counts of byte pairs, quick enough for tens of thousands."""

    identity = "byte pairs"

    def encode(self, texts: Any, kind: Literal["query", "document"]) -> np.ndarray:
        vectors = np.full((len(texts), 128), 1e-3, dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            codes = np.frombuffer(text.encode(), dtype=np.uint8).astype(np.int64)
            vector += np.bincount((codes[:-1] * 31 + codes[1:] * 17) % 128, minlength=128)
        vectors -= vectors.mean(axis=1, keepdims=True) - 1e-3
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("size", "index_s", "select_s"), [(2000, 60, 0.5), pytest.param(67_884, 900, 1.0, marks=pytest.mark.long)]
)
def test_large_libraries_index_in_bounded_time_and_memory_and_select_at_once(
    tmp_path: Path, size: int, index_s: float, select_s: float
) -> None:
    pool = DATA / "skills_pool.jsonl.xz"
    if not pool.is_file():
        pytest.skip(f"there is no {pool}")
    library = SkillLibrary.load([pool], limit=size)
    assert len(library) == size
    before = _peak_mb()
    for orientation in ("paper", "released"):
        given = parts(tmp_path, library, ByteEmbedder())
        selector = GraphOfSkills(given, orientation=orientation)
        start = time.perf_counter()
        selector.open(task(HOT_MUG))
        assert time.perf_counter() - start < index_s
        for goal in GOALS:
            selection = measured(selector, given, task(goal))
            assert len(selection.skills) == 3
            assert selection.cost.seconds < select_s
    assert _peak_mb() - before < 1500


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
