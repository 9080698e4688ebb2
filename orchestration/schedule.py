"""Which episode runs next: the bookkeeping of a sweep without any processes.

Work units are (cell, task) pairs of all cells in one queue. A unit first needs its selection, then a rollout slot.
Units that want the same selection share one computation. Nothing waits for a whole cell.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from skillarena.envs.interface import Task
from skillarena.orchestration.cells import Cell
from skillarena.selectors.interface import Selection

Playable = Callable[[Cell], bool]
"""Whether episodes of a cell can be played now: its backbone answers."""


@dataclass(frozen=True)
class Unit:
    """One episode to be played."""

    cell: Cell
    task: Task
    episode_id: str
    memory: bytes | None = field(default=None, repr=False)
    """What a selector that learns knows by then; None for one that does not, and before its first update."""
    memory_file: str = ""
    """Its name in the cell's folder; empty for None."""

    @cached_property
    def selection_key(self) -> str:
        """Digest of the selection this unit needs."""
        return self.cell.selection_key(self.task, self.memory)


@dataclass(frozen=True)
class Ready:
    """A unit with its selection."""

    unit: Unit
    selection: Selection
    reused: bool
    """The selection was not computed for this unit."""


class _ReadyUnits:
    """Units waiting for a rollout slot, each cell's apart, because cells become playable one by one."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[tuple[int, Ready]]] = {}  # by cell id, none empty; each with its place in line
        self._behind = itertools.count()
        self._in_front = itertools.count(-1, -1)

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def append(self, ready: Ready) -> None:
        """Last in line."""
        self._queues.setdefault(ready.unit.cell.id, deque()).append((next(self._behind), ready))

    def appendleft(self, ready: Ready) -> None:
        """First in line."""
        self._queues.setdefault(ready.unit.cell.id, deque()).appendleft((next(self._in_front), ready))

    def count(self, playable: Playable) -> int:
        """How many are of playable cells."""
        return sum(len(queue) for queue in self._queues.values() if playable(queue[0][1].unit.cell))

    def pop(self, playable: Playable) -> Ready | None:
        """The first in line of a playable cell."""
        heads = [queue[0] for queue in self._queues.values() if playable(queue[0][1].unit.cell)]
        if not heads:
            return None
        _, ready = min(heads, key=lambda head: head[0])
        queue = self._queues[ready.unit.cell.id]
        queue.popleft()
        if not queue:
            del self._queues[ready.unit.cell.id]
        return ready

    def drop_cell(self, cell_id: str) -> None:
        """Forget a cell's."""
        self._queues.pop(cell_id, None)


@dataclass
class Schedule:
    """Queues of a sweep.

    Args:
        units: everything to do, in the order it should start.
        max_attempts: tries of one unit before it is given up.
        retry_wait_s: seconds before the second try; doubles each time.
        clock: monotonic seconds.
    """

    units: Iterable[Unit]
    max_attempts: int
    retry_wait_s: float
    clock: Callable[[], float]
    _to_select: deque[Unit] = field(default_factory=deque)
    _selecting: dict[str, list[Unit]] = field(default_factory=dict)
    _ready: _ReadyUnits = field(default_factory=_ReadyUnits)
    _later: list[tuple[float, int, Ready | Unit]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _attempts: dict[str, int] = field(default_factory=dict)
    _dropped: set[str] = field(default_factory=set)
    _open: int = 0

    def __post_init__(self) -> None:
        self._to_select.extend(self.units)
        self._open = len(self._to_select)

    @property
    def open(self) -> int:
        """Units neither finished nor given up."""
        return self._open

    def add(self, units: Sequence[Unit]) -> None:
        """More to do, at the end of the queue."""
        self._to_select.extend(units)
        self._open += len(units)

    def ready(self, playable: Playable) -> int:
        """Units waiting for a rollout slot, of those cells that can be played now."""
        return self._ready.count(playable)

    def next_to_select(self) -> Unit | None:
        """The next unit whose selection nobody is computing yet; the caller computes it or looks it up."""
        self._wake()
        while self._to_select:
            unit = self._to_select.popleft()
            if unit.selection_key in self._selecting:
                self._selecting[unit.selection_key].append(unit)
                continue
            self._selecting[unit.selection_key] = [unit]
            return unit
        return None

    def selected(self, key: str, selection: Selection, *, stored: bool) -> None:
        """A selection is known: every unit waiting for it becomes ready.

        Args:
            key: the selection's key.
            selection: the outcome.
            stored: it came from the store, so even the first unit reuses it.
        """
        for position, unit in enumerate(self._selecting.pop(key, [])):
            self._ready.append(Ready(unit, selection, reused=stored or position > 0))

    def selection_failed(self, key: str) -> list[Unit]:
        """A selection's worker was lost: its units try again later; those out of attempts are returned and closed."""
        return [unit for unit in self._selecting.pop(key, []) if not self._again(unit)]

    def selection_refused(self, key: str) -> list[Unit]:
        """No attempt can give this selection: its units are closed and returned."""
        closed = self._selecting.pop(key, [])
        self._open -= len(closed)
        return closed

    def next_ready(self, playable: Playable) -> Ready | None:
        """The next unit to play; those of cells that cannot be played yet keep their place."""
        self._wake()
        return self._ready.pop(playable)

    def attempts(self, unit: Unit) -> int:
        """Failed attempts of a unit so far."""
        return self._attempts.get(unit.episode_id, 0)

    def finished(self, unit: Unit) -> None:
        """A unit has its final row."""
        self._open -= 1

    def failed(self, ready: Ready, *, at_fault: bool = True) -> bool:
        """An attempt was lost. Returns False when the unit is out of attempts and now closed.

        Args:
            ready: the unit that was playing.
            at_fault: False for bystanders of another unit's fault, whose attempt is not counted.
        """
        if not at_fault and ready.unit.cell.id not in self._dropped:
            self._ready.appendleft(ready)
            return True
        return self._again(ready)

    def drop_cell(self, cell: Cell) -> None:
        """Forget all queued units of a cell; those playing may still finish."""
        if cell.id in self._dropped:
            return
        self._dropped.add(cell.id)
        before = self._queued()
        self._to_select = deque(unit for unit in self._to_select if unit.cell.id != cell.id)
        self._ready.drop_cell(cell.id)
        self._later = [item for item in self._later if _unit(item[2]).cell.id != cell.id]
        heapq.heapify(self._later)
        for key, waiting in self._selecting.items():
            self._selecting[key] = [unit for unit in waiting if unit.cell.id != cell.id]
        self._open -= before - self._queued()

    def _queued(self) -> int:
        waiting = sum(len(units) for units in self._selecting.values())
        return len(self._to_select) + len(self._ready) + len(self._later) + waiting

    def _again(self, item: Ready | Unit) -> bool:
        """Queue another attempt; False when there is none left. A dropped cell's unit is closed silently."""
        unit = _unit(item)
        if unit.cell.id in self._dropped:
            self._open -= 1
            return True
        made = self._attempts[unit.episode_id] = self.attempts(unit) + 1
        if made >= self.max_attempts:
            self._open -= 1
            return False
        due = self.clock() + self.retry_wait_s * 2 ** (made - 1)
        heapq.heappush(self._later, (due, next(self._order), item))
        return True

    def _wake(self) -> None:
        while self._later and self._later[0][0] <= self.clock():
            item = heapq.heappop(self._later)[2]
            if isinstance(item, Ready):
                self._ready.append(item)
            else:
                self._to_select.append(item)


def _unit(item: Ready | Unit) -> Unit:
    return item.unit if isinstance(item, Ready) else item
