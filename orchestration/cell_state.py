"""A cell while its sweep runs: its ledger, what is still open, and running sums."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from skillarena.conf.errors import EnvError
from skillarena.envs.interface import EndReason, Task
from skillarena.envs.json_file import write_json
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.learning import Learning
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.schedule import Unit
from skillarena.orchestration.summary import Summary, summarise
from skillarena.orchestration.tracking import Mirror

log = logging.getLogger(__name__)


@dataclass
class Totals:
    """Sums over a cell's rows, kept up to date so that drawing progress costs the same however many rows there are."""

    scored: int = 0
    """Episodes with a reward."""
    reward: float = 0.0
    """Sum of rewards."""
    tokens: int = 0
    """Prompt and completion tokens of the agent."""
    infra_errors: int = 0

    def add(self, row: EpisodeRow, sign: int = 1) -> None:
        """Count a row, or take it out with ``sign=-1``."""
        self.scored += sign * (row.reward is not None)
        self.reward += sign * (row.reward or 0.0)
        self.tokens += sign * row.total_tokens
        self.infra_errors += sign * (row.outcome == EndReason.INFRA_ERROR)


@dataclass
class CellState:
    """A cell while the sweep runs."""

    cell: Cell
    ledger: Ledger
    resumed: int = 0
    """Episodes that earlier runs had finished."""
    open: int = 0
    """Episodes of this run without a final row."""
    totals: Totals = field(default_factory=Totals)
    error: str = ""
    """Why the cell cannot go on; empty otherwise."""
    lost_in_a_row: int = 0
    """Episodes given up since the last one that came to its end."""
    ended: bool = False
    learning: Learning | None = None
    """Progress of a selector that learns."""

    @property
    def left(self) -> bool:
        """There is something to play or to learn."""
        return self.open > 0 or (self.learning is not None and not self.learning.done)

    def units(self) -> list[Unit]:
        """Unfinished episodes that can be played by now."""
        cell, learning = self.cell, self.learning
        tasks = cell.tasks if learning is None else learning.batch
        known = (None, "") if learning is None else (learning.memory, learning.memory_file)
        return [Unit(cell, task, cell.episode_id(task), *known) for task in tasks if not self.finished(task)]

    def finished(self, task: Task) -> bool:
        """The task's episode needs no further run."""
        return self.ledger.finished(self.cell.episode_id(task))

    def count_resumed(self) -> None:
        """Take in what earlier runs left in the ledger."""
        self.resumed = sum(map(self.finished, self.cell.tasks))
        self.open = len(self.cell.tasks) - self.resumed
        if self.cell.batch is not None:
            self.learning = Learning(self.cell, self.finished)
        for row in self.ledger.rows.values():
            self.totals.add(row)

    def end(self, mirror: Mirror | None) -> None:
        """Write the cell's summary and let its MLflow run end; safe to repeat."""
        if self.ended:
            return
        self.ended = True
        summary = self.summary
        try:
            write_json(self.cell.directory / "summary.json", summary.to_dict() | {"error": self.error})
        except EnvError as error:  # it can be made again from the ledger, which is what counts
            log.warning("%s", error.message)
        if mirror is not None:
            status = "FAILED" if self.error else "FINISHED" if summary.complete else "KILLED"
            mirror.end_cell(self.cell.directory, summary, status)

    @property
    def done(self) -> int:
        """Tasks with a final row, infrastructure errors of this run included."""
        return len(self.cell.tasks) - self.open

    @property
    def summary(self) -> Summary:
        """Aggregates of the episodes so far."""
        settings = self.cell.settings.run
        ids = [task.id for task in self.cell.tasks]
        return summarise(list(self.ledger.rows.values()), ids, settings.bootstrap_resamples)
