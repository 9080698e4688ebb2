"""The decision graph and the Skill-GNN: against computations written out node by node, and what training does."""

from __future__ import annotations

from math import exp, log, log1p, sqrt

import numpy as np
import pytest

from skillarena.selectors.interface import Skill
from skillarena.selectors.spem.decision_graph import (
    FIRST,
    RELATIONS,
    TASK,
    DecisionGraph,
    build_decision_graph,
    normalised,
)
from skillarena.selectors.spem.gnn import LAYERS, WIDTH, Weights, initial_weights, shapes, utilities
from skillarena.selectors.spem.links import Links, facets, link
from skillarena.selectors.spem.statistics import FEATURES, SkillStatistics, features, updated
from skillarena.selectors.spem.training import Example, fit

pytestmark = pytest.mark.usefixtures("one_thread")
DIMENSION = 6


def unit(*numbers: float) -> np.ndarray:
    vector = np.array(numbers, dtype=np.float32)
    return vector / np.linalg.norm(vector)


def no_links(size: int) -> Links:
    return Links(*(np.zeros((size, size), dtype=np.float32) for _ in range(4)))


def random_weights(seed: int = 1) -> Weights:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) / 4 for name, shape in shapes(DIMENSION).items()}


def hand_made(contexts: int = 2) -> DecisionGraph:
    """Four candidates, of which the last has no link to any other; every relation has an edge."""
    rng = np.random.default_rng(7)
    skills = np.stack([unit(*rng.standard_normal(DIMENSION)) for _ in range(4)])
    skills[1] = unit(*(skills[0] + 0.1))
    links = no_links(4)
    links.tools[0, 1] = links.tools[1, 0] = 0.5
    links.tools[0, 2] = links.tools[2, 0] = 0.25
    links.tags[1, 2] = links.tags[2, 1] = 1.0
    links.schema[0, 2] = 0.4
    links.schema[1, 2] = 0.2
    links.known[2, 1] = 1.0
    statistics = features({"a": SkillStatistics(3, 2, 5000.0)}, ["a", "b", "c", "d"])
    states = [unit(*rng.standard_normal(DIMENSION)) for _ in range(contexts)]
    return build_decision_graph(unit(1, 1, 0, 0, 0, 1), states, skills, statistics, links)


def unrolled(weights: Weights, graph: DecisionGraph) -> list[float]:
    """The formula, one node, relation, neighbour and number at a time, in double precision."""
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    states = [row.astype(np.float64) @ weights["input"] for row in graph.features]
    size = len(states)
    for layer in range(LAYERS):
        following = []
        for i in range(size):
            total = np.zeros(WIDTH)
            for r in range(len(RELATIONS)):
                for j in range(size):
                    if graph.weights[r, i, j]:
                        total += float(graph.weights[r, i, j]) * (states[j] @ weights["relations"][layer, r])
            following.append(np.maximum(total, 0.0))
        states = following
    return [
        float(
            weights["gamma"][0] * graph.similarity[k]
            + states[FIRST + k] @ states[TASK] / sqrt(WIDTH)
            + states[FIRST + k] @ weights["bonus"]
        )
        for k in range(size - FIRST)
    ]


@pytest.mark.parametrize("contexts", [0, 1, 2])
def test_the_network_computes_the_formula(contexts: int) -> None:
    graph, weights = hand_made(contexts), random_weights()
    np.testing.assert_allclose(utilities(weights, graph), unrolled(weights, graph), atol=2e-5)


@pytest.mark.parametrize("relation", range(len(RELATIONS)), ids=RELATIONS)
def test_each_relation_has_an_edge_and_a_say(relation: int) -> None:
    graph, weights = hand_made(), random_weights()
    assert graph.weights[relation].any()
    without = {name: values.copy() for name, values in weights.items()}
    without["relations"][:, relation] = 0
    np.testing.assert_allclose(utilities(without, graph), unrolled(without, graph), atol=2e-5)
    assert not np.allclose(utilities(without, graph), utilities(weights, graph), atol=1e-4)


def test_message_weights_add_up_to_one_over_the_neighbours_of_a_relation() -> None:
    graph = hand_made()
    sums = graph.weights.sum(axis=-1)
    assert np.all(np.isclose(sums, 1.0) | (sums == 0.0))
    tools = graph.weights[RELATIONS.index("shared tools")]
    np.testing.assert_allclose(tools[FIRST, FIRST : FIRST + 3], [0.0, 2 / 3, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(tools[FIRST + 1, FIRST], 1.0)
    takes = graph.weights[RELATIONS.index("gives what it takes")]
    np.testing.assert_allclose(takes[FIRST + 2, FIRST : FIRST + 2], [2 / 3, 1 / 3], rtol=1e-6)
    gives = graph.weights[RELATIONS.index("takes what it gives")]
    assert (gives[FIRST, FIRST + 2], gives[FIRST + 1, FIRST + 2]) == (1.0, 1.0)
    before, after = (graph.weights[RELATIONS.index(name)] for name in ("comes before", "comes after"))
    assert before[FIRST + 1, FIRST + 2] == after[FIRST + 2, FIRST + 1] == 1.0
    assert before.sum() == after.sum() == 1.0


def test_relatedness_begins_at_one_half() -> None:
    skills = np.stack([unit(1, 0, 0, 0, 0, 0), unit(0.51, sqrt(1 - 0.51**2), 0, 0, 0, 0), unit(0, 0, 1, 0, 0, 0)])
    graph = build_decision_graph(unit(1, 0, 0, 0, 0, 0), [], skills, features({}, "abc"), no_links(3))
    related = graph.weights[RELATIONS.index("related skill")][FIRST:, FIRST:]
    assert related.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_an_isolated_node_gets_no_message_and_takes_none() -> None:
    graph = hand_made(contexts=0)
    context = graph.weights[:, FIRST - 1]
    assert not np.delete(context, RELATIONS.index("self"), axis=0).any()
    alone = DecisionGraph(graph.features, graph.weights.copy(), graph.similarity)
    alone.weights[:, FIRST + 3, :] = 0
    alone.weights[:, :, FIRST + 3] = 0
    weights = random_weights()
    value = utilities(weights, alone)[3]
    assert value == pytest.approx(float(weights["gamma"][0] * graph.similarity[3]), abs=2e-5)


def test_rows_without_an_edge_stay_empty_when_weights_are_normalised() -> None:
    raw = np.array([[[0, 3, 1], [0, 0, 0], [2, 0, 0]]], dtype=np.float32)
    assert normalised(raw).tolist() == [[[0, 0.75, 0.25], [0, 0, 0], [1, 0, 0]]]


def test_an_untrained_network_ranks_as_the_cosine_does_where_that_is_clear() -> None:
    skills = np.stack([unit(1, 0, 0, 0, 0, at) for at in (4.0, 0.0, 1.0, 2.0)])
    graph = build_decision_graph(unit(1, 0, 0, 0, 0, 0), [], skills, features({}, "abcd"), no_links(4))
    assert np.argsort(-utilities(initial_weights(DIMENSION), graph)).tolist() == [1, 2, 3, 0]
    assert all(np.array_equal(a, b) for a, b in zip(
        initial_weights(DIMENSION).values(), initial_weights(DIMENSION).values(), strict=True))  # fmt: skip


def test_features_hold_text_and_statistics() -> None:
    graph = hand_made()
    assert graph.features.shape == (FIRST + 4, DIMENSION + FEATURES)
    assert not graph.features[:FIRST, DIMENSION:].any()
    np.testing.assert_allclose(
        graph.features[FIRST, DIMENSION:], [log1p(3) / log1p(100), 3 / 5, log1p(5000) / log1p(100_000)], rtol=1e-6
    )
    np.testing.assert_allclose(graph.features[FIRST + 1, DIMENSION:], [0, 0.5, 0])


def test_statistics_count_uses_successes_and_the_mean_cost() -> None:
    once = updated({}, ["a", "b", "a"], won=True, tokens=100)
    twice = updated(once, ["a"], won=False, tokens=400)
    assert twice == {"a": SkillStatistics(2, 1, 250.0), "b": SkillStatistics(1, 1, 100.0)}
    assert once["a"] == SkillStatistics(1, 1, 100.0)
    assert SkillStatistics().success_rate == 0.5
    assert twice["a"].success_rate == 0.5


def test_listwise_loss_is_the_cross_entropy_of_the_whole_list() -> None:
    torch = pytest.importorskip("torch")
    from skillarena.selectors.spem.training import listwise_loss

    values = [[1.0, 2.0, 0.5], [0.0, 0.0, 3.0]]
    by_hand = -(log(exp(2.0) / (exp(1.0) + exp(2.0) + exp(0.5))) + log(1.0 / (1.0 + 1.0 + exp(3.0)))) / 2
    assert float(listwise_loss(torch.tensor(values), torch.tensor([1, 0]))) == pytest.approx(by_hand, rel=1e-6)


def planted(count: int, seed: int) -> list[Example]:
    """Decisions in which the skill that writes is right, however near the others are."""
    rng = np.random.default_rng(seed)
    examples = []
    for _ in range(count):
        skills = np.stack([unit(*rng.standard_normal(DIMENSION)) for _ in range(5)])
        target = int(rng.integers(5))
        skills[target] = unit(0, 0, 0, 0, 3, *rng.standard_normal(1))
        graph = build_decision_graph(
            unit(*rng.standard_normal(DIMENSION)), [], skills, features({}, "abcde"), no_links(5)
        )
        examples.append(Example(graph, target))
    return examples


def hits(weights: Weights, examples: list[Example]) -> float:
    return float(np.mean([np.argmax(utilities(weights, example.graph)) == example.target for example in examples]))


def test_training_lowers_the_loss_and_learns_a_planted_preference() -> None:
    start = initial_weights(DIMENSION)
    before = {name: values.copy() for name, values in start.items()}
    seen, unseen = planted(60, 1), planted(60, 2)
    result = fit(start, seen, epochs=150, rate=5e-3)
    assert result.losses[-1] < 0.5 * result.losses[0]
    assert len(result.losses) == 150
    assert hits(start, unseen) < 0.5
    assert hits(result.weights, unseen) > 0.8
    assert all(np.array_equal(start[name], before[name]) for name in before)
    again = fit(start, seen, epochs=150, rate=5e-3)
    assert all(np.array_equal(again.weights[name], result.weights[name]) for name in before)


def test_training_without_examples_changes_nothing() -> None:
    start = initial_weights(DIMENSION)
    result = fit(start, [], epochs=5, rate=0.1)
    assert result.losses == ()
    assert all(np.array_equal(start[name], result.weights[name]) for name in start)


def skill(name: str, description: str, body: str) -> Skill:
    return Skill(name, name, description, body)


def test_links_come_from_tools_tags_schemas_and_names() -> None:
    heat = skill(
        "kitchen-object-heater",
        "Heats things.",
        "After the kitchen-object-taker, `go to microwave` and `heat it`.\n\n"
        "## Prerequisites\n- The potato is held by hand.",
    )
    take = skill(
        "kitchen-object-taker",
        "Takes things.",
        "First `go to place`, then `take {object}`.\n\n## Outcome\nThe potato is held.",
    )
    write = skill("kitchen-invoice", "", "")
    links = link(["h", "t", "w"], [facets(one) for one in (heat, take, write)], {("t", "w")})
    assert links.tools[0, 1] == links.tools[1, 0] == pytest.approx(1 / 3)  # go, of go, heat and take
    assert links.tags[0, 1] == pytest.approx(1 / 3)  # object, of object, heater and taker; all are of the kitchen
    assert links.tags[0, 2] == 0
    assert links.schema[1, 0] == pytest.approx(2 / 5)  # potato, held; of potato, held, hand, takes, things
    assert links.schema[0, 1] == 0
    assert links.known.tolist() == [[0, 0, 0], [1, 0, 1], [0, 0, 0]]  # named in the text; remembered
    assert not any(matrix.diagonal().any() for matrix in (links.tools, links.tags, links.schema, links.known))


def test_any_document_has_facets() -> None:
    odd = [skill("", "", ""), skill("🜁", "``", "`" * 50), skill("x" * 300, "\x00", "`a" * 9000)]
    links = link(["1", "2", "3"], [facets(one) for one in odd], set())
    assert links.tools.shape == (3, 3)
    one = link(["1"], [facets(odd[0])], set())
    assert one.tags.tolist() == [[0.0]]
