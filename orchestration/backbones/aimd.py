"""How many calls an endpoint takes at once, found as TCP finds the capacity of a link. No clock, no I/O."""

from __future__ import annotations

from collections.abc import Sequence

START = 8
"""Calls at once before anything is known about the endpoint."""


class Aimd:
    """A limit that grows while the endpoint keeps up and is halved when it refuses.

    Until the first refusal every reply adds a call (slow start: the limit doubles with each round trip), after it every
    round trip adds one (additive increase). A refusal (429, or 503 with ``Retry-After``) halves the limit, once for all
    refusals of one round trip: calls carry the epoch they started in, each halving begins a new epoch, and what comes
    back to calls of an earlier epoch says nothing about the present limit.

    Args:
        ceiling: the limit never exceeds it, at least 1.
    """

    def __init__(self, ceiling: int) -> None:
        self.epoch = 0
        """Halvings so far."""
        self.refused_rounds = 0
        """Halvings since the last reply."""
        self._ceiling = ceiling
        self._exact = float(min(START, ceiling))
        self._slow_start = True

    @property
    def limit(self) -> int:
        """Calls that may be under way at once, at least 1."""
        return int(self._exact)

    def lower_ceiling(self, ceiling: int) -> None:
        """Several users of one endpoint may name different ceilings; the lowest holds."""
        self._ceiling = min(self._ceiling, ceiling)
        self._exact = min(self._exact, float(self._ceiling))

    def replied(self, epoch: int, replies: int, demand: int) -> None:
        """The endpoint answered.

        Args:
            epoch: when the calls started.
            replies: how many answers.
            demand: calls under way and waiting at that time. A limit that held nobody back was not tried and stays.
        """
        if epoch != self.epoch or not replies:
            return
        self.refused_rounds = 0
        if demand >= self.limit:
            grown = min(replies, self._exact) if self._slow_start else min(replies / self._exact, 1.0)
            self._exact = min(self._exact + grown, float(self._ceiling))

    def refused(self, epoch: int, under_way: int) -> None:
        """The endpoint had too many calls.

        Args:
            epoch: when the refused call started.
            under_way: calls under way at that time, the refused one included; fewer than the limit were too many.
        """
        if epoch != self.epoch:
            return
        self.epoch += 1
        self.refused_rounds += 1
        self._slow_start = False
        self._exact = max(1.0, min(self._exact, float(max(1, under_way))) / 2)


def fair_share(limit: int, demands: Sequence[int], mine: int) -> int:
    """What one of several claimants gets of ``limit`` slots, such that nobody gets more but from others.

    Where there is enough for all, the rest is spread evenly, so that nobody has to ask again for the next call.

    Args:
        limit: slots to give away.
        demands: what each claimant can use, in the order in which they get the slots that cannot be divided.
        mine: position of the claimant in question.
    """
    spare = limit - sum(demands)
    if spare >= 0:
        return demands[mine] + spare // len(demands)
    level, left = 0, limit
    for position, demand in enumerate(sorted(demands)):
        claimants = len(demands) - position
        if (demand - level) * claimants > left:
            level, left = level + left // claimants, left % claimants
            break
        left -= (demand - level) * claimants
        level = demand
    more = [position for position, demand in enumerate(demands) if demand > level][:left]
    return min(demands[mine], level) + (mine in more)
