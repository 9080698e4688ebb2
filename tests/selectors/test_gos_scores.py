"""Graph of Skills: the inverted index, the lexical score and the seeds."""

from __future__ import annotations

import numpy as np
import pytest
from gos_reference import ov, shared, sig

from skillarena.selectors.graph_of_skills.fields import Node
from skillarena.selectors.graph_of_skills.lexicon import GROUPS, Lexicon, grouped
from skillarena.selectors.graph_of_skills.query import Query
from skillarena.selectors.graph_of_skills.rerank import LexicalScores, rank_bonus
from skillarena.selectors.graph_of_skills.seeds import choose_seeds, lexical_pool, semantic_pool

LONG = "heats a mug that was " + "very " * 40 + "cold"
NODES = [
    Node("hot-mug", "Heats a mug.", "Heats.", ("mug",), ("hot mug",), ("kitchen",), ("stove",), ("heat a mug",)),
    Node("Mug Washer", "Washes.", "", ("dirty mugs", "water"), tags=("kitchen", "sink"), snippet="# Mug Washer"),
    Node("名", "", ""),
    Node("c", LONG, LONG, outputs=("cold", "mug")),
]  # fmt: skip
QUERIES = ["put a hot mug in coffeemachine", LONG, "", "wash mugs in the kitchen sink with water", "hot-mug"]


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return Lexicon.build(NODES)


def test_counts_and_sizes_are_those_of_each_node_alone(lexicon: Lexicon) -> None:
    for text in QUERIES:
        tokens = sig([text])
        for group in GROUPS:
            expected = [sig(list(grouped(node)[group])) for node in NODES]
            assert lexicon.counts(group, tokens).tolist() == [len(tokens & own) for own in expected]
            assert lexicon.sizes(group).tolist() == [len(own) for own in expected]
            assert lexicon.shared(group, [text]).tolist() == [
                pytest.approx(shared([text], list(grouped(node)[group]))) for node in NODES
            ]


def test_a_long_slug_counts_although_only_its_digest_is_kept(lexicon: Lexicon) -> None:
    slug = next(token for token in sig([LONG]) if len(token) > 64)
    assert lexicon.counts("about", [slug]).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("nodes", [NODES, NODES[2:3], [Node("?", "", "")]])
def test_a_lexicon_comes_back_from_its_arrays(nodes: list[Node]) -> None:
    first = Lexicon.build(nodes)
    again = Lexicon.from_arrays(first.arrays())
    for group in GROUPS:
        tokens = sig(QUERIES)
        assert again.counts(group, tokens).tolist() == first.counts(group, tokens).tolist()
        assert again.sizes(group).tolist() == first.sizes(group).tolist()


def test_the_score_is_the_sum_of_its_terms(lexicon: Lexicon) -> None:
    scores = LexicalScores(lexicon, [node.name for node in NODES])
    for text in QUERIES:
        query = Query.of_instruction(text)
        tokens = sig(query.values)
        said = "\n".join(query.values).lower()
        for node, score in zip(NODES, scores.of(query), strict=True):
            bare = "".join(c if c.isascii() and c.isalnum() else " " for c in node.name.lower()).strip()
            expected = (
                0.35 * ov(tokens, [query.task_name])
                + 1.25 * ov(tokens, [node.name])
                + 0.9 * ov(tokens, [node.capability, node.description])
                + 1.15 * ov(tokens, node.tags)
                + 0.95 * ov(tokens, node.tooling)
                + 0.75 * ov(tokens, [*node.inputs, *node.outputs])
                + 0.8 * ov(tokens, node.examples)
                + (1.2 if bare and bare in said else 0.0)
            )
            assert score == pytest.approx(expected)


def test_a_score_by_hand(lexicon: Lexicon) -> None:
    # Q = {hot_mug, hot, mug}; node 0: name 3/3, about {heats_a_mug, heat, mug, heats} 1/3, io {mug, hot_mug, hot} 3/3,
    # examples {heat_a_mug, heat, mug} 1/3, and its name is said.
    score = LexicalScores(lexicon, [node.name for node in NODES]).of(Query.of_instruction("Hot mug"))[0]
    assert score == pytest.approx(0.35 + 1.25 + 0.9 / 3 + 0.75 + 0.8 / 3 + 1.2)
    assert (rank_bonus(1), rank_bonus(4), rank_bonus(None)) == (0.2, 0.05, 0.0)


def test_names_are_found_inside_words_and_never_across_other_characters() -> None:
    nodes = [Node(name, "", "") for name in ("cat", "put mug", "xcat", "a_b")]
    scores = LexicalScores(Lexicon.build(nodes), [node.name for node in nodes])
    base = scores.of(Query.of_instruction("concatenate; put, mug a b"))
    assert (base >= 1.2).tolist() == [True, False, False, True]


def test_the_lexical_pool_holds_the_best_that_share_a_word_ties_in_order() -> None:
    overlap = np.array([0.0, 0.5, 0.2, 0.5, 0.1])
    base = np.array([9.0, 0.0, 0.3, 0.0, 0.0])
    assert lexical_pool(overlap, base, 5) == [1, 2, 3, 4]
    assert len(lexical_pool(np.ones(50), np.zeros(50), 5)) == 20
    assert len(lexical_pool(np.ones(50), np.zeros(50), 30)) == 30
    assert [semantic_pool(seeds) for seeds in (1, 5, 6)] == [20, 20, 24]


def test_seeds_by_hand() -> None:
    base = np.array([0.0, 0.5, 0.9, 0.0])
    seeds = choose_seeds([0, 1], [2, 1], base, 2)
    # 0: 1 + 0.2; 1: 0.5 + 1/2 + 0.2/2 + 0.15/2 + 0.1; 2: 0.9 + 0.15
    assert [(seed.node, seed.semantic_rank, seed.lexical_rank) for seed in seeds] == [(1, 2, 2), (0, 1, None)]
    assert [seed.score for seed in seeds] == [pytest.approx(1.275), pytest.approx(1.2)]
    assert [seed.weight for seed in seeds] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]


def test_seed_weights_fall_with_the_rank() -> None:
    seeds = choose_seeds(range(9), [], np.zeros(9), 5)
    assert [round(seed.weight, 3) for seed in seeds] == [0.438, 0.219, 0.146, 0.109, 0.088]


def test_equal_seeds_come_semantic_first() -> None:
    base = np.array([1.2 - 0.15, 0.0])
    assert [seed.node for seed in choose_seeds([1], [0], base, 2)] == [1, 0]
