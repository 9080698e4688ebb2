"""Progress while episodes run: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from skillarena.orchestration.cell_state import CellState


class Progress:
    """Draws the cells of a sweep.

    Args:
        console: where to draw; not a terminal: plain lines.
        every_s: seconds between plain lines.
    """

    def __init__(self, console: Console, every_s: float) -> None:
        self._console = console
        self._every_s = every_s
        self._live: Live | None = None
        self._states: Sequence[CellState] = ()
        self._started = self._last = self._last_end = time.monotonic()
        self._printed = ""
        self._done_at_start = self._done_before = 0
        self._under_way = ""

    def start(self, cells: Sequence[CellState]) -> None:
        """Begin to draw."""
        self._states = cells
        self._started = self._last_end = time.monotonic()
        self._done_at_start = self._done_before = sum(state.done for state in cells)
        resumed = sum(state.resumed for state in cells)
        total = sum(len(state.cell.tasks) for state in cells)
        found = f"; {resumed} finished earlier" if resumed else ""
        self._console.print(f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'}, {total} episodes{found}")
        if self._console.is_terminal:
            # Drawn when it is shown, and not at every tick: episodes may end faster than anyone looks.
            self._live = Live(console=self._console, refresh_per_second=4, transient=True, get_renderable=self._table)
            self._live.start(refresh=True)

    def tick(self, selecting: int, playing: int, starting: Sequence[str]) -> None:
        """Take in what is under way; prints the next plain line when it is due."""
        self._under_way = f"{playing} playing, {selecting} selecting, " if selecting or playing else ""
        if starting:
            self._under_way += f"starting {', '.join(starting)}, "
        now = time.monotonic()
        if self._live is None and now - self._last >= self._every_s:
            self._last = now
            if (line := self._line()) != self._printed:
                self._printed = line
                self._console.print(line, soft_wrap=True)

    def stop(self) -> None:
        """Remove the live table, or print the last line."""
        self._under_way = ""
        if self._live is not None:
            self._live.stop()
            self._live = None
        elif self._states:
            self._console.print(self._line(), soft_wrap=True)

    def _eta(self) -> str:
        done = sum(state.done for state in self._states)
        total = sum(len(state.cell.tasks) for state in self._states)
        played = done - self._done_at_start
        if done == total:
            return f"took {_clock(time.monotonic() - self._started)}"
        now = time.monotonic()
        if done != self._done_before:
            self._done_before, self._last_end = done, now
        if not played:
            return "ETA -"
        left = (self._last_end - self._started) / played * (total - done) - (now - self._last_end)
        return f"ETA {_clock(left)}" if left > 0 else "ETA overdue"

    def _line(self) -> str:
        done = sum(state.done for state in self._states)
        total = sum(len(state.cell.tasks) for state in self._states)
        totals = [state.totals for state in self._states]
        mean = _mean(sum(t.scored for t in totals), sum(t.reward for t in totals))
        tokens = sum(t.tokens for t in totals)
        faults = sum(t.infra_errors for t in totals)
        fault_note = f", {faults} infra errors" if faults else ""
        so_far = f"{done}/{total} episodes, mean reward {mean}, {tokens:,} tokens{fault_note}"
        return f"{so_far}, {self._under_way}{self._eta()}"

    def _table(self) -> Table:
        table = Table(title=self._line(), title_justify="left", box=None, pad_edge=False)
        table.add_column("cell")
        for heading in ("episodes", "mean reward", "tokens"):
            table.add_column(heading, justify="right")
        table.add_column("")
        for state in self._states:
            totals = state.totals
            table.add_row(
                Text(state.cell.name),
                f"{state.done}/{len(state.cell.tasks)}",
                _mean(totals.scored, totals.reward),
                f"{totals.tokens:,}",
                Text(state.error.splitlines()[0] if state.error else "", style="red"),
            )
        return table


def _mean(scored: int, reward: float) -> str:
    return f"{reward / scored:.1f}" if scored else "-"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
