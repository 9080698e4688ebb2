"""Edges added one by one so that no cycle ever closes, quick on sparse graphs."""

from __future__ import annotations


class TopologicalOrder:
    """An order of nodes that is kept up as edges come in (Pearce and Kelly, 2006).

    An edge that agrees with the order costs nothing; another one costs a search among the nodes that lie between its
    ends only.

    Args:
        size: number of nodes, which are counted from 0.
    """

    def __init__(self, size: int) -> None:
        self._place = list(range(size))
        self._outgoing: list[list[int]] = [[] for _ in range(size)]
        self._incoming: list[list[int]] = [[] for _ in range(size)]

    def admit(self, source: int, target: int) -> bool:
        """Take in an edge, unless it would close a cycle; says whether it was taken."""
        first, last = self._place[target], self._place[source]
        if first <= last:
            after = self._reach(target, self._outgoing, first, last)
            if source in after:
                return False
            before = self._reach(source, self._incoming, first, last)
            moved = [*sorted(before, key=self._place.__getitem__), *sorted(after, key=self._place.__getitem__)]
            places = sorted(self._place[node] for node in moved)
            for node, place in zip(moved, places, strict=True):
                self._place[node] = place
        self._outgoing[source].append(target)
        self._incoming[target].append(source)
        return True

    def _reach(self, start: int, neighbors: list[list[int]], first: int, last: int) -> set[int]:
        """The nodes that can be reached without leaving the places from ``first`` to ``last``."""
        reached, waiting = {start}, [start]
        while waiting:
            for node in neighbors[waiting.pop()]:
                if node not in reached and first <= self._place[node] <= last:
                    reached.add(node)
                    waiting.append(node)
        return reached
