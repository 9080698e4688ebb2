"""Tables and comparisons as the page shows them: numbers as text, and when a published value stands beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_cells import make_cell

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.comparisons import compare_lines
from skillarena.orchestration.report.lines import lines_of
from skillarena.orchestration.report.page.tables import Number, comparison_views, table_view
from skillarena.orchestration.report.report import build_report
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow


def number(entry: Entry, digits: int = 1) -> Number:
    column = Column("x", ("x",), "higher", digits)
    table = ReportTable("t", "A table", ("method",), (column,), (TableRow(("a",), (entry,)),))
    ((_, (row,)),) = table_view(table).groups
    return row.numbers[0]


def entry(**changes: Any) -> Entry:
    plain: dict[str, Any] = {"mean": 84.25, "low": 80.0, "high": 90.0, "scored": 4, "expected": 4}
    return Entry(**(plain | changes))


def test_a_number_has_its_interval_and_rank() -> None:
    found = number(entry(rank=1))
    assert (found.text, found.interval, found.rank, found.coverage) == ("84.2", "[80.0, 90.0]", 1, "")


def test_a_number_that_rounds_to_zero_has_no_sign() -> None:
    found = number(entry(mean=-0.01, low=-0.02, high=0.01, published=0.0))
    assert (found.text, found.interval, found.difference) == ("0.0", "[0.0, 0.0]", "0.0")


def test_an_interval_without_width_is_left_out() -> None:
    assert number(entry(low=84.25, high=84.25)).interval == ""


def test_missing_and_partial_numbers_say_so() -> None:
    assert number(Entry(None)).text == "missing"
    assert number(entry(mean=None, low=None, high=None, scored=0)).coverage == "0/4"
    assert number(entry(scored=3)).coverage == "3/4"


@pytest.mark.parametrize(
    ("changes", "published", "difference"),
    [
        ({}, "80.0", "+4.2"),
        ({"differs": ("another library",)}, "80.0", ""),
        ({"scored": 3}, "80.0", ""),
        ({"simulated": True}, "", ""),
    ],
)
def test_published_values_are_compared_only_where_nothing_differs(
    changes: dict[str, Any], published: str, difference: str
) -> None:
    found = number(entry(published=80.0, **changes))
    assert (found.published, found.difference) == (published, difference)
    assert found.doubts == "; ".join(changes.get("differs", ()))


def test_neighbouring_columns_share_their_outer_words() -> None:
    headings = [("alf", "seen", "R"), ("alf", "seen", "S"), ("alf", "unseen", "R"), ("sci", "seen", "R")]
    columns = tuple(Column(str(place), words, "", 1) for place, words in enumerate(headings))
    row = TableRow(("model", "a"), (entry(),) * 4)
    view = table_view(ReportTable("t", "A table", ("backbone", "method"), columns, (row,)))
    spans = [[(head.text, head.columns, head.rows) for head in level] for level in view.heads]
    assert spans == [
        [("method", 1, 3), ("alf", 3, 1), ("sci", 1, 1)],
        [("seen", 2, 1), ("unseen", 1, 1), ("seen", 1, 1)],
        [("R", 1, 1), ("S", 1, 1), ("R", 1, 1), ("R", 1, 1)],
    ]
    assert view.groups[0][0] == "model" and view.groups[0][1][0].labels == ("a",)


def test_comparisons_say_direction_and_what_is_not_resolved(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="skillreranker", rewards=(0.0,) * 20, tokens=[1000 + n for n in range(20)])
    better = [100.0] * 19 + [0.0]
    make_cell(tmp_path, selector="vector", rewards=better, tokens=[3000 + 7 * n for n in range(20)])
    make_cell(tmp_path, selector="random", rewards=[100.0] + [0.0] * 19, tokens=[1000 + n for n in range(20)])
    lines = lines_of(load([tmp_path]).cells)
    (setting,) = comparison_views(compare_lines(lines), lines)
    assert setting.baseline.startswith("skillreranker") and setting.simulated
    random, vector = setting.rows
    success, _, _, tokens = vector.verdicts
    assert (success.text, success.better, vector.only_first, vector.only_second) == ("+95.0", "better", 0, 19)
    assert tokens.better == "worse" and tokens.text.startswith("+2,0")
    assert success.p.startswith("p < 0.001")
    assert random.verdicts[0].better == ""
    assert random.verdicts[0].words.startswith("not resolved; about ")
    assert random.verdicts[3].words == "not resolved"


def test_of_a_setting_with_some_simulated_methods_these_are_marked(tmp_path: Path) -> None:
    for selector, simulated in (("skillreranker", False), ("vector", False), ("llm_selector", True)):
        make_cell(tmp_path, selector=selector, backbone="deepseek_v4_flash", simulated=simulated)
    report = build_report(load([tmp_path]))
    (setting,) = comparison_views(report.comparisons, report.lines)
    assert setting.simulated == "some simulated"
    assert [(row.method, row.simulated) for row in setting.rows] == [
        ("llm_selector k=30 top_k=1", True),
        ("vector top_k=1", False),
    ]
