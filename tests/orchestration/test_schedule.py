"""The schedule runs every unit once, shares selections, retries with back-off and forgets dropped cells."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.envs.interface import Task
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.schedule import Ready, Schedule, Unit
from skillarena.selectors.interface import Selection


@dataclass(frozen=True)
class StandInCell:
    """What the schedule needs of a cell: its id, and which selections its tasks need."""

    id: str
    selector: str

    def selection_key(self, task: Task, memory: bytes | None = None) -> str:
        return f"{self.selector}/{task.id}"


def every(_cell: Cell) -> bool:
    return True


def units(cells: list[tuple[str, str]], tasks: int) -> list[Unit]:
    made = []
    for cell_id, selector in cells:
        cell = cast("Cell", StandInCell(cell_id, selector))
        for n in range(tasks):
            made.append(Unit(cell, Task("b", "s", str(n), str(n), "k", "g"), f"{cell_id}/{n}"))
    return made


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def schedule(todo: list[Unit], clock: Clock | None = None, attempts: int = 3) -> Schedule:
    return Schedule(todo, attempts, 2.0, clock or Clock())


def select_all(plan: Schedule) -> list[str]:
    keys = []
    while unit := plan.next_to_select():
        keys.append(unit.selection_key)
        plan.selected(unit.selection_key, Selection(), stored=False)
    return keys


def test_units_of_two_backbones_share_one_selection_and_the_second_reuses_it() -> None:
    plan = schedule(units([("small model", "vector"), ("large model", "vector")], 1))
    unit = plan.next_to_select()
    assert unit is not None
    assert plan.next_to_select() is None
    plan.selected(unit.selection_key, Selection(), stored=False)
    first, second = plan.next_ready(every), plan.next_ready(every)
    assert first is not None and second is not None
    assert (first.unit.cell.id, first.reused) == ("small model", False)
    assert (second.unit.cell.id, second.reused) == ("large model", True)


def test_a_lost_attempt_waits_twice_as_long_each_time_and_then_is_given_up() -> None:
    clock = Clock()
    plan = schedule(units([("c", "v")], 1), clock)
    select_all(plan)
    ready = plan.next_ready(every)
    assert ready is not None
    assert plan.failed(ready)
    assert plan.next_ready(every) is None
    clock.now = 2.0
    assert plan.next_ready(every) == ready
    assert plan.failed(ready)
    clock.now = 5.9
    assert plan.next_ready(every) is None
    clock.now = 6.0
    assert plan.next_ready(every) == ready
    assert not plan.failed(ready)
    assert (plan.open, plan.attempts(ready.unit)) == (0, 3)


def test_a_bystander_goes_to_the_front_without_losing_an_attempt() -> None:
    plan = schedule(units([("c", "v")], 2), attempts=1)
    select_all(plan)
    first = plan.next_ready(every)
    assert first is not None
    assert plan.failed(first, at_fault=False)
    assert plan.next_ready(every) == first
    assert plan.attempts(first.unit) == 0


def test_a_lost_selection_is_tried_again_for_everyone_who_waits() -> None:
    clock = Clock()
    plan = schedule(units([("a", "v"), ("b", "v")], 1), clock, attempts=2)
    unit = plan.next_to_select()
    assert unit is not None and plan.next_to_select() is None
    assert plan.selection_failed(unit.selection_key) == []
    clock.now = 2.0
    again = plan.next_to_select()
    assert again is not None and plan.next_to_select() is None
    closed = plan.selection_failed(again.selection_key)
    assert [unit.cell.id for unit in closed] == ["a", "b"]
    assert plan.open == 0


def test_a_refused_selection_closes_the_units_of_every_cell_that_waited_for_it() -> None:
    plan = schedule(units([("a", "v"), ("b", "v"), ("c", "w")], 1))
    unit = plan.next_to_select()
    other = plan.next_to_select()
    assert unit is not None and other is not None
    assert [closed.cell.id for closed in plan.selection_refused(unit.selection_key)] == ["a", "b"]
    for cell in (unit.cell, cast("Cell", StandInCell("b", "v"))):
        plan.drop_cell(cell)
    assert plan.open == 1
    plan.selected(other.selection_key, Selection(), stored=False)
    ready = plan.next_ready(every)
    assert ready is not None and ready.unit.cell.id == "c"


@given(
    tasks=st.integers(1, 6),
    cells=st.integers(1, 4),
    decisions=st.lists(
        st.sampled_from(["finish", "lose", "bystander", "drop", "lose selection", "refuse selection"]), max_size=80
    ),
)
@settings(max_examples=200, deadline=None)
def test_whatever_happens_every_unit_is_closed_exactly_once(tasks: int, cells: int, decisions: list[str]) -> None:
    todo = units([(f"c{n}", f"s{n % 2}") for n in range(cells)], tasks)
    clock = Clock()
    plan = schedule(todo, clock)
    closed: Counter[str] = Counter()
    dropped: set[str] = set()
    playing: list[Ready] = []
    script = iter(decisions)

    def note(unit: Unit) -> None:
        closed[unit.episode_id] += 1

    for _ in range(2000):
        if not plan.open:
            break
        decision: Any = next(script, "finish")
        while unit := plan.next_to_select():
            if decision == "lose selection":
                for gone in plan.selection_failed(unit.selection_key):
                    note(gone)
                break
            if decision == "refuse selection":
                for gone in plan.selection_refused(unit.selection_key):
                    note(gone)
                break
            plan.selected(unit.selection_key, Selection(), stored=False)
        if ready := plan.next_ready(every):
            playing.append(ready)
        if decision == "drop" and todo:
            plan.drop_cell(todo[0].cell)
            dropped.add(todo[0].cell.id)
        elif playing:
            ready = playing.pop(0)
            if decision == "lose":
                if not plan.failed(ready):
                    note(ready.unit)
            elif decision == "bystander":
                plan.failed(ready, at_fault=False)
            else:
                plan.finished(ready.unit)
                note(ready.unit)
        clock.now += 1.0
    assert plan.open == 0
    assert not playing or all(ready.unit.cell.id in dropped for ready in playing)
    assert all(count == 1 for count in closed.values())
    assert {unit.episode_id for unit in todo if unit.cell.id not in dropped} <= set(closed)


def test_cells_whose_backbone_is_not_up_yet_keep_their_place_and_hold_up_nobody() -> None:
    todo = units([("early", "x"), ("late", "x")], 1)
    plan = schedule(todo)
    select_all(plan)

    def up(cell: Cell) -> bool:
        return cell.id == "late"

    assert (plan.ready(every), plan.ready(up)) == (2, 1)
    assert [played.unit for played in iter(lambda: plan.next_ready(up), None)] == [todo[1]]
    assert [played.unit for played in iter(lambda: plan.next_ready(every), None)] == [todo[0]]


def test_units_of_all_playable_cells_start_in_one_order_however_many_cells_there_are() -> None:
    todo = [unit for pair in zip(units([("a", "x")], 3), units([("b", "y")], 3), strict=True) for unit in pair]
    plan = schedule(todo)
    select_all(plan)
    first, second = plan.next_ready(every), plan.next_ready(every)
    assert first is not None and second is not None
    assert plan.failed(second, at_fault=False) and plan.failed(first, at_fault=False)
    served = [ready.unit.episode_id for ready in iter(lambda: plan.next_ready(every), None)]
    assert served == ["a/0", "b/0", "a/1", "b/1", "a/2", "b/2"]
