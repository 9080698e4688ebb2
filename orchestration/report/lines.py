"""Lines: what tables compare. A line is one method in one setting, with a value for each task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skillarena.envs.interface import EndReason
from skillarena.orchestration.ledger import EpisodeRow, changed_keys
from skillarena.orchestration.report.archive import ArchivedCell, ArchivedTask
from skillarena.orchestration.settings import digest
from skillarena.orchestration.summary import MEASURES, Estimate, bootstrap_means
from skillarena.orchestration.top_k_mean import SIZES

_REPEATS = ("seed",)
_OPTIONS = 3  # at most, to tell two cells of one name apart
_ID_DIGITS = 8


@dataclass(frozen=True, slots=True, order=True)
class Setting:
    """Where methods are compared: the same tasks and the same model."""

    backbone: str
    benchmark: str
    split: str


@dataclass(frozen=True)
class Line:
    """One method in one setting.

    It has several cells where seeds repeat it, or where it is the mean of one and of two skills; a task's value is
    then the mean over the cells.
    """

    method: str
    """Label, unique within the setting, for example ``vector top_k=1,2``."""
    selector: str
    """The selector's name alone, for example ``vector``."""
    setting: Setting
    cells: tuple[ArchivedCell, ...]
    sizes: tuple[int, ...]
    """``(1, 2)`` for the mean of one and two skills; empty for others."""
    tasks: tuple[ArchivedTask, ...] = field(repr=False)
    values: dict[str, NDArray[np.float64]] = field(repr=False)
    """By the names of ``MEASURES``: float64 [tasks], NaN where a cell has no scored episode or does not know it."""
    estimates: dict[str, Estimate] = field(repr=False, default_factory=dict)
    """Means over the scored tasks by the names of ``MEASURES``, those that every scored task knows."""

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Of [tasks]: every cell has a scored episode of the task."""
        return ~np.isnan(self.values["reward"])

    @property
    def simulated(self) -> bool:
        """No language model played, or ranked the skills, in at least one cell."""
        return any(cell.simulated for cell in self.cells)

    @property
    def complete(self) -> bool:
        """Every task has a scored episode in every cell."""
        return bool(self.scored.all())


def lines_of(cells: Sequence[ArchivedCell]) -> list[Line]:
    """Every method in every setting, seeds merged, and behind both sizes of a method their mean.

    Cells that would get the same label although their configurations differ are told apart by what differs.
    """
    merged = _grouped(cells, _REPEATS)
    labels = _labels(merged)
    lines = [_line(group, label, ()) for group, label in zip(merged, labels, strict=True)]
    return sorted(_estimated([*lines, *_means(lines)]), key=lambda line: (line.setting, line.method))


def _grouped(cells: Sequence[ArchivedCell], ignored: tuple[str, ...]) -> list[tuple[ArchivedCell, ...]]:
    groups: dict[str, list[ArchivedCell]] = {}
    for cell in cells:
        kept = {key: value for key, value in cell.identity.items() if key not in ignored}
        groups.setdefault(digest(kept), []).append(cell)
    return [tuple(sorted(group, key=lambda cell: (cell.settings.get("seed", 0), cell.id))) for group in groups.values()]


def _setting(cell: ArchivedCell) -> Setting:
    return Setting(cell.axes["backbone"], cell.axes["benchmark"], cell.axes["split"])


def _basic_label(cell: ArchivedCell) -> str:
    sizes = "".join(f" {key}={cell.axes[key]}" for key in ("k", "top_k") if cell.axes.get(key))
    return cell.axes["selector"] + sizes


def _labels(groups: Sequence[tuple[ArchivedCell, ...]]) -> list[str]:
    """One for each group; groups of one setting with equal basic labels get what tells them apart.

    Where that reads alike, too, the beginning of the cell's id follows: no two lines of a setting share a label.
    """
    firsts = [group[0] for group in groups]
    same: dict[tuple[Setting, str], list[ArchivedCell]] = {}
    for cell in firsts:
        same.setdefault((_setting(cell), _basic_label(cell)), []).append(cell)
    labels = [_told_apart(cell, same[_setting(cell), _basic_label(cell)]) for cell in firsts]
    often = Counter((_setting(cell), label) for cell, label in zip(firsts, labels, strict=True))
    return [
        f"{label} cell={cell.id[:_ID_DIGITS]}" if often[_setting(cell), label] > 1 else label
        for cell, label in zip(firsts, labels, strict=True)
    ]


def _told_apart(cell: ArchivedCell, rivals: Sequence[ArchivedCell]) -> str:
    """The basic label and what no rival shares: the names of parts, or else their options."""
    differing: dict[str, None] = {}
    for rival in rivals:
        for change in changed_keys(cell.identity, rival.identity):
            differing[change.partition(": ")[0]] = None
    named = [key for key in differing if key.endswith(".name")]
    whole = {key.removesuffix("name") for key in named}
    others = [key for key in differing if key not in _REPEATS and not any(key.startswith(part) for part in whole)]
    options = [f"{_short(key)}={_value(cell, key)}" for key in sorted(named) + sorted(others)[:_OPTIONS]]
    return " ".join([_basic_label(cell), *options])


def _short(key: str) -> str:
    for ending in (".name", ".identity", ".fingerprint"):
        key = key.removesuffix(ending)
    return key.removeprefix("selector.")


def _value(cell: ArchivedCell, key: str) -> str:
    found: Any = cell.identity
    for step in key.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    text = str(found)
    if key == "tasks":
        return f"{len(cell.tasks)} ({text[:8]})"
    return text[:8] if len(text) == 64 else text.split(" ")[0][:40]  # digests are told apart by their beginning


def _line(cells: tuple[ArchivedCell, ...], label: str, sizes: tuple[int, ...]) -> Line:
    first = cells[0]
    return Line(label, first.axes["selector"], _setting(first), cells, sizes, first.tasks, _mean_values(cells))


def _means(lines: Sequence[Line]) -> list[Line]:
    found: dict[str, dict[int, Line]] = {}
    for line in lines:
        identity = line.cells[0].identity
        if (size := identity["selector"].get("top_k")) in SIZES:
            selector = {key: value for key, value in identity["selector"].items() if key != "top_k"}
            seeds = sorted(cell.settings.get("seed", 0) for cell in line.cells)
            kept = {key: value for key, value in identity.items() if key not in _REPEATS}
            found.setdefault(digest([{**kept, "selector": selector}, seeds]), {})[size] = line
    pairs = [[by_size[size] for size in SIZES] for by_size in found.values() if len(by_size) == len(SIZES)]
    sizes = ",".join(map(str, SIZES))
    return [
        _line((*one.cells, *two.cells), one.method.replace(" top_k=1", f" top_k={sizes}"), SIZES) for one, two in pairs
    ]


def _mean_values(cells: Sequence[ArchivedCell]) -> dict[str, NDArray[np.float64]]:
    tasks = [task.id for task in cells[0].tasks]
    each = np.array([[_measures(cell.rows.get(task)) for task in tasks] for cell in cells], dtype=np.float64)
    means = each.reshape(len(cells), len(tasks), len(MEASURES)).mean(axis=0)
    return {name: means[:, column] for column, name in enumerate(MEASURES)}


_NOTHING = [float("nan")] * len(MEASURES)


def _measures(row: EpisodeRow | None) -> list[float]:
    if row is None or row.outcome == EndReason.INFRA_ERROR:
        return _NOTHING
    return [float("nan") if (value := measure(row)) is None else float(value) for measure in MEASURES.values()]


def _estimated(lines: Sequence[Line]) -> list[Line]:
    """The lines with their estimates; those with equally many scored tasks share the work of resampling."""
    alike: dict[tuple[int, int], list[int]] = {}
    for place, line in enumerate(lines):
        alike.setdefault((int(line.scored.sum()), line.cells[0].resamples), []).append(place)
    found = list(lines)
    for (scored, resamples), places in alike.items():
        if not scored:
            continue
        columns = [lines[place].values[name][lines[place].scored] for place in places for name in MEASURES]
        estimates = bootstrap_means(np.array(columns), resamples)
        for number, place in enumerate(places):
            own = estimates[number * len(MEASURES) : (number + 1) * len(MEASURES)]
            named = zip(MEASURES, own, strict=True)
            found[place] = replace(
                lines[place], estimates={name: known for name, known in named if not np.isnan(known.mean)}
            )
    return found
