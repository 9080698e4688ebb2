"""How far a long command is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

_EVERY_S = 10.0


class ProgressBar:
    """Counts steps on standard error, from ``with`` to the end of its block.

    Args:
        title: what is being done, a few words.
        total: steps there are; None where nobody knows yet.
        unit: what a step is, for lines; ``bytes`` are shown as such.
    """

    def __init__(self, title: str, total: int | None, unit: str = "") -> None:
        self._title = title
        self._total = total
        self._unit = f" {unit}" if unit else ""
        self._done = 0
        self._console = Console(stderr=True, highlight=False)
        self._told = time.monotonic()
        count: ProgressColumn = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
        columns = (TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn())
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)
        self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def expect(self, total: int) -> None:
        """Say how many steps there are, where that is learned late; a line tells it as well."""
        self._total = total
        self._bar.update(self._task, total=total)
        self._console.print(f"{self._title}: {total:,}{self._unit}", soft_wrap=True)

    def advance(self, steps: int = 1) -> None:
        """Count steps as done."""
        self._done += steps
        self._bar.update(self._task, advance=steps)
        if not self._console.is_terminal and time.monotonic() - self._told > _EVERY_S:
            self._told = time.monotonic()
            of = f" of {self._total:,}" if self._total is not None else ""
            self._console.print(f"{self._title}: {self._done:,}{of}{self._unit}", soft_wrap=True)
