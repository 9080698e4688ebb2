"""Tables as data: every format is written from these, so all of them say the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column of numbers."""

    key: str
    """Identifier without spaces, unique in its table, for example ``alfworld.valid_seen.reward``."""
    heading: tuple[str, ...]
    """Words from the outermost group inwards, for example ``("alfworld", "valid_seen", "R")``."""
    better: str
    """``higher``, ``lower``, or empty where no direction is better."""
    digits: int
    """Digits after the point."""
    unit: str = ""
    """For example ``points``, ``steps``, ``tokens``, ``s``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One number with what a reader must know about it."""

    mean: float | None
    """None: a missing cell, one without a scored episode, or one that does not know this number."""
    low: float | None = None
    """Lower end of the 95 % interval; None where there is none."""
    high: float | None = None
    scored: int = 0
    """Tasks with a scored episode."""
    expected: int = 0
    """Tasks of the setting; 0 for a missing cell."""
    simulated: bool = False
    rank: int = 0
    """1 for the best of its column within its group of rows, 2 for the second, else 0; equal values share a rank."""
    published: float | None = None
    """What the paper printed for this method and setting; None where it printed nothing."""
    differs: tuple[str, ...] = ()
    """Settings in which this run and the published one differ, one sentence each; the values are comparable only when
    it is empty and the entry is complete and not simulated."""
    source: str = ""
    """Where ``published`` stands, for example ``arXiv 2607.06283v1, table 1``."""
    uncertain: str = ""
    """Why ``published`` may be wrong; empty when nothing speaks against it."""

    @property
    def difference(self) -> float | None:
        """Own value minus published one where they are comparable."""
        if self.mean is None or self.published is None or self.differs or self.simulated or not self.complete:
            return None
        return self.mean - self.published

    @property
    def complete(self) -> bool:
        """Every task has a scored episode."""
        return 0 < self.expected == self.scored


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row: its labels and an entry for each column."""

    labels: tuple[str, ...]
    """For example ``("deepseek_v4_flash", "skillreranker k=30")``."""
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class ReportTable:
    """One table of a report."""

    name: str
    """Identifier, for example ``table1``; also the stem of its files."""
    title: str
    label_headings: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()
    """What a reader must know beside the numbers, one sentence each."""

    @property
    def simulated(self) -> bool:
        """At least one number is simulated."""
        return any(self._simulated())

    @property
    def all_simulated(self) -> bool:
        """Every number is simulated."""
        simulated = self._simulated()
        return bool(simulated) and all(simulated)

    @property
    def heading(self) -> str:
        """The title, with what must not be missed about it."""
        return simulated_heading(self.title, self._simulated())

    def _simulated(self) -> list[bool]:
        """Of all entries that a line stands behind, whether or not it has a score."""
        entries = [entry for row in self.rows for entry in row.entries]
        return [entry.simulated for entry in entries if entry.expected or entry.mean is not None]


def simulated_heading(title: str, simulated: Sequence[bool]) -> str:
    """A heading that says when no language model is behind the numbers below it, or behind some of them."""
    if not any(simulated):
        return title
    return f"{title} ({'' if all(simulated) else 'some numbers '}SIMULATED: no language model)"
