"""Fitting the Skill-GNN: listwise cross-entropy between utilities and the skill that should win (ours).

A few hundred examples would be learned by heart, to the harm of every skill that is no target among them. Each fit is
therefore pulled back to where it began. Measured with MiniLM on half of 98 skills of text worlds, MRR of the other half
by their descriptions: 1.00 by cosine, 0.85 after a fit without the pull, 1.00 with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.spem.decision_graph import DecisionGraph
from skillarena.selectors.spem.gnn import Weights, batch, forward, one_thread, tensors

if TYPE_CHECKING:
    from torch import Tensor

PULL = 0.02
"""Weight of the squared distance from the initial weights, beside the loss."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """A decision and its right answer."""

    graph: DecisionGraph
    target: int
    """Position among the candidates."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """What training led to."""

    weights: dict[str, NDArray[np.float32]]
    losses: tuple[float, ...]
    """Mean listwise loss before each epoch."""


def listwise_loss(utilities: Tensor, targets: Tensor) -> Tensor:
    """Mean of -log softmax(utilities)[target] over a batch: [b, k], [b] -> []."""
    import torch

    return torch.nn.functional.cross_entropy(utilities, targets)


def fit(weights: Weights, examples: Sequence[Example], *, epochs: int, rate: float) -> Fit:
    """Adam on all examples at once; nothing is drawn at random, so the same arguments give the same bits.

    Args:
        weights: where to begin; they are not changed.
        examples: graphs with the same number of nodes; without one nothing changes.
        epochs: updates.
        rate: learning rate.
    """
    import torch

    if not examples:
        return Fit({name: np.array(values) for name, values in weights.items()}, ())
    with one_thread():
        start, trained = tensors(weights), tensors(weights)
        for tensor in trained.values():
            tensor.requires_grad_()
        inputs = batch([example.graph for example in examples])
        targets = torch.tensor([example.target for example in examples])
        optimiser = torch.optim.Adam(list(trained.values()), lr=rate)
        losses = []
        for _ in range(epochs):
            optimiser.zero_grad()
            loss = listwise_loss(forward(trained, *inputs), targets)
            moved = torch.stack([(tensor - start[name]).square().sum() for name, tensor in trained.items()]).sum()
            (loss + PULL * moved).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(loss.item())
    return Fit({name: tensor.detach().numpy() for name, tensor in trained.items()}, tuple(losses))
