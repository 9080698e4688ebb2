"""What processes that call endpoints and the governor of a run tell each other: plain frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Spending:
    """What LLM calls took."""

    tokens: int = 0
    """Prompt and completion tokens of all replies, discarded ones included."""
    cost: float = 0.0
    """Money for them in the currency of the prices; calls without a known price count as nothing."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(self.tokens + other.tokens, self.cost + other.cost)


@dataclass(frozen=True, slots=True)
class Report:
    """One process's use of one endpoint since its last report."""

    ceiling: int
    """The most calls at once that the configuration allows."""
    epoch: int
    """The epoch (see ``Aimd``) that ``replies`` and ``refused`` belong to."""
    under_way: int
    """Calls under way now."""
    demand: int
    """Most calls under way and waiting at any time since the last report."""
    replies: int = 0
    """Calls of this epoch that were answered."""
    refused: bool = False
    """At least one call of this epoch was refused for being too many."""
    pause_s: float = 0.0
    """Seconds for which the endpoint asked not to be called, longest wish."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a process may do with one endpoint until it hears otherwise."""

    limit: int
    """Calls under way at once."""
    epoch: int
    """The epoch that calls started now belong to."""
    pause_s: float = 0.0
    """Seconds from now until the next call may start."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The governor's answer to the reports of one process."""

    shares: dict[str, Share] = field(default_factory=dict)
    """By endpoint."""
    spent: str = ""
    """Why no further call may be made, as a sentence; empty while the budget lasts."""
