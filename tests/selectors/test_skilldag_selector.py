"""SkillDAG as a selector: what it chooses, what freezing and a memory's file mean, and real and large libraries."""

from __future__ import annotations

import resource
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from real_libraries import LARGE, HashedWords, pool, public_skills
from selector_contract import HOT_MUG, SKILLS, ScoredParts, SelectorContract, minilm, task
from skilldag_calls import NAMES, UNRELATED, add, attend, call, edges, lesson, parts_of, tasks

from skillarena.conf.errors import ConfigError, DataError, LibraryError
from skillarena.selectors import index_store
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selector, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, LearningSelector, LiveSession
from skillarena.selectors.skilldag.edges import GraphError
from skillarena.selectors.skilldag.selector import SkillDag


class TestSkillDag(SelectorContract):
    at_least = at_most = 1
    tools = 5

    def make(self, parts: Any) -> Selector:
        return SkillDag(parts)


class TestFrozenSkillDagWithoutInitialSkills(SelectorContract):
    at_least = at_most = 0
    tools = 2

    def make(self, parts: Any) -> Selector:
        return SkillDag(parts, top_k=0, freeze=True)


@pytest.fixture
def dag(tmp_path: Path) -> SkillDag:
    return SkillDag(parts_of(tmp_path))


def learned(dag: SkillDag, goal: str = "one", *edge: str) -> bytes:
    """A memory with one episode and one edge."""
    session = attend(dag, goal)
    assert add(session, *(edge or ("alpha", "beta"))) == "own1"
    return dag.learn(dag.initial_memory(), [lesson(session)])


def test_it_learns_as_the_protocol_says(dag: SkillDag) -> None:
    assert isinstance(dag, LearningSelector)
    session = dag.open(task(HOT_MUG))
    assert isinstance(session, LiveSession)
    assert session.review
    assert session.trigger is None
    assert session.close() is None
    assert (dag.learns, dag.episodes_per_update, dag.needs) == (True, 8, ("embedder", "parser"))


@pytest.mark.parametrize(
    ("options", "needs"),
    [
        ({"needs_view": "llm"}, ("embedder", "llm")),
        ({"classifier": "llm"}, ("embedder", "parser", "llm")),
        ({"needs_view": "llm", "classifier": "llm"}, ("embedder", "llm")),
    ],
)
def test_it_says_which_models_its_options_need(tmp_path: Path, options: Any, needs: tuple[str, ...]) -> None:
    assert SkillDag(parts_of(tmp_path), **options).needs == needs


@pytest.mark.parametrize(
    "options",
    [
        {"top_k": -1},
        {"top_k": True},
        {"top_k": 1.5},
        {"search_k": 0},
        {"depth": -1},
        {"max_related": 0},
        {"episodes_per_update": 0},
        {"needs_view": "heuristic"},
        {"classifier": "rule"},
        {"memory": "/nowhere/at/all"},
    ],
)
def test_options_that_make_no_sense_are_refused(tmp_path: Path, options: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        SkillDag(parts_of(tmp_path), **options)
    assert next(iter(options)) in str(caught.value)
    assert caught.value.fix


def test_more_initial_skills_than_the_library_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match="top_k=7"):
        SkillDag(parts_of(tmp_path), top_k=7)


def test_skills_that_conflict_with_nearer_ones_are_not_chosen(tmp_path: Path) -> None:
    dag = SkillDag(parts_of(tmp_path), top_k=3)
    goal = "alpha alpha alpha alpha beta beta gamma delta"
    before = dag.open(task(goal)).selection
    best, pruned, *rest = before.details["ranking"]
    assert before.details["chosen"] == [best, pruned, rest[0]]
    after = dag.with_memory(learned(dag, "x", pruned, best, "conflicts_with")).open(task(goal)).selection
    assert after.details["chosen"] == [best, rest[0], rest[1]]
    assert after.details["conflicting"] == [pruned]
    assert sorted(after.details["ranking"]) == sorted(NAMES)
    assert (before.details["revision"], after.details["revision"]) == (0, 1)


def test_memories_do_not_share_state(dag: SkillDag) -> None:
    memory = learned(dag)
    later = dag.with_memory(memory)
    assert len(attend(later)._overlay.graph.edges) == 1
    assert attend(dag)._overlay.graph.edges == []
    assert edges(later, dag.initial_memory()) == []
    assert later._index is dag._index


def test_a_frozen_graph_has_no_edit_tools_and_learns_nothing(tmp_path: Path) -> None:
    dag = SkillDag(parts_of(tmp_path))
    memory = learned(dag)
    frozen = SkillDag(parts_of(tmp_path), freeze=True).with_memory(memory)
    session = attend(frozen, "two")
    assert [tool.name for tool in session.tools] == ["search", "show"]
    assert (frozen.learns, session.review) == (False, "")
    assert call(session, "search", query="alpha", top_k=1)["result"]["neighbors"][0]["skill_id"] == "beta"
    graph = session._overlay.graph
    with pytest.raises(GraphError) as caught:
        graph.apply(graph.addition("beta", "gamma", "depends_on", "x"))
    assert caught.value.code == "FROZEN"
    assert session.close(EpisodeRecord("", (), True, 100.0, 0, ())) is None
    with pytest.raises(ConfigError, match="frozen"):
        frozen.learn(memory, [])


class TestMemoryFile:
    @pytest.fixture
    def file(self, tmp_path: Path, dag: SkillDag) -> Path:
        path = tmp_path / "0001"
        path.write_bytes(learned(dag))
        return path

    def test_it_is_the_initial_memory(self, tmp_path: Path, file: Path) -> None:
        dag = SkillDag(parts_of(tmp_path), memory=str(file), freeze=True)
        assert dag.initial_memory() == file.read_bytes()
        assert dag.open(task("alpha")).selection.details["revision"] == 1

    def test_its_content_is_the_identity(self, tmp_path: Path, file: Path) -> None:
        moved = tmp_path / "elsewhere"
        moved.write_bytes(file.read_bytes())
        same = {SkillDag(parts_of(tmp_path), memory=str(path)).identity for path in (file, moved)}
        other = tmp_path / "other"
        dag = SkillDag(parts_of(tmp_path))
        other.write_bytes(dag.learn(file.read_bytes(), [lesson(attend(dag, "two"))]))
        assert len(same) == 1
        assert same.isdisjoint({dag.identity, SkillDag(parts_of(tmp_path), memory=str(other)).identity})

    def test_a_frozen_one_is_not_evaluated_on_the_split_it_was_learned_on(self, tmp_path: Path, file: Path) -> None:
        dag = SkillDag(parts_of(tmp_path), memory=str(file), freeze=True)
        with pytest.raises(ConfigError, match=r"from 0 of the 2 tasks.* and from their split \(\w+ \w+\)"):
            dag.check_tasks(tasks("two", "three"))
        dag.check_tasks([replace(task, split="another") for task in tasks("two", "three")])

    def test_tasks_it_was_learned_on_are_refused_with_their_number(self, tmp_path: Path, file: Path) -> None:
        dag = SkillDag(parts_of(tmp_path), memory=str(file), freeze=False)
        dag.check_tasks(tasks("two", "three"))
        with pytest.raises(ConfigError, match="1 of the 3 tasks"):
            dag.check_tasks(tasks("two", "one", "three"))
        dag.with_memory(file.read_bytes()).check_tasks(tasks("two"))

    def test_an_episode_without_edits_counts_as_learned_on(self, tmp_path: Path, dag: SkillDag) -> None:
        path = tmp_path / "quiet"
        path.write_bytes(dag.learn(dag.initial_memory(), [lesson(attend(dag, "four"))]))
        with pytest.raises(ConfigError, match="1 of the 1 tasks"):
            SkillDag(parts_of(tmp_path), memory=str(path)).check_tasks(tasks("four"))

    def test_without_one_any_tasks_may_be_learned_from(self, dag: SkillDag) -> None:
        dag.check_tasks(tasks("one", "two"))

    def test_a_damaged_or_foreign_one_is_refused(self, tmp_path: Path, file: Path) -> None:
        damaged = tmp_path / "damaged"
        damaged.write_bytes(file.read_bytes()[:-9])
        with pytest.raises(DataError, match="SkillDAG memory"):
            SkillDag(parts_of(tmp_path), memory=str(damaged)).check_tasks(tasks("two"))
        with pytest.raises(DataError, match="another skill library"):
            SkillDag(parts_of(tmp_path, SKILLS), memory=str(file)).open(task("x"))


def stored_graph(tmp_path: Path) -> Path:
    (stored,) = (tmp_path / "indexes").glob("skilldag-*[0-9a-f]")
    return stored


def test_a_damaged_stored_graph_is_made_again(tmp_path: Path, dag: SkillDag) -> None:
    before = dag.initial_memory()
    whole = stored_graph(tmp_path).read_bytes()
    for content in (b"", b"{", whole[:-9], whole.replace(b"edges", b"wedge")):
        stored_graph(tmp_path).write_bytes(content)
        assert SkillDag(parts_of(tmp_path)).initial_memory() == before
        assert stored_graph(tmp_path).read_bytes() == whole


def test_a_stored_graph_that_makes_no_sense_is_refused(
    tmp_path: Path, dag: SkillDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag.initial_memory()
    for content in (b"{", b'{"edges":[[0,1,0,"x"],[1,0,0,"x"]]}', b'{"edges":[[0,99,0,"x"]]}'):
        monkeypatch.setattr(index_store, "_read", lambda path, content=content: content)  # with a right checksum
        with pytest.raises(LibraryError, match="damaged"):
            SkillDag(parts_of(tmp_path)).initial_memory()


def test_a_cold_start_is_the_same_again_and_read_from_the_store_then(tmp_path: Path) -> None:
    first = SkillDag(parts_of(tmp_path / "one", SKILLS)).initial_memory()
    assert SkillDag(parts_of(tmp_path / "two", SKILLS)).initial_memory() == first

    class NoEmbedding(HashedWords):
        def encode(self, texts: Any, kind: Any) -> Any:
            raise AssertionError

    parts = parts_of(tmp_path / "one", SKILLS)
    embedder = NoEmbedding()
    embedder.identity = parts.embedder.identity
    parts.embedder = embedder
    assert SkillDag(parts).initial_memory() == first


@pytest.mark.parametrize(
    "skills",
    [
        [Skill("one", "", "", "")],
        [Skill(f"s{at}", "same", "same", "same") for at in range(30)],
        [Skill(f"s{at}", "", "", "") for at in range(5)],
        [Skill("🜁", "\x00", "‮", "# only a heading"), Skill("b", "名", "\n\n", "```\nx")],
    ],
    ids=["one", "equal", "empty", "odd"],
)
def test_odd_libraries_have_sound_graphs(tmp_path: Path, skills: list[Skill]) -> None:
    dag = SkillDag(parts_of(tmp_path, SkillLibrary(tuple(skills))))
    session = dag.open(task(HOT_MUG))
    assert call(session, "search", query="?")["ok"]
    assert call(session, "show", skill_id=skills[0].id)["ok"]


def test_unrelated_skills_have_no_edges(dag: SkillDag) -> None:
    assert edges(dag, dag.initial_memory()) == []
    assert len(UNRELATED) == len(NAMES)


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", ["alfworld", "scienceworld"])
def test_public_skills_get_a_sane_graph(benchmark: Any, tmp_path: Path) -> None:
    library = public_skills(benchmark)
    dag = SkillDag(ScoredParts(library, minilm(), HeuristicParser(), tmp_path))
    shown = dag.graph_json(dag.initial_memory())["edges"]
    counts = Counter(edge["type"] for edge in shown)
    print(benchmark, dict(counts))
    assert set(counts) == {"depends_on", "specializes", "similar_to"}
    assert len(library) / 3 < len(shown) < 3 * len(library)
    known = {(edge["source"], edge["type"], edge["target"]) for edge in shown}
    expected = {
        "alfworld": {
            ("alfworld-object-heater", "depends_on", "alfworld-appliance-navigator"),
            ("alfworld-object-retriever", "depends_on", "alfworld-object-locator"),
            ("alfworld-heat-object-with-appliance", "specializes", "alfworld-object-heater"),
            ("alfworld-open-receptacle", "similar_to", "alfworld-receptacle-opener"),
            ("alfworld-object-placer", "similar_to", "alfworld-object-storer"),
        },
        "scienceworld": {
            ("scienceworld-heating-apparatus-setup", "depends_on", "scienceworld-substance-preparator"),
            ("scienceworld-tool-validator", "depends_on", "scienceworld-tool-fetcher"),
            ("scienceworld-room-navigator", "similar_to", "scienceworld-room-teleporter"),
        },
    }
    assert expected[benchmark] <= known
    session = dag.open(task(HOT_MUG))
    check_acyclic(session._overlay.graph)
    result = call(session, "search", query="heat an object")["result"]
    assert "heat" in result["matches"][0]["skill_id"]


def check_acyclic(graph: Any) -> None:
    import networkx as nx

    backbone = [(edge.source, edge.target) for edge in graph.edges if edge.type in ("depends_on", "specializes")]
    assert nx.is_directed_acyclic_graph(nx.DiGraph(backbone))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("size", "seconds", "gigabytes"), [(2_000, 30, 0.5), pytest.param(LARGE, 600, 2.0, marks=pytest.mark.long)]
)
def test_large_libraries_stay_within_bounds(size: int, seconds: float, gigabytes: float, tmp_path: Path) -> None:
    library = pool(size)
    embedder = HashedWords()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started, cpu = time.perf_counter(), time.process_time()
    dag = SkillDag(ScoredParts(library, embedder, HeuristicParser(), tmp_path))
    memory = dag.initial_memory()
    cold, cpu = time.perf_counter() - started, time.process_time() - cpu
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1e6
    assert cpu < seconds
    assert grown < gigabytes
    assert embedder.longest_call <= 1024
    graph = dag._index.first.graph
    counts = Counter(edge.type for edge in graph.edges)
    check_acyclic(graph)
    assert 0 < sum(counts.values()) < 3 * size
    dag.open(task(HOT_MUG))
    started = time.perf_counter()
    session = dag.open(task("boil water"))
    for _ in range(10):
        call(session, "search", query="boil water in a pot", depth=3)
    answering = (time.perf_counter() - started) / 11
    assert answering < 1
    first, second = (skill.id for skill in library.skills[:2])
    add(session, first, second, "composes_with")
    assert len(dag.learn(memory, [lesson(session)])) < 2000
    print(
        f"{size} skills: {cold:.0f} s ({cpu:.0f} of CPU), {grown:.2f} GB more, {dict(counts)}, {answering:.3f} s each"
    )
