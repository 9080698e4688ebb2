"""What makes numbers hard to compare: with published ones, and with each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skillarena.orchestration.report.archive import ArchivedCell
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.report.published import backbone_models, differences, published
from skillarena.orchestration.summary import MEASURES

_NAMED = 4  # rows that a sentence lists at most
_OF_THE_SETTING = ("benchmark", "agent", "backbone", "library")


def differences_from_published(lines: Sequence[Line]) -> tuple[str, ...]:
    """Every setting in which own and published runs differ, one sentence each, with the rows it concerns.

    Simulated lines are left out: they are never set beside published numbers.
    """
    found: dict[tuple[str, str], list[str]] = {}
    beside: dict[str, list[str]] = {}
    open_ends: dict[str, str] = {}
    for line in lines:
        for arxiv, (sentences, not_said) in _of_line(line).items():
            row = f"{line.setting.backbone} {line.method} on {line.setting.benchmark}/{line.setting.split}"
            beside.setdefault(arxiv, []).append(row)
            open_ends[arxiv] = not_said
            for sentence in sentences:
                found.setdefault((arxiv, sentence), []).append(row)
    said = [
        f"arXiv {arxiv}: {sentence.removesuffix('.')} ({_rows(rows, beside[arxiv])})."
        for (arxiv, sentence), rows in sorted(found.items())
    ]
    return (*said, *(f"arXiv {arxiv} does not say: {words}." for arxiv, words in sorted(open_ends.items())))


def _of_line(line: Line) -> dict[str, tuple[tuple[str, ...], str]]:
    """Sentences and what is left open, by paper."""
    if line.simulated:
        return {}
    models = backbone_models(line.cells)
    numbers = [number for measure in MEASURES for number in published(line.setting, models, line.selector, measure)]
    return {number.paper.arxiv: (differences(line, number), number.paper.not_said) for number in numbers}


def _rows(rows: Sequence[str], all_rows: Sequence[str]) -> str:
    if len(rows) == len(all_rows):
        return "all rows that have a published value"
    more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return "; ".join(rows[:_NAMED]) + more


def uneven_settings(lines: Sequence[Line]) -> tuple[str, ...]:
    """Where lines of one setting differ in more than the method, one sentence each."""
    together: dict[Setting, list[Line]] = {}
    for line in lines:
        if not line.sizes:
            together.setdefault(line.setting, []).append(line)
    return tuple(sentence for setting, some in sorted(together.items()) for sentence in _uneven(setting, some))


def _uneven(setting: Setting, lines: Sequence[Line]) -> list[str]:
    where = f"{setting.backbone} on {setting.benchmark}/{setting.split}"
    cells = [cell for line in lines for cell in line.cells]
    sentences = [
        f"{where}: not all methods were run under the same conditions: {key} is {_listed(values)}."
        for key, values in sorted(_options(cells).items())
        if len(values) > 1
    ]
    if len({frozenset(task.id for task in line.tasks) for line in lines}) > 1:
        sentences.append(f"{where}: not all methods have the same tasks; tables count the tasks of all.")
    seeds = {tuple(cell.settings.get("seed", 0) for cell in line.cells) for line in lines}
    if len(seeds) > 1:
        sentences.append(f"{where}: not all methods have the same seeds: {_listed(map(_seeds, seeds))}.")
    return sentences


def _options(cells: Sequence[ArchivedCell]) -> dict[str, set[str]]:
    """Values, as text, of everything that a setting has; a key that some cells lack has the value ``none`` there."""
    flat = [dict(pair for part in _OF_THE_SETTING for pair in _flat(part, cell.identity.get(part))) for cell in cells]
    return {key: {_short(options.get(key)) for options in flat} for key in set().union(*flat)}


def _flat(path: str, value: Any) -> list[tuple[str, Any]]:
    if not isinstance(value, dict):
        return [(path, value)]
    return [pair for key, inner in value.items() for pair in _flat(f"{path}.{key}", inner)]


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text[:8] if len(text) == 64 else text[:40]  # digests are told apart by their beginning


def _seeds(seeds: tuple[int, ...]) -> str:
    return "+".join(map(str, seeds))


def _listed(values: Iterable[str]) -> str:
    return " or ".join(sorted(values))
