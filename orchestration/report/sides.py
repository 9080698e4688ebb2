"""The two sides of a comparison: which methods are set against each other, and what else differs between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillarena.conf.errors import ConfigError, nearest
from skillarena.orchestration.ledger import changed_keys
from skillarena.orchestration.report.archive import load_played, reachable
from skillarena.orchestration.report.grid import without_halves
from skillarena.orchestration.report.lines import Line, Setting, lines_of

_DIGEST = re.compile(r"\b([0-9a-f]{8})[0-9a-f]{56}\b")


@dataclass(frozen=True)
class Side:
    """What one argument of a comparison stands for."""

    given: str
    lines: tuple[Line, ...]
    problems: tuple[str, ...]
    """Cells that could not be read or have no episode, one sentence each."""

    @property
    def one_method(self) -> bool:
        """Every line is the same method, in settings of its own."""
        return len({line.method for line in self.lines}) == 1


@dataclass(frozen=True)
class Matched:
    """Lines of two sides by what they are compared with."""

    pairs: tuple[tuple[Line, Line], ...]
    without_partner: tuple[str, ...]
    """Methods that only one side has, one sentence each."""


def read_side(given: str) -> Side:
    """Read ``PATH`` or ``PATH:METHOD``.

    Args:
        given: a cell's folder, an output folder or a sweep's file, and perhaps a method's label or selector.

    Raises:
        DataError: there is no readable cell at the path.
        ConfigError: there is no such method, or several in one setting.
    """
    path, method = _split(given)
    archive = load_played([path])
    lines = tuple(lines_of(archive.cells))
    return Side(given, _of_method(lines, method, given) if method else lines, archive.problems)


def match(first: Side, second: Side) -> Matched:
    """Who is compared with whom.

    Two single lines are compared whatever they are; two single methods setting by setting; sweeps by setting and
    method.

    Raises:
        ConfigError: nothing can be compared, as benchmarks, splits, methods or tasks differ.
    """
    if len(first.lines) == len(second.lines) == 1:
        pairs = [(first.lines[0], second.lines[0])]
        _check_benchmark(*pairs[0])
        lonely: list[str] = []
    else:
        by_setting = first.one_method and second.one_method
        of_first, of_second = ({_key(line, by_setting): line for line in side.lines} for side in (first, second))
        pairs = [(line, of_second[key]) for key, line in of_first.items() if key in of_second]
        lonely = [f"only A has {_words(line)}" for key, line in of_first.items() if key not in of_second]
        lonely += [f"only B has {_words(line)}" for key, line in of_second.items() if key not in of_first]
    comparable = [pair for pair in pairs if shared_tasks(*pair)]
    lonely += [f"A and B share no task of {_words(pair[0])}" for pair in pairs if not shared_tasks(*pair)]
    if not comparable:
        raise ConfigError(
            f"{first.given} and {second.given} have nothing to compare: " + "; ".join(lonely[:4]),
            "choose runs of the same tasks, and name the methods with PATH:METHOD where they differ",
        )
    if all({cell.directory for cell in one.cells} == {cell.directory for cell in two.cells} for one, two in comparable):
        raise ConfigError(
            f"{first.given} and {second.given} are the same cells", "name two methods of one folder with PATH:METHOD"
        )
    return Matched(tuple(comparable), tuple(lonely))


def shared_tasks(first: Line, second: Line) -> set[str]:
    """Ids of tasks that both lines were to play."""
    return {task.id for task in first.tasks} & {task.id for task in second.tasks}


def task_notes(first: Line, second: Line) -> list[str]:
    """Why a comparison is not over all tasks of both sides, one sentence each; none where it is."""
    notes = []
    shared = shared_tasks(first, second)
    if not len(shared) == len(first.tasks) == len(second.tasks):
        notes.append(
            f"compared on the {len(shared)} tasks that both have, of A's {len(first.tasks)} and B's {len(second.tasks)}"
        )
    for side, line in (("A", first), ("B", second)):
        scored = {task.id for task, known in zip(line.tasks, line.scored, strict=True) if known}
        if lost := len(shared - scored):
            notes.append(f"{side} has no scored episode of {lost} of the {len(shared)} shared tasks; they are left out")
    return notes


def differing_settings(first: Line, second: Line) -> list[str]:
    """What the two sides' results could depend on and is not the same, as ``key: A's -> B's``.

    Where a part was exchanged for another one, its options differ anyhow and only the names are given.
    """
    one, other = first.cells[0].identity, second.cells[0].identity
    found = []
    for part in sorted((one.keys() | other.keys()) - {"tasks", "seed"}):
        old, new = one.get(part), other.get(part)
        if _name(old) != _name(new):
            found.append(f"{part}: {_name(old)} -> {_name(new)}")
        else:
            found += changed_keys(old, new, part)
    found += _difference("seed", _seeds(first), _seeds(second))
    found += _difference("sizes averaged over", _listed(first.sizes), _listed(second.sizes))
    return [_DIGEST.sub(r"\1", text) for text in found]


def _split(given: str) -> tuple[Path, str]:
    """The path and the method; a colon in an existing path is part of it."""
    if reachable(Path(given)):
        return Path(given), ""
    for colon in re.finditer(":", given):
        path, method = given[: colon.start()], given[colon.end() :]
        if path and reachable(Path(path)):
            return Path(path), method
    return Path(given), ""


def _of_method(lines: Sequence[Line], method: str, given: str) -> tuple[Line, ...]:
    """Lines with this label, else of this selector; of one with several sizes their mean, as in tables."""
    exact = tuple(line for line in lines if line.method == method)
    found = exact or tuple(line for line in without_halves(lines) if line.selector == method)
    labels = sorted({line.method for line in found or lines})
    if not found:
        names = sorted({name for line in lines for name in (line.method, line.selector)})
        raise ConfigError(
            f"{given}: there is no method {method!r} with an episode{nearest(method, names)}",
            f"name one of: {', '.join(labels)}",
        )
    if len({line.setting for line in found}) < len(found):
        raise ConfigError(f"{given}: {method!r} stands for several methods", f"name one of: {', '.join(labels)}")
    return found


def _key(line: Line, by_setting: bool) -> tuple[Setting, str]:
    return line.setting, "" if by_setting else line.method


def _words(line: Line) -> str:
    setting = line.setting
    return f"{line.method} ({setting.backbone}, {setting.benchmark}/{setting.split})"


def _check_benchmark(first: Line, second: Line) -> None:
    differing = [
        f"{axis} {one} and {other}"
        for axis in ("benchmark", "split")
        if (one := getattr(first.setting, axis)) != (other := getattr(second.setting, axis))
    ]
    if differing:
        raise ConfigError(
            "these cells played different tasks: " + ", ".join(differing), "choose cells of one benchmark and split"
        )


def _name(part: Any) -> str:
    if part is None:
        return "none"
    return str(part.get("name", "")) if isinstance(part, dict) else str(part)


def _difference(key: str, old: str, new: str) -> list[str]:
    return [] if old == new else [f"{key}: {old} -> {new}"]


def _seeds(line: Line) -> str:
    return _listed(sorted({cell.settings.get("seed", 0) for cell in line.cells}))


def _listed(values: Sequence[int]) -> str:
    return ", ".join(map(str, values)) or "none"
