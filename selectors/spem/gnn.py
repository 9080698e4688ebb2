"""Skill-GNN: relation-aware message passing over a decision graph, one utility for each candidate (SPEM paper).

h_i' = phi(sum_r sum_{j in N_r(i)} alpha^r_ij W_r h_j), two layers, phi = ReLU. Left open by the paper and ours:
features are first brought to ``WIDTH`` numbers by one matrix for all relations; and the utility of candidate i is

    u_i = gamma cos(task, i) + <h_i, h_task> / sqrt(WIDTH) + <b, h_i>

so that an untrained network ranks about as the embeddings do, and training learns the difference.

All weights are plain arrays. Everything runs in float32 on one thread of the CPU, where PyTorch's operations used here
give the same bits each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.measure import offline
from skillarena.selectors.spem.decision_graph import FIRST, RELATIONS, TASK, DecisionGraph
from skillarena.selectors.spem.statistics import FEATURES

if TYPE_CHECKING:
    from torch import Tensor

WIDTH = 32
"""Numbers of a hidden state."""
LAYERS = 2
Weights = Mapping[str, NDArray[np.float32]]
"""``input`` [d + FEATURES, WIDTH], ``relations`` [LAYERS, R, WIDTH, WIDTH], ``bonus`` [WIDTH], ``gamma`` [1]."""
_GAMMA = 10.0
_SMALL = 0.3
_SEED = 20261026
_DECIMALS = 5
"""Utilities are rounded, so that equal candidates tie exactly."""


def shapes(dimension: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the weights for embeddings of ``dimension`` numbers."""
    return {
        "input": (dimension + FEATURES, WIDTH),
        "relations": (LAYERS, len(RELATIONS), WIDTH, WIDTH),
        "bonus": (WIDTH,),
        "gamma": (1,),
    }


def initial_weights(dimension: int) -> dict[str, NDArray[np.float32]]:
    """The same random weights each time, so small that the cosine decides at first."""
    random = np.random.default_rng(_SEED)
    form = shapes(dimension)
    relations = random.standard_normal(form["relations"]) * _SMALL / np.sqrt(WIDTH * len(RELATIONS))
    return {
        "input": random.standard_normal(form["input"]).astype(np.float32),
        "relations": relations.astype(np.float32),
        "bonus": np.zeros(form["bonus"], dtype=np.float32),
        "gamma": np.full(form["gamma"], _GAMMA, dtype=np.float32),
    }


def utilities(weights: Weights, graph: DecisionGraph) -> NDArray[np.float32]:
    """float32[k], one utility a candidate, rounded to 5 decimals."""
    with offline():
        import torch

    with one_thread(), torch.no_grad():
        result = forward(tensors(weights), *batch([graph]))[0]
    return np.round(result.numpy(), _DECIMALS)


def forward(weights: Mapping[str, Tensor], features: Tensor, alpha: Tensor, similarity: Tensor) -> Tensor:
    """Utilities [b, k] for a batch of graphs with the same number of nodes.

    Args:
        weights: see ``Weights``.
        features: [b, n, d + FEATURES].
        alpha: [b, R, n, n].
        similarity: [b, k].
    """
    import torch

    states = features @ weights["input"]
    size, relations, nodes, _ = alpha.shape
    for layer in weights["relations"]:
        # sum_r (alpha^r h) W_r: one product for all relations, with what comes from each side by side.
        received = (alpha.flatten(1, 2) @ states).view(size, relations, nodes, WIDTH).transpose(1, 2).flatten(2)
        states = torch.relu(received @ layer.flatten(0, 1))
    candidates, task = states[:, FIRST:], states[:, TASK]
    match: Tensor = (candidates @ task.unsqueeze(-1)).squeeze(-1) / WIDTH**0.5
    return weights["gamma"] * similarity + match + candidates @ weights["bonus"]


def batch(graphs: Sequence[DecisionGraph]) -> tuple[Tensor, Tensor, Tensor]:
    """Features, alpha and similarity of graphs of one size, stacked."""
    import torch

    return (
        torch.from_numpy(np.stack([graph.features for graph in graphs])),
        torch.from_numpy(np.stack([graph.weights for graph in graphs])),
        torch.from_numpy(np.stack([graph.similarity for graph in graphs])),
    )


def tensors(weights: Weights) -> dict[str, Tensor]:
    """Copies that may be trained."""
    import torch

    return {name: torch.from_numpy(np.array(values, dtype=np.float32)) for name, values in weights.items()}


@contextmanager
def one_thread() -> Iterator[None]:
    """The number of threads decides in which order PyTorch adds up, and so about the last bits of a sum."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
