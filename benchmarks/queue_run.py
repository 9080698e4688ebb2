"""A sweep of very many units without any episode being played: what the driver itself takes.

    python benchmarks/queue_run.py 100000        prints CPU seconds, memory and the time to resume as JSON

The cells, the schedule, the loop of the sweep, the store of selections and the ledgers are the real ones. In place of
Ray's processes stands a crew that answers every call at once with the same episode of 17 turns, through the pickling
that Ray does in the driver: jobs are written, answers are read. Each pass of the loop gets one answer, which is the
dearest case. The files lie in memory where the system offers that, so that the wait for a disk (two flushes for each
episode) is not measured; it costs time and no CPU.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

from rich.console import Console

from skillarena.envs.interface import EndReason, Task
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.reports import Spending
from skillarena.orchestration.cell_state import CellState
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.crew import Crew
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.jobs import Method, method_of
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.pools import Flight, Landing, Worker
from skillarena.orchestration.progress import Progress
from skillarena.orchestration.rows import row_of
from skillarena.orchestration.schedule import Ready, Unit
from skillarena.orchestration.settings import Facts, Settings, digest
from skillarena.orchestration.stop_request import StopRequest
from skillarena.orchestration.sweep import Sweep
from skillarena.orchestration.trajectory import Trajectory, Turn
from skillarena.orchestration.watchdog import Stall
from skillarena.orchestration.workers import Answer, Played
from skillarena.selectors.interface import SelectedSkill, Selection

_TASKS = 500  # of each cell
_AT_ONCE = 256
_TURNS = 17
_SKILLS = 5


def queue_run(units: int, folder: Path) -> dict[str, float]:
    """Queue and finish ``units`` episodes, and then open their ledgers again.

    Args:
        units: a multiple of the tasks of a cell (500).
        folder: an empty one.

    Returns:
        ``cpu_s`` and ``wall_s`` of the sweep, ``memory_mib`` (the process's largest), ``resume_s`` for reading all
        ledgers again, ``rows`` found then.
    """
    cells = _cells(units, folder)
    console = Console(file=(folder / "progress.txt").open("w"))
    cpu, wall = time.process_time(), time.perf_counter()
    with ExitStack() as stack:
        states = _states(cells, stack)
        sweep = Sweep(states, mirror=None)
        observer = Progress(console, every_s=10.0)
        observer.start(states)
        sweep.run(cast("Crew", _Crew()), observer, StopRequest())
        observer.stop()
        for state in states:
            state.end(None)
    done = {"cpu_s": time.process_time() - cpu, "wall_s": time.perf_counter() - wall}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    del sweep, states
    wall = time.perf_counter()
    with ExitStack() as stack:
        again = Sweep(_states(cells, stack), mirror=None)
        resume_s = time.perf_counter() - wall
        rows = sum(len(state.ledger.rows) for state in again.states.values())
        assert not again.open_episodes
    return {**done, "memory_mib": memory, "resume_s": resume_s, "rows": rows}


def _states(cells: list[Cell], stack: ExitStack) -> list[CellState]:
    states = [CellState(cell, stack.enter_context(_ledger(cell))) for cell in cells]
    for state in states:
        state.count_resumed()
    return states


def _ledger(cell: Cell) -> Ledger:
    return Ledger(cell.directory, cell.identity, {"cell": {"id": cell.id}, "settings": {}}, cell.tasks)


def _cells(units: int, folder: Path) -> list[Cell]:
    """Seeds of one selector, all with the same tasks."""
    if units < 1 or units % _TASKS:
        raise ValueError(f"{units} units are no multiple of {_TASKS}")
    overrides = ["selector=vector", "backbone=openai_compatible", "backbone.model=m", "tracking.enabled=false"]
    settings = compose([*overrides, f"output_dir={folder}", f"cache_dir={folder / 'cache'}"])
    tasks = tuple(_task(number) for number in range(_TASKS))
    return [_cell(settings.model_copy(update={"seed": seed}), tasks, folder) for seed in range(units // _TASKS)]


def _task(number: int) -> Task:
    name = f"pick_and_place_simple-Mug-None-Shelf-{number}/trial_{number:06d}"
    source = {"path": f"/data/json_2.1.1/valid_seen/{name}/game.tw-pddl"}
    return Task(
        "alfworld", "valid_seen", digest(name), name, "pick_and_place_simple", "put a mug in shelf", dict(source)
    )


def _cell(settings: Settings, tasks: tuple[Task, ...], folder: Path) -> Cell:
    identity = settings.identity(Facts("library", "tasks", {"embedder": "embedder"}, "", "code"))
    return Cell(
        id=digest(identity),
        name=f"alfworld/valid_seen vector m seed={settings.seed}",
        directory=folder / "cells" / str(settings.seed),
        settings=settings,
        identity=identity,
        tasks=tasks,
        simulated=False,
    )


def _selection() -> Selection:
    text = "Look on the shelves first, then in the drawers. " * 60
    skills = [
        SelectedSkill(f"skill-{n}", f"skill {n}", "How to find things.", text, 1.0, "near") for n in range(_SKILLS)
    ]
    return Selection(tuple(skills), details={"candidates": [{"id": f"skill-{n}", "score": n / 30} for n in range(30)]})


def _trajectory() -> Trajectory:
    usage = Usage(1500, 1200, 40)
    seen = "You arrive at shelf 1. On the shelf 1, you see a mug 1, a plate 2, and a vase 1."
    reply = "Thought: I should look on the next shelf.\nAction: go to shelf 1"
    turn = Turn(
        reply, "I should look on the next shelf.", "go to shelf 1", False, True, seen, 0.0, usage, "stop", 0.2, 0.002
    )
    return Trajectory(
        episode_id="",
        seed=0,
        benchmark="alfworld",
        split="valid_seen",
        task_id="",
        task_name="",
        task_type="pick_and_place_simple",
        goal="put a mug in shelf",
        backbone="m",
        simulated=False,
        skills=tuple(f"skill-{n}" for n in range(_SKILLS)),
        first_observation=seen * 5,
        turns=(turn,) * _TURNS,
        outcome=EndReason.SOLVED,
        reward=100.0,
        score=1.0,
        won=True,
        seconds=3.5,
        reset_seconds=0.01,
    )


def sample_row() -> EpisodeRow:
    """A row as this sweep writes it."""
    (cell,) = _cells(_TASKS, Path("nowhere"))
    task = cell.tasks[0]
    ready = Ready(Unit(cell, task, cell.episode_id(task)), _selection(), reused=True)
    return row_of(ready, _trajectory(), attempts=1, wasted_tokens=0, node="0" * 56)


@dataclass
class _Pool:
    """Takes calls at once and gives the answer to one of them, drawn at random, whenever it is asked."""

    answer: bytes
    size: int
    worker: Worker = field(default_factory=lambda: Worker(cast("Any", None), "node"))
    _flights: dict[int, Flight] = field(default_factory=dict)
    _order: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 (an order, no secret)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _under_way: list[int] = field(default_factory=list)

    @property
    def busy(self) -> int:
        return len(self._flights)

    @property
    def free(self) -> int:
        return self.size - len(self._flights)

    def submit(self, job: Any, tag: Any) -> None:
        pickle.dumps(job)
        number = next(self._numbers)
        self._flights[number] = Flight(tag, self.worker, time.monotonic())
        self._under_way.append(number)

    def land(self) -> Iterator[Landing]:
        if self._under_way:
            at = self._order.randrange(len(self._under_way))
            self._under_way[at], number = self._under_way[-1], self._under_way[at]
            self._under_way.pop()
            flight = self._flights.pop(number)
            yield Landing(flight.tag, flight.worker, pickle.loads(self.answer))  # noqa: S301 (written here)

    def overdue(self, limit_s: float) -> list[Flight]:
        now = time.monotonic()
        return [flight for flight in self._flights.values() if now - flight.started > limit_s]


class _Crew:
    """Stands in for ``Crew``."""

    def __init__(self) -> None:
        self.selecting = _Pool(pickle.dumps(Answer(_selection())), 2)
        self.playing = _Pool(pickle.dumps(Answer(Played(_trajectory()))), _AT_ONCE)
        self.episodes_at_once = _AT_ONCE
        self.governor = self

    def spending(self, wait_s: float = 0.0) -> Spending:
        return Spending()

    def stalls(self) -> list[Stall]:
        return []

    def playable(self, cell: Cell) -> bool:
        return bool(cell.settings.backbone)

    def method(self, unit: Unit) -> Method:
        return method_of(unit, {})

    def seat(self, unit: Unit) -> None:
        return None

    def landings(self, timeout_s: float) -> tuple[Iterator[Landing], Iterator[Landing]]:
        return self.selecting.land(), self.playing.land()

    def check_placed(self) -> None:
        """There is always room."""


def main(units: int) -> None:
    """Measure and print."""
    in_memory = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
    where = in_memory if os.access(in_memory, os.W_OK) else None
    with TemporaryDirectory(prefix="skillarena-queue-", dir=where) as folder:
        print(json.dumps(queue_run(units, Path(folder))))


if __name__ == "__main__":
    main(int(sys.argv[1]))
