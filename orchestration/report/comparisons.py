"""Methods against a baseline on the same tasks, corrected for how many comparisons a table makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby, islice

import numpy as np
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError, nearest
from skillarena.orchestration.report.lines import Line, Setting
from skillarena.orchestration.report.paired import Effect, Pair, mean_effects, success_effects
from skillarena.orchestration.report.power import LEVEL, tasks_to_resolve

BASELINE = "skillreranker"
"""Selector that others are compared with unless another one is named."""
SUCCESS = "success"
COMPARED = (SUCCESS, "reward", "env_steps", "total_tokens")
"""Measures with a test, by the names of ``MEASURES``."""

Positions = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Where each of two methods has the tasks that both know."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two methods in one measure over the tasks that both have a score for; differences are second minus first."""

    setting: Setting
    """Of the first method."""
    first: str
    """Label of the baseline."""
    second: str
    """Label of the method compared with it."""
    measure: str
    """One of ``COMPARED``; success counts tasks fully solved, from 0 to 1."""
    tasks: int
    """Tasks that both have a value for. Without any, all numbers below are None."""
    first_mean: float | None
    second_mean: float | None
    difference: float | None
    low: float | None
    """Lower end of the 95 % interval of the difference; None where there is none."""
    high: float | None
    p: float | None
    """Two-sided p value of ``test``."""
    p_holm: float | None
    """``p`` after Holm's correction over all comparisons of this measure that were made together (one table's)."""
    test: str
    """``exact McNemar`` or ``sign-flip permutation`` (see ``paired``)."""
    resolved: bool
    """``p_holm`` is at most 0.05: the difference is more than chance."""
    tasks_to_resolve: int | None
    """Tasks that would resolve a difference of this size four times in five, at the level Holm's correction leaves
    this comparison; None where it is resolved, and where the methods do not differ."""
    only_first: tuple[str, ...] = field(repr=False)
    """For ``success``: ids of tasks that the first alone solved (or, averaged over cells, solved more often)."""
    only_second: tuple[str, ...] = field(repr=False)
    """For ``success``: ids of tasks that the second alone solved, likewise."""
    simulated: bool
    """No language model played, or ranked the skills, on at least one side."""


def compare_lines(lines: Sequence[Line], baseline: str | None = None) -> tuple[Comparison, ...]:
    """Every method against the baseline of its setting.

    Args:
        lines: the methods of one table.
        baseline: a method's label, or a selector's name, which stands for the first of its lines in order of labels;
            settings without it have no comparisons. None takes ``skillreranker``, and in settings without it the first
            method in order of labels.

    Returns:
        By setting, method and measure.

    Raises:
        ConfigError: no setting has the baseline.
    """
    known = sorted({name for line in lines for name in (line.method, line.selector)})
    if baseline is not None and lines and baseline not in known:
        raise ConfigError(
            f"baseline: no method with an episode is called {baseline!r}{nearest(baseline, known)}",
            f"name one of {', '.join(known)}",
        )
    pairs: list[tuple[Line, Line]] = []
    for _, together in groupby(sorted(lines, key=lambda line: (line.setting, line.method)), lambda line: line.setting):
        methods = list(together)
        first = _baseline(methods, baseline)
        pairs += [(first, line) for line in methods if first is not None and line is not first]
    return compare_pairs(pairs)


def compare_pairs(pairs: Sequence[tuple[Line, Line]]) -> tuple[Comparison, ...]:
    """Compare pairs of methods by task; Holm's correction is over the pairs, for each measure.

    Returns:
        By pair, in their order, and measure.
    """
    positions = [_shared(first, second) for first, second in pairs]
    values = {measure: _values(pairs, positions, measure) for measure in COMPARED}
    effects = _effects(values)
    corrected = {measure: _holm(effects[measure]) for measure in COMPARED}
    found = []
    for number, (first, second) in enumerate(pairs):
        disagreements = _disagreements(first, positions[number], values[SUCCESS][number])
        for measure in COMPARED:
            effect, (p_holm, level) = effects[measure][number], corrected[measure][number]
            resolved = p_holm is not None and p_holm <= LEVEL
            only_first, only_second = disagreements if measure == SUCCESS else ((), ())
            found.append(
                Comparison(
                    setting=first.setting,
                    first=first.method,
                    second=second.method,
                    measure=measure,
                    tasks=effect.tasks,
                    first_mean=effect.first_mean,
                    second_mean=effect.second_mean,
                    difference=effect.difference,
                    low=effect.low,
                    high=effect.high,
                    p=effect.p,
                    p_holm=p_holm,
                    test=effect.test,
                    resolved=resolved,
                    tasks_to_resolve=None if resolved else _needed(effect, level),
                    only_first=only_first,
                    only_second=only_second,
                    simulated=first.simulated or second.simulated,
                )
            )
    return tuple(found)


def _baseline(methods: Sequence[Line], name: str | None) -> Line | None:
    wanted = BASELINE if name is None else name
    exact = [line for line in methods if line.method == wanted]
    alike = [line for line in methods if line.selector == wanted]
    any_other = list(methods) if name is None else []
    return next(iter([*exact, *alike, *any_other]), None)


def _shared(first: Line, second: Line) -> Positions:
    """In the order of the first."""
    of_second = {task.id: position for position, task in enumerate(second.tasks)}
    shared = [(position, of_second[task.id]) for position, task in enumerate(first.tasks) if task.id in of_second]
    both = np.array(shared, dtype=np.intp).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _values(pairs: Sequence[tuple[Line, Line]], positions: Sequence[Positions], measure: str) -> list[Pair]:
    return [
        (first.values[measure][of_first], second.values[measure][of_second])
        for (first, second), (of_first, of_second) in zip(pairs, positions, strict=True)
    ]


def _effects(values: dict[str, list[Pair]]) -> dict[str, list[Effect]]:
    """By measure; all means together, as pairs with equally many tasks share their resamples."""
    means = [measure for measure in values if measure != SUCCESS]
    effects = iter(mean_effects([pair for measure in means for pair in values[measure]]))
    return {
        SUCCESS: success_effects(values[SUCCESS]),
        **{measure: list(islice(effects, len(values[measure]))) for measure in means},
    }


def _needed(effect: Effect, level: float) -> int | None:
    if effect.difference is None or effect.mean_square is None:
        return None
    return tasks_to_resolve(effect.difference, effect.mean_square, level)


def _holm(effects: Sequence[Effect]) -> list[tuple[float | None, float]]:
    """Corrected p value of each effect, and the level that the correction tests it at."""
    from statsmodels.stats.multitest import multipletests

    tested = [number for number, effect in enumerate(effects) if effect.p is not None]
    found: list[tuple[float | None, float]] = [(None, LEVEL)] * len(effects)
    if tested:
        p_values = np.array([effects[number].p for number in tested], dtype=np.float64)
        corrected = multipletests(p_values, method="holm")[1]
        smaller = np.argsort(np.argsort(p_values, kind="stable"), kind="stable")
        for number, p_holm, rank in zip(tested, corrected, smaller, strict=True):
            found[number] = (float(p_holm), LEVEL / (len(tested) - int(rank)))
    return found


def _disagreements(first: Line, positions: Positions, values: Pair) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Ids of the shared tasks in which either side has the higher value."""
    ids = [first.tasks[position].id for position in positions[0]]
    one, other = values
    return tuple(compress(ids, one > other)), tuple(compress(ids, other > one))
