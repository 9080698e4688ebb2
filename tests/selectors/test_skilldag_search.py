"""What a search lists, in which order, and what is left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from skilldag_calls import add, attend, call, edges, lesson, parts_of

from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.skilldag.edges import make_edge
from skillarena.selectors.skilldag.graph import SkillGraph
from skillarena.selectors.skilldag.search import conflicts_of, neighbors_of
from skillarena.selectors.skilldag.selector import SkillDag
from skillarena.selectors.skilldag.session import DagSession


def graph(*edges: tuple[str, str, str]) -> SkillGraph:
    return SkillGraph("abcdefg", [make_edge(*edge, reason=f"{edge[0]}{edge[1]}") for edge in edges])


def found(graph: SkillGraph, matches: str, depth: int) -> list[tuple[int, str, str]]:
    return [(away, known, edge.other(known)) for away, known, edge in neighbors_of(list(matches), graph, depth)]


def test_neighbors_come_level_by_level_best_match_first_then_by_type() -> None:
    whole = graph(
        ("b", "c", "similar_to"), ("a", "g", "similar_to"), ("f", "a", "depends_on"), ("g", "e", "composes_with")
    )
    assert found(whole, "ba", 1) == [(1, "b", "c"), (1, "a", "f"), (1, "a", "g")]
    assert found(whole, "ab", 1) == [(1, "a", "f"), (1, "a", "g"), (1, "b", "c")]
    assert found(whole, "ab", 2)[3:] == [(2, "g", "e")]
    assert found(whole, "ab", 0) == []


def test_matches_are_no_neighbors_and_the_first_way_to_a_skill_counts() -> None:
    whole = graph(
        ("a", "b", "similar_to"), ("a", "c", "similar_to"), ("b", "c", "depends_on"), ("c", "d", "depends_on")
    )
    assert found(whole, "ab", 2) == [(1, "a", "c"), (2, "c", "d")]


def test_conflicts_lead_to_no_neighbor() -> None:
    whole = graph(("a", "b", "conflicts_with"), ("b", "c", "similar_to"))
    assert found(whole, "a", 3) == []


def test_conflicts_of_two_matches_are_listed_for_both() -> None:
    whole = graph(("a", "b", "conflicts_with"), ("d", "a", "conflicts_with"), ("c", "d", "conflicts_with"))
    assert [(match, edge.other(match)) for match, edge in conflicts_of(["b", "a"], whole)] == [
        ("b", "a"),
        ("a", "b"),
        ("a", "d"),
    ]


LIBRARY = SkillLibrary(
    tuple(
        Skill(name, f"The {name}", text, "body")
        for name, text in (
            ("mug", "hot mug mug"),
            ("cup", "hot cup mug"),
            ("pan", "fry fry egg"),
            ("pot", "boil boil water"),
            ("jar", "keep keep jam"),
        )
    )
)


@pytest.fixture
def session(tmp_path: Path) -> DagSession:
    return attend(SkillDag(parts_of(tmp_path, LIBRARY), search_k=1, max_related=2))


def test_an_answer_has_matches_then_conflicts_then_neighbors_with_the_edge_they_come_by(session: DagSession) -> None:
    start = edges_of(session)
    add(session, "pan", "mug", "depends_on", "the pan was hot")
    add(session, "mug", "jar", "conflicts_with", "they broke")
    result = call(session, "search", query="hot mug mug")["result"]
    assert [key for key in result if "left" not in key] == ["query", "matches", "conflicts", "neighbors"]
    assert [match["skill_id"] for match in result["matches"]] == ["mug"]
    assert 0.5 < result["matches"][0]["score"] <= 1
    assert result["conflicts"] == [
        {
            "skill_id": "jar",
            "name": "The jar",
            "description": "keep keep jam",
            "conflicts_with": "mug",
            "reason": "they broke",
            "origin": "online",
        }
    ]
    pan = next(neighbor for neighbor in result["neighbors"] if neighbor["skill_id"] == "pan")
    assert (pan["depth"], pan["reached_from"]) == (1, "mug")
    assert pan["via"] == {
        "source": "pan",
        "target": "mug",
        "type": "depends_on",
        "reason": "the pan was hot",
        "origin": "online",
    }
    assert len(start) + 2 == len(edges_of(session))


def edges_of(session: DagSession) -> list[Any]:
    return session._overlay.graph.edges


def test_edges_do_not_change_matches(session: DagSession) -> None:
    before = call(session, "search", query="hot mug", top_k=5)["result"]["matches"]
    add(session, "jar", "pot", "composes_with")
    assert call(session, "search", query="hot mug", top_k=5)["result"]["matches"] == before


def test_what_is_too_much_is_left_out_as_whole_items_and_counted(session: DagSession) -> None:
    for other in ("pan", "pot", "jar"):
        add(session, "mug", other, "conflicts_with")
        add(session, "cup", other, "composes_with")
    result = call(session, "search", query="hot mug mug", depth=0)["result"]
    assert ([each["skill_id"] for each in result["conflicts"]], result["conflicts_left_out"]) == (["jar", "pan"], 1)
    result = call(session, "search", query="hot cup mug cup", top_k=1)["result"]
    assert result["matches"][0]["skill_id"] == "cup"
    assert len(result["neighbors"]) == 2
    assert result["neighbors_left_out"] >= 1


def test_several_queries_give_what_single_ones_give(session: DagSession) -> None:
    add(session, "mug", "pot", "depends_on")
    queries = ["hot mug", "jam", "hot mug"]
    together = call(session, "search", queries=queries, top_k=2)["results"]
    assert together == [call(session, "search", query=query, top_k=2)["result"] for query in queries]


def test_asking_for_more_than_there_is_gives_all(session: DagSession) -> None:
    assert len(call(session, "search", query="x", top_k=20)["result"]["matches"]) == len(LIBRARY)


def test_an_answer_is_one_complete_json_object_whatever_its_length(tmp_path: Path) -> None:
    odd = 'x " \\ ' + "}" * 3000 + "\n\u2028 名"
    library = SkillLibrary(tuple(Skill(f"s{at}", odd, odd, odd) for at in range(30)))
    session = attend(SkillDag(parts_of(tmp_path, library), max_related=30))
    for tool, arguments in (("search", {"query": odd, "top_k": 20}), ("show", {"skill_id": "s1"})):
        result = {each.name: each for each in session.tools}[tool].call(arguments)
        assert len(result.text) > 3500
        assert orjson.loads(result.text)["ok"] is True


def test_later_sessions_see_merged_edges(tmp_path: Path) -> None:
    dag = SkillDag(parts_of(tmp_path, LIBRARY), search_k=1)
    session = attend(dag)
    add(session, "mug", "jar", "conflicts_with")
    other = attend(dag, "two")
    assert call(other, "search", query="hot mug mug")["result"]["conflicts"] == []
    memory = dag.learn(dag.initial_memory(), [lesson(session)])
    assert "jar conflicts_with mug" in edges(dag, memory)
    later = attend(dag.with_memory(memory), "three")
    assert [each["skill_id"] for each in call(later, "search", query="hot mug mug")["result"]["conflicts"]] == ["jar"]
