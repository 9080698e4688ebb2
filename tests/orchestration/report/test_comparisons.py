"""Every method against the baseline of its setting, task by task."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from report_cells import LOST, make_cell
from statsmodels.stats.multitest import multipletests

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.comparisons import COMPARED, Comparison, compare_lines, compare_pairs
from skillarena.orchestration.report.lines import Line, lines_of
from skillarena.orchestration.report.paired import mcnemar

WON, LOSS = 100.0, 0.0


def lines_below(folder: Path) -> list[Line]:
    return lines_of(load([folder]).cells)


def of(comparisons: tuple[Comparison, ...], second: str, measure: str = "success") -> Comparison:
    (found,) = [one for one in comparisons if one.second.startswith(second) and one.measure == measure]
    return found


def test_tasks_are_paired_by_identity_and_disagreements_are_named(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON, WON, LOSS, LOSS, WON, LOSS], steps=[9, 8, 7, 6, 5, 4])
    make_cell(tmp_path, selector="vanilla", rewards=[WON, LOSS, LOSS, WON, LOSS, LOSS], steps=[9, 8, 7, 7, 7, 7])
    lines = lines_below(tmp_path)
    comparisons = compare_lines(lines)
    success = of(comparisons, "vanilla")
    ids = [task.id for task in lines[0].tasks]
    assert success.first.startswith("skillreranker")
    assert (success.tasks, success.first_mean, success.second_mean) == (6, 3 / 6, 2 / 6)
    assert success.difference == pytest.approx(-1 / 6)
    assert (success.only_first, success.only_second) == ((ids[1], ids[4]), (ids[3],))
    assert (success.test, success.p) == ("exact McNemar", mcnemar(2, 1))
    assert success.simulated
    steps = of(comparisons, "vanilla", "env_steps")
    assert steps.difference == pytest.approx((1 + 2 + 3) / 6)
    assert steps.p == 0.25  # differences 1, 2 and 3: the example worked by hand in the tests of sign flips
    assert (steps.only_first, steps.only_second) == ((), ())


def test_the_order_of_tasks_on_one_side_changes_nothing(tmp_path: Path) -> None:
    for selector, seed in (("skillreranker", 1), ("vanilla", 2)):
        rewards = np.random.default_rng(seed).choice([WON, LOSS, 50.0], 20).tolist()
        make_cell(tmp_path, selector=selector, rewards=rewards)
    one, two = lines_below(tmp_path)
    turned = replace(
        two, tasks=two.tasks[::-1], values={name: column[::-1].copy() for name, column in two.values.items()}
    )
    assert compare_pairs([(one, two)]) == compare_pairs([(one, turned)])


def test_tasks_without_a_score_on_both_sides_are_left_out(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON, WON, None, LOSS])
    make_cell(tmp_path, selector="vanilla", rewards=[LOSS, LOST, WON, LOSS])
    comparisons = compare_lines(lines_below(tmp_path))
    success = of(comparisons, "vanilla")
    assert (success.tasks, success.first_mean, success.second_mean) == (2, 0.5, 0.0)
    assert len(success.only_first) == 1


def test_without_shared_scores_a_comparison_says_so_and_no_other_pays_for_it(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON] * 7 + [None])
    make_cell(tmp_path, selector="vanilla", rewards=[LOSS] * 7 + [None])
    make_cell(tmp_path, selector="none", rewards=[None] * 7 + [WON])
    comparisons = compare_lines(lines_below(tmp_path))
    for measure in COMPARED:
        empty = of(comparisons, "none", measure)
        assert empty.tasks == 0
        assert {empty.p, empty.p_holm, empty.difference, empty.low, empty.tasks_to_resolve} == {None}
        assert not empty.resolved
    tested = of(comparisons, "vanilla")
    assert tested.p_holm == tested.p == 2 / 2**7


def test_success_averaged_over_sizes_is_not_tested_as_yes_or_no(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON] * 8)
    make_cell(tmp_path, selector="vector", top_k=1, rewards=[WON, LOSS] * 4)
    make_cell(tmp_path, selector="vector", top_k=2, rewards=[LOSS, LOSS, WON, WON] * 2)
    comparisons = compare_lines(lines_below(tmp_path))
    assert of(comparisons, "vector top_k=2").test == "exact McNemar"
    mean = of(comparisons, "vector top_k=1,2")
    assert (mean.test, mean.second_mean) == ("sign-flip permutation", 0.5)
    assert len(mean.only_first) == 6


def test_holm_corrects_over_all_comparisons_of_a_measure(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON] * 40)
    for selector, losses in (("vanilla", 12), ("none", 7), ("random", 6), ("oracle", 2)):
        make_cell(tmp_path, selector=selector, rewards=[LOSS] * losses + [WON] * (40 - losses))
    make_cell(tmp_path, selector="skillreranker", benchmark="scienceworld", rewards=[WON] * 12)
    make_cell(tmp_path, selector="vanilla", benchmark="scienceworld", rewards=[LOSS] * 12)
    success = [one for one in compare_lines(lines_below(tmp_path)) if one.measure == "success"]
    p_values = [one.p for one in success]
    assert sorted(p_values) == sorted(mcnemar(losses, 0) for losses in (12, 7, 6, 2, 12))
    assert [one.p_holm for one in success] == pytest.approx(multipletests(p_values, method="holm")[1], rel=1e-12)
    assert [one.resolved for one in success] == [p_holm <= 0.05 for p_holm in multipletests(p_values, method="holm")[1]]


def test_what_is_not_resolved_says_how_many_tasks_it_would_take(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON] * 20 + [LOSS] * 20)
    make_cell(tmp_path, selector="vanilla", rewards=[WON] * 15 + [LOSS] * 23 + [WON] * 2)
    make_cell(tmp_path, selector="none", rewards=[LOSS] * 40)
    comparisons = compare_lines(lines_below(tmp_path))
    unresolved, resolved = of(comparisons, "vanilla"), of(comparisons, "none")
    assert not unresolved.resolved
    assert unresolved.tasks_to_resolve is not None
    assert unresolved.tasks_to_resolve > unresolved.tasks
    assert resolved.resolved
    assert resolved.tasks_to_resolve is None
    assert of(comparisons, "vanilla", "env_steps").tasks_to_resolve is None  # no difference at all


def test_the_number_of_tasks_is_for_the_corrected_level(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON] * 40)
    make_cell(tmp_path, selector="vanilla", rewards=[LOSS] * 6 + [WON] * 34)
    alone = of(compare_lines(lines_below(tmp_path)), "vanilla")
    assert alone.resolved
    for selector in ("none", "random", "oracle"):
        make_cell(tmp_path, selector=selector, rewards=[LOSS] * 2 + [WON] * 38)
    among_others = of(compare_lines(lines_below(tmp_path)), "vanilla")
    assert among_others.p == alone.p
    assert not among_others.resolved
    assert among_others.tasks_to_resolve is not None
    assert among_others.tasks_to_resolve > 40


def test_each_setting_has_its_own_baseline(tmp_path: Path) -> None:
    for selector in ("skillreranker", "none", "vanilla"):
        make_cell(tmp_path, selector=selector)
    for selector in ("vanilla", "none"):
        make_cell(tmp_path, selector=selector, benchmark="scienceworld")
    lines = lines_below(tmp_path)
    usual = {(one.setting.benchmark, one.first.split()[0], one.second) for one in compare_lines(lines)}
    assert usual == {
        ("alfworld", "skillreranker", "none"),
        ("alfworld", "skillreranker", "vanilla"),
        ("scienceworld", "none", "vanilla"),
    }
    chosen = {(one.setting.benchmark, one.first) for one in compare_lines(lines, "vanilla")}
    assert chosen == {("alfworld", "vanilla"), ("scienceworld", "vanilla")}
    label = next(line.method for line in lines if line.selector == "skillreranker")
    assert {one.setting.benchmark for one in compare_lines(lines, label)} == {"alfworld"}


def test_a_misspelt_baseline_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vanilla")
    with pytest.raises(ConfigError, match="did you mean 'vanilla'"):
        compare_lines(lines_below(tmp_path), "vanila")


def test_a_single_method_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="vanilla")
    assert compare_lines(lines_below(tmp_path)) == ()
    assert compare_lines([]) == ()


def test_no_number_is_nan(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=[WON, None])
    make_cell(tmp_path, selector="vanilla", rewards=[LOSS, LOST])
    make_cell(tmp_path, selector="none", rewards=[None, WON])
    for one in compare_lines(lines_below(tmp_path)):
        numbers = (one.first_mean, one.second_mean, one.difference, one.low, one.high, one.p, one.p_holm)
        assert not any(number is not None and math.isnan(number) for number in numbers)
