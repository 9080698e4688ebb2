"""The graph refuses what breaks an invariant, says why, and changes nothing then."""

from __future__ import annotations

import pytest

from skillarena.selectors.skilldag.edges import REASON_CHARS, Change, Edge, GraphError, make_edge, net_change
from skillarena.selectors.skilldag.graph import SkillGraph

SKILLS = ("a", "b", "c", "d")


def graph(*edges: tuple[str, str, str]) -> SkillGraph:
    return SkillGraph(SKILLS, [make_edge(*edge, reason="given") for edge in edges])


def add(graph: SkillGraph, source: str, target: str, edge_type: str, reason: str = "seen") -> None:
    graph.apply(graph.addition(source, target, edge_type, reason))


def short(edges: list[Edge]) -> list[str]:
    return [str(edge) for edge in edges]


def refusal(graph: SkillGraph, *edge: str) -> GraphError:
    before = graph.edges
    with pytest.raises(GraphError) as caught:
        add(graph, *edge)
    assert graph.edges == before
    return caught.value


@pytest.mark.parametrize(
    ("edge", "code"),
    [
        (("nobody", "nobody", "likes", "  "), "INVALID_REASON"),
        (("nobody", "b", "likes", "x"), "SKILL_NOT_FOUND"),
        (("a", "nobody", "likes", "x"), "SKILL_NOT_FOUND"),
        (("a", "a", "likes", "x"), "INVALID_EDGE_TYPE"),
        (("a", "a", "depends_on", "x"), "SELF_LOOP_NOT_ALLOWED"),
        (("a", "b", "depends_on", "x"), "EDGE_ALREADY_EXISTS"),
        (("c", "b", "similar_to", "x"), "EDGE_ALREADY_EXISTS"),
        (("b", "a", "specializes", "x"), "WOULD_CREATE_CYCLE"),
        (("a", "b", "conflicts_with", "x"), "CONTRADICTORY_EDGE"),
        (("d", "c", "similar_to", "x"), "CONTRADICTORY_EDGE"),
        (("d", "c", "depends_on", "x"), "CONTRADICTORY_EDGE"),
    ],
)
def test_an_addition_is_checked_in_this_order(edge: tuple[str, str, str, str], code: str) -> None:
    whole = graph(("a", "b", "depends_on"), ("b", "c", "similar_to"), ("c", "d", "conflicts_with"))
    assert refusal(whole, *edge).code == code


def test_a_cycle_is_shown_with_its_whole_path() -> None:
    whole = graph(("a", "b", "depends_on"), ("b", "c", "specializes"))
    assert "c depends_on a depends_on b specializes c" in refusal(whole, "c", "a", "depends_on", "x").message


def test_a_cycle_comes_before_a_contradiction() -> None:
    whole = graph(("a", "b", "depends_on"), ("b", "c", "depends_on"), ("a", "c", "conflicts_with"))
    assert refusal(whole, "c", "a", "specializes", "x").code == "WOULD_CREATE_CYCLE"


def test_positive_types_stack_and_a_second_backbone_type_may_go_the_same_way() -> None:
    whole = graph(("a", "b", "depends_on"))
    for edge_type in ("specializes", "composes_with", "similar_to"):
        add(whole, "a", "b", edge_type)
    assert [edge.type for edge in whole.between("b", "a")] == [
        "depends_on",
        "specializes",
        "composes_with",
        "similar_to",
    ]


def test_symmetric_edges_are_stored_in_order_of_ids_and_directed_ones_as_given() -> None:
    whole = graph(("d", "a", "similar_to"), ("d", "b", "depends_on"))
    assert short(whole.edges) == ["d depends_on b", "a similar_to d"]


def test_edges_of_a_skill_come_by_type_outgoing_first_then_by_the_other_end() -> None:
    whole = graph(
        ("b", "d", "conflicts_with"), ("c", "b", "depends_on"), ("b", "a", "depends_on"), ("b", "c", "similar_to")
    )
    assert short(whole.touching("b")) == ["b depends_on a", "c depends_on b", "b similar_to c", "b conflicts_with d"]
    assert whole.conflicts("b") == ["d"]
    assert whole.touching("nobody") == []


def test_a_removal_takes_an_existing_edge_only() -> None:
    whole = graph(("a", "b", "similar_to"))
    for edge, code in [
        (("a", "b", "similar_to", ""), "INVALID_REASON"),
        (("a", "x", "similar_to", "y"), "SKILL_NOT_FOUND"),
        (("a", "b", "depends_on", "y"), "EDGE_NOT_FOUND"),
    ]:
        with pytest.raises(GraphError) as caught:
            whole.removal(*edge)
        assert caught.value.code == code
    whole.apply(whole.removal("b", "a", "similar_to", "wrong"))
    assert whole.edges == []


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("a", "b", "similar_to", "depends_on", " "), "INVALID_REASON"),
        (("a", "b", "similar_to", "like", "x"), "INVALID_EDGE_TYPE"),
        (("a", "b", "similar_to", "similar_to", "x"), "INVALID_EDGE_TYPE"),
        (("a", "b", "composes_with", "depends_on", "x"), "EDGE_NOT_FOUND"),
        (("b", "c", "depends_on", "specializes", "x"), "EDGE_ALREADY_EXISTS"),
        (("c", "a", "similar_to", "depends_on", "x"), "WOULD_CREATE_CYCLE"),
        (("b", "c", "depends_on", "conflicts_with", "x"), "CONTRADICTORY_EDGE"),
    ],
)
def test_a_retyping_is_checked_in_this_order(arguments: tuple[str, str, str, str, str], code: str) -> None:
    whole = graph(
        ("a", "b", "similar_to"),
        ("a", "b", "depends_on"),
        ("b", "c", "depends_on"),
        ("b", "c", "specializes"),
        ("a", "c", "similar_to"),
    )
    before = whole.edges
    with pytest.raises(GraphError) as caught:
        whole.apply(whole.retyping(*arguments))
    assert caught.value.code == code
    assert whole.edges == before


def test_a_retyping_does_not_contradict_the_edge_it_replaces() -> None:
    whole = graph(("a", "b", "similar_to"))
    whole.apply(whole.retyping("b", "a", "similar_to", "conflicts_with", "both broke it"))
    assert short(whole.edges) == ["a conflicts_with b"]
    assert whole.edges[0].origin == "online"


def test_a_retyping_writes_the_direction_that_is_asked_for() -> None:
    whole = graph(("a", "b", "similar_to"))
    whole.apply(whole.retyping("b", "a", "similar_to", "depends_on", "needed first"))
    assert short(whole.edges) == ["b depends_on a"]


def test_an_edge_made_anew_is_not_the_edge_that_was_to_be_removed() -> None:
    whole = graph(("a", "b", "similar_to"))
    stale = whole.removal("a", "b", "similar_to", "wrong")
    whole.apply(stale)
    add(whole, "a", "b", "similar_to", "for a better reason")
    with pytest.raises(GraphError) as caught:
        whole.apply(stale)
    assert caught.value.code == "EDGE_CHANGED"
    assert len(whole.edges) == 1


def test_a_change_is_carried_out_wholly_or_not_at_all() -> None:
    whole = graph(("a", "b", "similar_to"))
    change = Change(
        removed=tuple(whole.edges),
        added=(make_edge("b", "c", "depends_on", "x"), make_edge("c", "b", "depends_on", "x")),
    )
    with pytest.raises(GraphError):
        whole.apply(change)
    assert short(whole.edges) == ["a similar_to b"]


def test_forks_do_not_see_each_other() -> None:
    whole = graph(("a", "b", "depends_on"))
    one, other = whole.fork(), whole.fork()
    add(one, "b", "c", "depends_on")
    other.apply(other.removal("a", "b", "depends_on", "x"))
    assert (short(whole.edges), short(one.edges), other.edges) == (
        ["a depends_on b"],
        ["a depends_on b", "b depends_on c"],
        [],
    )


def test_a_frozen_graph_and_its_forks_refuse_every_change() -> None:
    whole = graph(("a", "b", "depends_on"))
    whole.freeze()
    for frozen in (whole, whole.fork()):
        assert refusal(frozen, "b", "c", "depends_on").code == "FROZEN"


@pytest.mark.parametrize(
    ("edges", "code"),
    [
        ([("a", "b", "depends_on"), ("b", "c", "specializes"), ("c", "a", "depends_on")], "WOULD_CREATE_CYCLE"),
        ([("a", "b", "similar_to"), ("b", "a", "conflicts_with")], "CONTRADICTORY_EDGE"),
        ([("a", "b", "similar_to"), ("b", "a", "similar_to")], "EDGE_ALREADY_EXISTS"),
        ([("a", "x", "similar_to")], "SKILL_NOT_FOUND"),
        ([("a", "a", "similar_to")], "SELF_LOOP_NOT_ALLOWED"),
        ([("a", "b", "likes")], "INVALID_EDGE_TYPE"),
    ],
)
def test_a_graph_that_breaks_an_invariant_cannot_be_made(edges: list[tuple[str, str, str]], code: str) -> None:
    with pytest.raises(GraphError) as caught:
        graph(*edges)
    assert caught.value.code == code


def test_long_reasons_are_cut_visibly_and_odd_ones_cleaned() -> None:
    whole = graph()
    add(whole, "a", "b", "similar_to", "x" * 500)
    assert whole.edges[0].reason == "x" * (REASON_CHARS - 1) + "…"
    add(whole, "a", "c", "similar_to", " line\n\tbreaks \ud800 ")
    assert whole.between("a", "c")[0].reason == "line breaks ?"


def test_changes_that_cancel_come_to_nothing() -> None:
    edge, other = make_edge("a", "b", "similar_to", "x"), make_edge("a", "b", "depends_on", "x")
    there = Change(removed=(edge,), added=(other,))
    assert net_change([there, there.inverse]) == Change()
    assert net_change([there, Change(removed=(other,))]) == Change(removed=(edge,))


def test_changes_that_do_not_follow_from_each_other_have_no_sum() -> None:
    first, second = make_edge("a", "b", "similar_to", "x"), make_edge("a", "b", "similar_to", "y")
    with pytest.raises(GraphError) as caught:
        net_change([Change(removed=(second,)), Change(removed=(first,))])
    assert caught.value.code == "EDGE_CHANGED"
