"""Graph of Skills: matches of inputs and outputs, candidates, edges, near-duplicates and the walk."""

from __future__ import annotations

from pathlib import Path
from random import Random

import networkx as nx
import numpy as np
import pytest
from gos_reference import io, ov, shared, sig
from selector_contract import WordEmbedder

from skillarena.conf.errors import LibraryError
from skillarena.selectors.graph_of_skills import io_match
from skillarena.selectors.graph_of_skills.candidates import LinkCandidates
from skillarena.selectors.graph_of_skills.edges import KINDS, Edge, Edges, arcs
from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.io_match import io_scores
from skillarena.selectors.graph_of_skills.lexicon import Lexicon
from skillarena.selectors.graph_of_skills.linking import dependencies, open_questions
from skillarena.selectors.graph_of_skills.near_duplicates import near_duplicates
from skillarena.selectors.graph_of_skills.pagerank import flow, personalised_pagerank
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.recall import Recall

NO_PAIRS = np.empty((0, 2), dtype=np.int32)
WORDS = [
    "mug",
    "hot mug",
    "the mug",
    "mugs",
    "clean fork",
    "fork, clean",
    "json",
    "text",
    "text file",
    "a b",
    "?",
    "water cup tea",
]


def random_nodes(count: int, seed: int) -> list[Node]:
    lot = Random(seed)

    def some(most: int) -> tuple[str, ...]:
        return tuple(lot.choice(WORDS) for _ in range(lot.randint(0, most)))

    return [
        Node(f"skill {number}", lot.choice(WORDS), lot.choice(WORDS), some(3), some(3), some(1), some(1), some(2))
        for number in range(count)
    ]


def candidates(nodes: list[Node], folder: Path) -> LinkCandidates:
    library = SkillLibrary(tuple(Skill(f"{number:04}", node.name, "", "") for number, node in enumerate(nodes)))
    recall = Recall(library, WordEmbedder(), IndexStore(folder), lambda skill: nodes[int(skill.id)].embedded)
    return LinkCandidates(nodes, Lexicon.build(nodes), matches(nodes), recall)


def matches(nodes: list[Node]):
    return io_scores([node.outputs for node in nodes], [node.inputs for node in nodes])


@pytest.mark.parametrize(
    ("outputs", "inputs", "score"),
    [
        (["Hot mug"], ["hot-mug"], 1.0),
        (["mug"], ["hot mug"], 0.85),
        (["log"], ["catalogue"], 0.85),  # inside a word
        (["clean fork"], ["fork, clean"], 2 / 4),  # two words and two slugs: nothing above the weak score
        (["hot clean mug red"], ["mug red hot clean"], 4 / 6),
        (["hot mug", "x"], ["mug", "x"], 0.85),  # the first that decides, not the best
        (["q", "hot mug"], ["hot mug", "mug"], 1.0),
        (["hot clean mug red", "tea"], ["mug red hot clean", "tea"], 1.0),  # what decides comes before what is alike
        (["?"], ["?"], 0.0),
        (["tea"], ["mug"], 0.0),
        ([], ["mug"], 0.0),
    ],
)  # fmt: skip
def test_matches_by_hand(outputs: list[str], inputs: list[str], score: float) -> None:
    found = io_scores([outputs, []], [[], inputs])[0, 1]
    assert found == pytest.approx(score if score > 0.5 else 0.0)
    assert io(outputs, inputs) == pytest.approx(score)


@pytest.mark.parametrize("seed", range(5))
def test_matches_are_those_of_each_pair_alone(seed: int) -> None:
    nodes = random_nodes(30, seed)
    table = matches(nodes).toarray()
    for a, giver in enumerate(nodes):
        for b, taker in enumerate(nodes):
            score = io(giver.outputs, taker.inputs) if a != b else 0.0
            assert table[a, b] == pytest.approx(score if score > 0.5 else 0.0)


def test_a_library_in_which_everything_matches_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(io_match, "MOST_MATCHES", 99)
    with pytest.raises(LibraryError, match="so alike that 100 pairs"):
        io_scores([["mug"]] * 10, [["mug"]] * 10)


@pytest.mark.parametrize("seed", range(5))
def test_candidates_are_ranked_as_each_pair_alone(seed: int, tmp_path: Path) -> None:
    nodes = random_nodes(60, seed)
    ranked = candidates(nodes, tmp_path)
    vectors = WordEmbedder().encode([node.embedded for node in nodes], "document")
    for a, node in enumerate(nodes):
        query = Query.of_node(node)
        tokens = sig(query.values)
        nearest = np.argsort(-(vectors @ WordEmbedder().encode([query.embedded], "query")[0]), kind="stable")[:32]
        ranks = {int(other): rank for rank, other in enumerate(nearest, start=1)}
        scores = {}
        for b, other in enumerate(nodes):
            features = [
                weight * value
                for weight, value in (
                    (1.0, shared(node.tags, other.tags)),
                    (0.75, shared(node.tooling, other.tooling)),
                    (0.6, shared(node.examples, other.examples)),
                    (0.4, shared([*node.inputs, *node.outputs], [*other.inputs, *other.outputs])),
                )
                if value >= 0.5
            ] + [
                0.85 * value for value in [max(io(node.outputs, other.inputs), io(other.outputs, node.inputs))] if value
            ]
            if a == b or not features:
                continue
            scores[b] = sum(features) + (
                1.05 * ov(tokens, [other.name])
                + 0.8 * ov(tokens, [other.capability, other.description])
                + 1.0 * ov(tokens, other.tags)
                + 0.85 * ov(tokens, other.tooling)
                + 0.55 * ov(tokens, [*other.inputs, *other.outputs])
                + 0.7 * ov(tokens, other.examples)
            )
        lexical = sorted(scores, key=lambda b: -scores[b])[:32]
        best = {b: scores[b] for b in lexical}
        best |= {b: scores[b] + 1.2 / rank for b, rank in ranks.items() if b in scores}
        found = ranked.ranked(a)
        assert len(found) == min(32, len(best))
        assert [best[b] for b in found] == pytest.approx(sorted(best.values(), reverse=True)[:32])


@pytest.mark.parametrize("seed", range(5))
def test_dependencies_are_those_of_every_pair_the_reference_tests(seed: int, tmp_path: Path) -> None:
    nodes = random_nodes(60, seed)
    ranked = candidates(nodes, tmp_path).ranked
    expected = {}
    for a in range(len(nodes)):
        proposed = set(ranked(a))
        for b in range(a + 1, len(nodes)):
            tokens = sig(nodes[a].outputs) & sig(nodes[b].inputs) | sig(nodes[b].outputs) & sig(nodes[a].inputs)
            for source, target in ((a, b), (b, a)):
                score = io(nodes[source].outputs, nodes[target].inputs)
                if score >= 0.6 and (tokens or b in proposed):
                    expected[source, target] = pytest.approx(score)
    found = dependencies(nodes, matches(nodes), ranked)
    assert {(edge.source, edge.target): edge.weight for edge in found} == expected
    assert {edge.kind for edge in found} == {"dependency"}


def test_a_pair_is_asked_about_once_and_not_when_a_rule_links_it() -> None:
    ranks = {0: [2, 1], 1: [0], 2: [0, 1], 3: [4, 5, 6, 7, 8, 9, 10, 11, 12, 13]}
    questions = open_questions(5, [Edge(1, 0, "dependency", 1.0)], lambda node: ranks.get(node, []))
    assert questions == [(0, [2]), (3, [4, 5, 6, 7, 8, 9, 10, 11])]


def test_of_equal_edges_the_heaviest_stays() -> None:
    edges = Edges.of([Edge(1, 0, "workflow", 0.3), Edge(1, 0, "workflow", 0.6), Edge(1, 0, "semantic", 0.1)])
    assert edges.among([0, 1]) == [Edge(1, 0, "workflow", 0.6), Edge(1, 0, "semantic", 0.1)]
    assert edges.among([0]) == []
    assert edges.by_kind() == {"workflow": 1, "semantic": 1}


def table(edges: Edges, duplicates: np.ndarray, size: int) -> np.ndarray:
    """Weights of the way from row to column."""
    weights = np.zeros((size, size))
    for start, end, weight in zip(*arcs(edges, duplicates), strict=True):
        weights[start, end] += weight
    return weights


def test_a_consumer_before_its_producer_keeps_its_direction_in_the_paper_and_loses_it_in_the_released_code() -> None:
    edges = Edges.of([Edge(1, 0, "workflow", 0.7)])  # 1 comes before 0 in the work, and after it in the library
    np.testing.assert_allclose(table(edges.oriented("paper"), NO_PAIRS, 2), [[0, 0.35], [0.7, 0]])
    np.testing.assert_allclose(table(edges.oriented("released"), NO_PAIRS, 2), [[0, 0.7], [0.35, 0]])


@pytest.mark.parametrize("orientation", ["paper", "released"])
def test_dependencies_lead_both_ways_whatever_the_orientation(orientation) -> None:
    edges = Edges.of([Edge(1, 0, "dependency", 0.85), Edge(0, 2, "dependency", 1.0), Edge(2, 0, "dependency", 0.6)])
    weights = table(edges.oriented(orientation), NO_PAIRS, 3)
    np.testing.assert_allclose(weights, [[0, 0.85, 1.6], [0.85, 0, 0], [1.6, 0, 0]])


def test_kinds_weigh_as_published() -> None:
    assert {name: (kind.strength, kind.backwards) for name, kind in KINDS.items()} == {
        "dependency": (1.0, 1.0),
        "workflow": (0.7, 0.5),
        "semantic": (0.4, 0.2),
        "alternative": (0.3, 0.1),
    }


def test_near_duplicates_lead_both_ways_only_where_there_is_no_other_edge() -> None:
    pairs = np.array([[0, 1]], dtype=np.int32)
    np.testing.assert_allclose(table(Edges.of([]), pairs, 3), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])
    with_edge = table(Edges.of([Edge(1, 2, "dependency", 0.6)]), pairs, 3)
    np.testing.assert_allclose(with_edge, [[0, 1, 0], [0, 0, 0.6], [0, 0.6, 0]])


def unit(*degrees: float) -> np.ndarray:
    radians = np.radians(np.array(degrees))
    return np.stack((np.cos(radians), np.sin(radians)), axis=1).astype(np.float32)


def test_near_duplicates_are_later_nodes_among_the_three_nearest() -> None:
    # cos 36.9 degrees is 0.8. Node 0 has itself, 1 and 2 as its nearest, so 3 is no neighbour of it.
    assert near_duplicates(unit(0, 5, 10, 15, 120)).tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    assert near_duplicates(unit(0, 36.8)).tolist() == [[0, 1]]
    assert near_duplicates(unit(0, 37.0)).tolist() == []
    assert near_duplicates(unit(0)).tolist() == []


def test_equal_nodes_are_no_trouble() -> None:
    pairs = near_duplicates(np.repeat(unit(30), 700, axis=0))  # more than one block
    assert set(map(tuple, pairs.tolist())) == {(0, 1), (0, 2), (1, 2)}


def test_near_duplicates_over_blocks_are_those_of_the_whole_table() -> None:
    vectors = np.random.default_rng(1).normal(size=(1300, 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    whole = vectors @ vectors.T
    expected = {
        (i, int(j))
        for i in range(1300)
        for j in np.argsort(-whole[i], kind="stable")[:3]
        if j > i and whole[i, j] >= 0.8
    }
    assert set(map(tuple, near_duplicates(vectors).tolist())) == expected


def restart(size: int, **weights: float) -> np.ndarray:
    vector = np.zeros(size)
    for node, weight in weights.items():
        vector[int(node[1:])] = weight
    return vector


@pytest.mark.parametrize("seed", range(4))
def test_the_walk_is_personalised_pagerank(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, columns = random.integers(0, 30, (2, 90)).astype(np.int32)
    weights = random.uniform(0.1, 1, 90)
    start = random.dirichlet(np.ones(4))
    graph = nx.DiGraph()
    graph.add_nodes_from(range(30))
    for row, column, weight in zip(rows, columns, weights, strict=True):
        graph.add_edge(row, column, weight=weight + graph.get_edge_data(row, column, {"weight": 0})["weight"])
    for node in [node for node in graph if graph.out_degree(node) == 0]:
        graph.add_edge(node, node, weight=1.0)
    expected = nx.pagerank(
        graph, alpha=0.8, personalization=dict(enumerate(start)), weight="weight", tol=1e-12, max_iter=1000
    )
    scores = personalised_pagerank(flow(30, rows, columns, weights), np.concatenate((start, np.zeros(26))))
    np.testing.assert_allclose(scores, [expected[node] for node in range(30)], atol=2e-5)
    assert scores.sum() == pytest.approx(1)


def test_isolated_seeds_keep_all_they_have() -> None:
    nothing = np.empty(0, dtype=np.int32)
    scores = personalised_pagerank(flow(4, nothing, nothing, np.empty(0)), restart(4, n0=0.75, n2=0.25))
    np.testing.assert_allclose(scores, [0.75, 0, 0.25, 0])


def test_two_nodes_by_hand() -> None:
    # All goes to and fro: s0 = 0.2 + 0.8 s1 and s1 = 0.8 s0, so s0 = 0.2 / 0.36.
    there, back = np.array([0, 1], dtype=np.int32), np.array([1, 0], dtype=np.int32)
    scores = personalised_pagerank(flow(2, there, back, np.ones(2)), restart(2, n0=1.0))
    np.testing.assert_allclose(scores, [0.2 / 0.36, 0.16 / 0.36], atol=2e-5)
