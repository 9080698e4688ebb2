"""The execution graph against a literal reading of its formulas, its invariants and the paper's two worked cases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillarena.selectors.execution_graph import (
    build_edges,
    flow,
    logsigmoid,
    phi,
    select_by_stage,
    sigmoid,
    split_points,
    stages,
)

LOGITS = st.one_of(st.integers(-3, 3).map(float), st.floats(-30, 30))
NAN = math.nan


@dataclass(frozen=True)
class Graph:
    """Random kept and dropped edges over n states."""

    n: int
    src: list[int]
    tgt: list[int]
    keep: list[bool]
    relevance: list[float]

    @property
    def arrays(self) -> tuple[list[int], list[int], list[bool], list[float]]:
        return self.src, self.tgt, self.keep, self.relevance

    def reordered(self, order: list[int]) -> Graph:
        columns = ([values[k] for k in order] for values in self.arrays)
        return Graph(self.n, *columns)


@st.composite
def graphs(draw: st.DrawFn, *, smallest: int = 1, dropped: bool = True) -> Graph:
    n = draw(st.integers(smallest, 6))
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        keep = n > 1 and (not dropped or draw(st.booleans()))
        src = draw(st.integers(0, n - 2)) if keep else draw(st.integers(0, 9))
        tgt = draw(st.integers(src + 1, n - 1)) if keep else draw(st.integers(0, 9))
        rows.append((src, tgt, keep, draw(LOGITS)))
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    return Graph(n, *columns)


@st.composite
def scores(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n, count = draw(st.integers(1, 5)), draw(st.integers(0, 6))
    row = st.lists(LOGITS, min_size=n - 1, max_size=n - 1)
    before = [draw(st.one_of(row, st.just([NAN] * (n - 1)))) for _ in range(count)]
    after = [draw(st.lists(LOGITS, min_size=n, max_size=n)) for _ in range(count)]
    return np.array(before, float).reshape(count, n - 1), np.array(after, float).reshape(count, n)


def stage_logits(data: st.DataObject, graph: Graph) -> dict[tuple[int, int], list[float]]:
    splits = split_points(*graph.arrays, n=graph.n)
    count = len(graph.src)
    return {stage: data.draw(st.lists(LOGITS, min_size=count, max_size=count)) for stage in stages(splits, n=graph.n)}


# --- edges


@given(scores())
def test_every_edge_follows_the_definition(given_scores: tuple[np.ndarray, np.ndarray]) -> None:
    before, after = given_scores
    n = after.shape[1]
    edges = build_edges(before, after)
    for k in range(len(after)):
        required = n > 1 and not math.isnan(before[k][0])
        src = max(range(n - 1), key=lambda i: (before[k][i], -i)) if required else 0
        assert edges.src[k] == src
        assert edges.keep[k] == (src + 1 < n)
        if src + 1 < n:
            assert edges.tgt[k] == max(range(src + 1, n), key=lambda j: (after[k][j], -j))


@given(scores())
def test_edges_only_lead_forward(given_scores: tuple[np.ndarray, np.ndarray]) -> None:
    edges = build_edges(*given_scores)
    assert np.all(edges.tgt > edges.src)
    assert np.all(edges.tgt[edges.keep] < given_scores[1].shape[1])


@given(st.data(), scores())
def test_permuting_the_candidates_permutes_the_edges(data: st.DataObject, given_scores) -> None:
    before, after = given_scores
    order = data.draw(st.permutations(range(len(after))))
    plain, moved = build_edges(before, after), build_edges(before[order], after[order])
    for values, moved_values in zip(plain, moved, strict=True):
        assert values[order].tolist() == moved_values.tolist()


def test_ties_go_to_the_earliest_state() -> None:
    edges = build_edges([[2.0, 2.0], [1.0, 3.0]], [[9.0, 5.0, 5.0], [9.0, 9.0, 1.0]])
    assert (edges.src.tolist(), edges.tgt.tolist()) == ([0, 1], [1, 2])


def test_a_skill_without_precondition_starts_in_the_first_state() -> None:
    edges = build_edges([[NAN, NAN]], [[0.0, 1.0, 2.0]])
    assert (edges.src.tolist(), edges.tgt.tolist(), edges.keep.tolist()) == ([0], [2], [True])


def test_scores_of_minus_infinity_still_lead_forward() -> None:
    edges = build_edges([[-math.inf, 0.0]], [[0.0, -math.inf, -math.inf]])
    assert (edges.src.tolist(), edges.tgt.tolist()) == ([1], [2])


def test_a_single_state_drops_every_candidate() -> None:
    edges = build_edges(np.empty((2, 0)), [[1.0], [2.0]])
    assert edges.keep.tolist() == [False, False]
    assert flow(*edges, [3.0, 4.0], n=1).inflow.tolist() == [0.0]
    assert split_points(*edges, [3.0, 4.0], n=1) == []
    assert stages([], n=1) == []


def test_no_candidates_give_an_empty_graph() -> None:
    edges = build_edges(np.empty((0, 2)), np.empty((0, 3)))
    assert [len(values) for values in edges] == [0, 0, 0]
    assert split_points(*edges, [], n=3) == []
    assert select_by_stage(*edges, [], {(0, 2): []}) == []


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ([[1.0, NAN]], [[0.0, 0.0, 0.0]], r"rows \[0\] of precondition_scores are NaN in part"),
        ([[1.0, 1.0]], [[0.0, NAN, 0.0]], r"rows \[0\] of completion_scores hold NaN"),
        ([[1.0]], [[0.0, 0.0, 0.0]], r"precondition_scores must be of shape .* \(1, 2\), got \(1, 1\)"),
        ([[1.0, 1.0]], [0.0, 0.0, 0.0], r"completion_scores must be of shape"),
        (np.empty((1, 0)), np.empty((1, 0)), r"completion_scores must be of shape"),
    ],
)
def test_unusable_scores_are_refused_by_name(before, after, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        build_edges(before, after)


# --- flow and split points


@given(graphs())
def test_flow_equals_the_formulas_summed_one_by_one(graph: Graph) -> None:
    result = flow(*graph.arrays, n=graph.n)
    for i in range(graph.n):
        inflow = outflow = cross = 0.0
        for src, tgt, keep, rho in zip(*graph.arrays, strict=True):
            if not keep:
                continue
            weight = 1 / (1 + math.exp(-rho))
            if tgt <= i:
                inflow += weight / (1 + (i - tgt) / (graph.n - 1))
            if src >= i:
                outflow += weight / (1 + (src - i) / (graph.n - 1))
            if src < i < tgt:
                cross += weight
        assert (result.inflow[i], result.outflow[i], result.cross[i]) == pytest.approx((inflow, outflow, cross))


@given(graphs())
def test_split_points_are_the_inner_states_that_flow_in_and_out_more_than_over(graph: Graph) -> None:
    inflow, outflow, cross = flow(*graph.arrays, n=graph.n)
    expected = [i for i in range(1, graph.n - 1) if min(inflow[i], outflow[i]) > cross[i]]
    assert split_points(*graph.arrays, n=graph.n) == expected


@given(st.data(), graphs())
def test_the_order_of_candidates_changes_no_bit_of_the_flow(data: st.DataObject, graph: Graph) -> None:
    moved = graph.reordered(data.draw(st.permutations(range(len(graph.src)))))
    for values, moved_values in zip(flow(*graph.arrays, n=graph.n), flow(*moved.arrays, n=graph.n), strict=True):
        assert values.tolist() == moved_values.tolist()


@given(graphs(smallest=2), st.integers(-5, 15), st.integers(-5, 15), st.sampled_from([0.0, 25.0, NAN]))
def test_a_dropped_edge_changes_nothing(graph: Graph, src: int, tgt: int, rho: float) -> None:
    more = Graph(graph.n, [*graph.src, src], [*graph.tgt, tgt], [*graph.keep, False], [*graph.relevance, rho])
    for values, more_values in zip(flow(*graph.arrays, n=graph.n), flow(*more.arrays, n=graph.n), strict=True):
        assert values.tolist() == more_values.tolist()
    whole = (0, graph.n - 1)
    plain = select_by_stage(*graph.arrays, {whole: graph.relevance})
    assert plain == select_by_stage(*more.arrays, {whole: more.relevance})


@given(graphs(smallest=2), st.data())
def test_a_more_relevant_edge_never_lowers_a_flow(graph: Graph, data: st.DataObject) -> None:
    if not graph.src:
        return
    k = data.draw(st.integers(0, len(graph.src) - 1))
    raised = list(graph.relevance)
    raised[k] += data.draw(st.floats(0.1, 10))
    plain = flow(*graph.arrays, n=graph.n)
    more = flow(graph.src, graph.tgt, graph.keep, raised, n=graph.n)
    for values, more_values in zip(plain, more, strict=True):
        assert np.all(more_values >= values)


@given(graphs(smallest=2))
def test_the_outer_states_are_crossed_by_nothing(graph: Graph) -> None:
    result = flow(*graph.arrays, n=graph.n)
    assert (result.cross[0], result.cross[-1], result.inflow[0], result.outflow[-1]) == (0, 0, 0, 0)


def test_equal_flows_are_no_split_point() -> None:
    # At state 1: In = w, Out = w, Cross = w with the same weight.
    assert split_points([0, 1, 0], [1, 2, 2], [True] * 3, [0.3] * 3, n=3) == []
    assert split_points([0, 1, 0], [1, 2, 2], [True] * 3, [0.3, 0.3, 0.2], n=3) == [1]


def test_two_states_have_no_inner_state_to_split_at() -> None:
    assert split_points([0], [1], [True], [2.0], n=2) == []
    assert stages([], n=2) == [(0, 1)]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (([0, 0], [1], [True], [1.0], 2), "src must be of shape"),
        (([0], [1, 1], [True], [1.0], 2), "tgt must be of shape"),
        (([0], [1], [True], [1.0, 2.0], 2), "relevance must be of shape"),
        (([0], [1], True, [1.0], 2), "keep must be of shape"),
        (([0], [1], [True], [NAN], 2), "relevance is NaN for a kept edge"),
        (([1], [1], [True], [1.0], 2), "0 <= src < tgt < n"),
        (([0], [2], [True], [1.0], 2), "0 <= src < tgt < n"),
        (([-1], [1], [True], [1.0], 2), "0 <= src < tgt < n"),
        (([0], [1], [False], [1.0], 0), "at least 1"),
    ],
)
def test_unusable_edges_are_refused_by_name(arguments, complaint: str) -> None:
    *arrays, n = arguments
    with pytest.raises(ValueError, match=complaint):
        flow(*arrays, n=n)


# --- stages and selection


@given(graphs(smallest=2))
def test_stages_tile_the_states_without_gap(graph: Graph) -> None:
    splits = split_points(*graph.arrays, n=graph.n)
    tiles = stages(splits, n=graph.n)
    assert tiles[0][0] == 0
    assert tiles[-1][1] == graph.n - 1
    assert all(left[1] == right[0] for left, right in pairwise(tiles))
    assert [a for a, _ in tiles[1:]] == splits


@pytest.mark.parametrize("splits", [[0], [3], [2, 1], [1, 1], [-1]])
def test_impossible_split_points_are_refused(splits: list[int]) -> None:
    with pytest.raises(ValueError, match="ascend strictly between 0 and n - 1 = 3"):
        stages(splits, n=4)


@pytest.mark.parametrize("candidates", ["all", "overlapping"])
@given(data=st.data(), graph=graphs(smallest=2))
def test_selection_takes_the_best_of_each_stage_once(data: st.DataObject, graph: Graph, candidates: str) -> None:
    logits = stage_logits(data, graph)
    expected: list[int] = []
    for (a, b), values in sorted(logits.items()):
        fits = phi(graph.relevance, values)
        competing = [
            k
            for k, keep in enumerate(graph.keep)
            if keep and (candidates == "all" or (graph.src[k] < b and graph.tgt[k] > a))
        ]
        if competing:
            best = max(competing, key=lambda k: (fits[k], -k))
            expected += [best] if best not in expected else []
    chosen = select_by_stage(*graph.arrays, logits, candidates=candidates)  # type: ignore[arg-type]
    assert chosen == expected
    assert len(chosen) <= len(logits)
    assert bool(chosen) == any(graph.keep)


@given(st.data(), graphs(smallest=2))
def test_permuting_candidates_permutes_the_selection(data: st.DataObject, graph: Graph) -> None:
    count = len(graph.src)
    distinct = data.draw(st.lists(st.integers(-8, 8), min_size=count, max_size=count, unique=True))
    graph = Graph(graph.n, graph.src, graph.tgt, graph.keep, distinct)
    order = data.draw(st.permutations(range(count)))
    moved = graph.reordered(order)
    logits = {(0, 1): [0.0] * count, (1, graph.n): [1.0] * count}
    chosen, moved_chosen = select_by_stage(*graph.arrays, logits), select_by_stage(*moved.arrays, logits)
    assert chosen == [order[k] for k in moved_chosen]


def test_selection_follows_stage_order_whatever_the_order_of_the_mapping() -> None:
    edges = ([0, 1], [1, 2], [True, True], [0.0, 0.0])
    logits = {(1, 2): [-4.0, 4.0], (0, 1): [4.0, -4.0]}
    assert select_by_stage(*edges, logits) == [0, 1]


def test_equal_fits_go_to_the_smallest_index() -> None:
    assert select_by_stage([0, 0], [1, 1], [True, True], [1.0, 1.0], {(0, 1): [2.0, 2.0]}) == [0]


def test_a_stage_that_nothing_overlaps_chooses_nothing() -> None:
    edges = ([0], [1], [True], [1.0])
    logits = {(0, 1): [1.0], (1, 2): [9.0]}
    assert select_by_stage(*edges, logits, candidates="overlapping") == [0]
    assert select_by_stage(*edges, logits, candidates="all") == [0]
    assert select_by_stage(*edges, {(1, 2): [9.0]}, candidates="overlapping") == []


@pytest.mark.parametrize(
    ("stage_scores", "options", "complaint"),
    [
        ({(0, 1): [1.0, 2.0]}, {}, r"stage_scores\[\(0, 1\)\] must be of shape"),
        ({(0, 1): [NAN]}, {}, r"stage_scores\[\(0, 1\)\] is NaN for a kept edge"),
        ({(1, 1): [1.0]}, {}, "needs a < b"),
        ({(0, 1): [1.0]}, {"candidates": "some"}, "all, overlapping"),
    ],
)
def test_unusable_stages_are_refused_by_name(stage_scores, options, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        select_by_stage([0], [1], [True], [1.0], stage_scores, **options)


# --- numbers


@given(st.floats(-700, 30))
def test_logsigmoid_equals_the_plain_formula_where_that_works(x: float) -> None:
    assert float(logsigmoid(x)) == pytest.approx(math.log(1 / (1 + math.exp(-x))), abs=1e-12)


def test_logsigmoid_is_finite_and_exact_far_out() -> None:
    assert logsigmoid([-1e308, 1e308, 0.0]).tolist() == [-1e308, 0.0, -math.log(2)]
    assert sigmoid([-1e308, 1e308, 0.0]).tolist() == [0.0, 1.0, 0.5]
    assert logsigmoid(np.float32(-100)).dtype == np.float64


# --- the paper's worked cases (figure 4): weights, splits and choices as printed, edges that fit the drawing


def logits_of(*weights: float) -> list[float]:
    return [math.log(w / (1 - w)) for w in weights]


def test_worked_case_of_placing_a_watch_is_one_stage() -> None:
    names = ["object-locator", "environment-scanner", "search-pattern-executor", "locate-target-object", "tool-user"]
    relevance = logits_of(0.89, 0.72, 0.48, 0.33, 0.13)
    # The best skills reach the end in one go; the others find the watch (s_1) and leave the placing undone.
    before = [[NAN, NAN], [NAN, NAN], [NAN, NAN], [NAN, NAN], [-2.0, 1.0]]
    after = [[-5.0, 0.5, 2.0], [-5.0, 0.1, 0.2], [-5.0, 1.0, 0.3], [-5.0, 2.0, -1.0], [-5.0, 0.0, 1.0]]
    edges = build_edges(before, after)
    assert list(zip(edges.src.tolist(), edges.tgt.tolist(), strict=True)) == [(0, 2), (0, 2), (0, 1), (0, 1), (1, 2)]
    splits = split_points(*edges, relevance, n=3)
    assert splits == []
    assert stages(splits, n=3) == [(0, 2)]
    chosen = select_by_stage(*edges, relevance, {(0, 2): [2.0, 1.0, 0.5, 0.4, -1.0]})
    assert [names[k] for k in chosen] == ["object-locator"]


def test_worked_case_of_a_hot_mug_splits_once_the_mug_is_obtained() -> None:
    names = ["object-locator", "heat-object-with-appliance", "object-heater", "device-operator", "tool-user"]
    relevance = logits_of(0.84, 0.81, 0.45, 0.32, 0.28)
    before = [[NAN] * 3, [-1.0, 2.0, 0.0], [-3.0, 3.0, 1.0], [-2.0, 1.0, 0.5], [-2.0, 0.8, 0.7]]
    after = [[0.0, 3.0, -1.0, -2.0], *[[0.0, 0.0, 1.0, 2.0]] * 4]
    edges = build_edges(before, after)
    assert list(zip(edges.src.tolist(), edges.tgt.tolist(), strict=True)) == [(0, 1)] + [(1, 3)] * 4
    splits = split_points(*edges, relevance, n=4)
    assert splits == [1]
    assert stages(splits, n=4) == [(0, 1), (1, 3)]
    obtain = [3.0, -2.0, -3.0, -2.0, -2.5]
    heat_and_put = [-2.0, 3.0, 2.0, 0.0, -1.0]
    chosen = select_by_stage(*edges, relevance, {(0, 1): obtain, (1, 3): heat_and_put})
    assert [names[k] for k in chosen] == ["object-locator", "heat-object-with-appliance"]
