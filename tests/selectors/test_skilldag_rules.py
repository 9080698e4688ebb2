"""Edges of a cold start without a model: what the rules say of known similarities, and no cycle whatever they say."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from test_skilldag_candidates import Given

from skillarena.selectors.skilldag.candidates import choose_candidates
from skillarena.selectors.skilldag.labels import Label
from skillarena.selectors.skilldag.rules import label_by_rules
from skillarena.selectors.skilldag.topological_order import TopologicalOrder
from skillarena.selectors.skilldag.views import DistinctVectors

A, B, C, D = np.eye(4)


def mixed(*weights: float) -> np.ndarray:
    row = np.array([*weights, *[0.0] * (4 - len(weights))])
    return row / np.linalg.norm(row)


def labels(selves: Sequence[np.ndarray], needs: dict[int, np.ndarray]) -> list[Label]:
    known = {
        f"{kind}{at}": row for kind, rows in (("s", dict(enumerate(selves))), ("n", needs)) for at, row in rows.items()
    }
    embedder = Given({text: list(map(float, row)) for text, row in known.items()})
    own = DistinctVectors([f"s{at}" for at in range(len(selves))], embedder, "document")
    wanted = DistinctVectors([f"n{at}" for at in needs], embedder, "query")
    needing = np.array(list(needs), dtype=np.intp)
    alike = choose_candidates(np.arange(len(selves)), own, own)
    return label_by_rules(own, alike, wanted, needing, choose_candidates(needing, wanted, own))


def described(found: list[Label]) -> list[tuple[int, int, str]]:
    return [(label.source, label.target, label.type) for label in found]


def test_a_skill_depends_on_the_one_that_best_meets_its_needs() -> None:
    assert described(labels([A, B, C, D], {0: mixed(0, 2, 1)})) == [(0, 1, "depends_on")]


def test_a_need_that_nothing_meets_well_makes_no_edge() -> None:
    assert labels([A, B, mixed(0, 0, 1, 1)], {0: mixed(0, 0.3, 0.3, -1)}) == []


def test_two_skills_that_need_each_other_equally_do_not_depend_on_each_other() -> None:
    assert labels([A, B, C, D], {0: B, 1: A}) == []


def test_of_two_opposite_needs_the_plainly_stronger_one_counts() -> None:
    assert described(labels([A, B, C, D], {0: B, 1: mixed(1, 0, 0.8, 0.8)})) == [(0, 1, "depends_on")]


def test_close_skills_of_the_same_breadth_are_similar() -> None:
    near = mixed(1, 0.1)
    assert described(labels([A, near, C, D], {})) == [(0, 1, "similar_to")]


def test_of_two_close_skills_the_one_nearer_to_the_library_is_the_broader() -> None:
    broad = mixed(1, 0.35, 0.35, 0.35)
    found = labels([A, broad, B, C, D], {})
    assert described(found) == [(0, 1, "specializes")]
    assert "0.86" in found[0].reason


def test_a_need_comes_before_closeness() -> None:
    near = mixed(1, 0.1)
    assert described(labels([A, near, C, D], {0: near})) == [(0, 1, "depends_on")]


def test_the_more_certain_edge_comes_first_and_equal_ones_in_order() -> None:
    found = labels([A, mixed(1, 0.1), C, mixed(0, 0, 1, 0.1)], {})
    assert described(found) == [(0, 1, "similar_to"), (2, 3, "similar_to")]
    certainties = [label.certainty for label in found]
    assert certainties == sorted(certainties, reverse=True)


def test_one_skill_has_no_edge_to_itself() -> None:
    assert labels([A], {0: A}) == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1]), max_size=40))
def test_an_edge_is_left_out_exactly_if_it_closes_a_cycle(edges: list[tuple[int, int]]) -> None:
    order, graph = TopologicalOrder(8), nx.DiGraph()
    graph.add_nodes_from(range(8))
    for source, target in edges:
        closes = nx.has_path(graph, target, source)
        assert order.admit(source, target) is not closes
        if not closes:
            graph.add_edge(source, target)
