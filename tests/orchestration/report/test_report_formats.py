"""Markdown, LaTeX, CSV, JSON and the terminal say the same, whatever text is in the data."""

from __future__ import annotations

import csv
import html
import io
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from report_cells import AS_PUBLISHED, LOST, make_cell
from rich.console import Console

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.csv_files import comparisons_csv, table_csv
from skillarena.orchestration.report.latex import escape as latex_escape
from skillarena.orchestration.report.latex import latex
from skillarena.orchestration.report.layout import entry_text, labels_once, number, parts, signed
from skillarena.orchestration.report.markdown import escape as markdown_escape
from skillarena.orchestration.report.markdown import markdown
from skillarena.orchestration.report.report import Content, Report, build_report
from skillarena.orchestration.report.report_json import report_json
from skillarena.orchestration.report.table_model import Column, Entry, ReportTable, TableRow
from skillarena.orchestration.report.terminal import terminal_tables

HOSTILE = "=1|2 </script><b>*x*</b> `y` \\input{z} $5 50% #1 a_b _c_ ~d^ {e} \x1b[31m [l](http://e) & \u202e é 漢"
REWARD = Column("alfworld.valid_seen.reward", ("alfworld", "valid_seen", "R"), "higher", 2, "points")
STEPS = Column("alfworld.valid_seen.env_steps", ("alfworld", "valid_seen", "S"), "lower", 2, "steps")
BEST = Entry(84.654, 80.0, 90.0, 140, 140, rank=1, published=85.0, source="arXiv 1, table 1")
SECOND = replace(BEST, mean=80.0, rank=2, published=81.0, differs=("K: 5 here, 30 published.",), uncertain="odd")
PARTIAL = Entry(33.333, 10.0, 50.0, 3, 140)
MISSING = Entry(None)
CONTENT = Content(1, 0, 2, 1, 1, ("cell",))


def table(*rows: tuple[Entry, ...], labels: tuple[str, ...] = ("deepseek_v4_flash", "vector top_k=1")) -> ReportTable:
    """A small table; rows have one label after another."""
    named = tuple(TableRow((labels[0], f"{labels[1]}{i or ''}"), entries) for i, entries in enumerate(rows))
    return ReportTable("table1", "Table 1: rewards", ("backbone", "method"), (REWARD, STEPS), named, ("R: reward.",))


def with_tables(*tables: ReportTable) -> Report:
    """A report that holds nothing else."""
    return Report(HOSTILE, CONTENT, tables, (), (HOSTILE,), (HOSTILE,), False, ())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A report with every table in it."""
    root = tmp_path_factory.mktemp("out")
    for selector, rewards in {
        "skillreranker": [100.0, 0.0, 100.0, 100.0],
        "without_split": [100.0, 0.0, 0.0, 100.0],
        "vector": [0.0, 0.0, 0.0, LOST],
        "none": [0.0, None, 0.0, 0.0],
    }.items():
        make_cell(root, **{**AS_PUBLISHED, "selector": selector, "rewards": rewards})
    make_cell(root, **{**AS_PUBLISHED, "k": 5, "rewards": [100.0] * 4})
    return build_report(load([root]))


def test_markdown_marks_best_second_coverage_and_published() -> None:
    text = markdown(with_tables(table((BEST, SECOND), (PARTIAL, MISSING))))
    (best, other) = [line for line in text.splitlines() if "vector" in line]
    assert "**84.65**<br>paper 85.00 (-0.35)" in best
    assert "<u>80.00</u><br>paper 81.00?" in best
    assert "33.33 (3/140)" in other and re.search(r"\| +— \|$", other)
    assert other.startswith("|                   | "), "a backbone is named once"
    assert "- n/m: only n of the m tasks" in text and "- —: not run." in text


def test_every_row_of_a_markdown_table_has_as_many_cells_as_its_heading(made: Report) -> None:
    blocks = [block for block in markdown(made).split("\n\n") if block.startswith("|")]
    assert len(blocks) > 6
    for block in blocks:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1
        assert len({len(line) for line in block.splitlines()}) == 1, "the text itself is a table"


def test_markdown_takes_hostile_text_for_text() -> None:
    text = markdown(with_tables(table((BEST, MISSING), labels=(HOSTILE, HOSTILE))))
    assert "<b>" not in text and "<script" not in text and "\x1b" not in text and "\u202e" not in text
    assert not re.search(r"(?<!\\)\]\(", text), "no link"
    row = next(line for line in text.splitlines() if line.startswith("| =1"))
    assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert markdown_escape("skill_router_x") == "skill_router_x"
    assert markdown_escape("- a\n# b") == "\\- a # b"
    assert markdown_escape("1. a") == "\\1. a"


@pytest.mark.parametrize("text", ["https://a.example", "www.a.example", "WWW.a.example", "me@a.example", "@someone"])
def test_markdown_makes_no_link_of_bare_text(text: str) -> None:
    escaped = markdown_escape(text)
    assert not re.search(r"://|www\.|@", escaped, re.IGNORECASE)
    assert html.unescape(escaped) == text


def test_markdown_marks_comparisons_of_which_some_are_simulated(tmp_path: Path) -> None:
    for selector, backbone, simulated in (
        ("skillreranker", "deepseek_v4_flash", False),
        ("vector", "deepseek_v4_flash", False),
        ("llm_selector", "deepseek_v4_flash", True),
        ("skillreranker", "simulated", True),
        ("vector", "simulated", True),
    ):
        make_cell(tmp_path, selector=selector, backbone=backbone, simulated=simulated)
    text = markdown(build_report(load([tmp_path])))
    assert "## Methods compared on the same tasks (some numbers SIMULATED" in text
    real, simulated_only = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert "(some numbers SIMULATED" in real.splitlines()[0] and "| llm_selector k=30 top_k=1† " in real
    assert re.search(r"\| vector top_k=1 +\|", real)
    assert "(SIMULATED" in simulated_only.splitlines()[0] and "†" not in simulated_only.partition("## ")[0]


def test_markdown_says_what_a_report_is_about(made: Report) -> None:
    text = markdown(made)
    assert text.startswith("# Skill selection on alfworld with deepseek_v4_flash\n")
    assert "18 of 20 episodes in 5 cells. 1 were lost to infrastructure errors" in text
    for heading in ("Table 1", "Table 2", "Table 3", "Where own and published settings differ", "Results by K"):
        assert f"## {heading}" in text
    assert "arXiv 2607.06283v1: Tasks: 4 here, 140 published" in text
    assert "| success %" in text and "not resolved" in text


@pytest.mark.parametrize("rewards", [(100.0, 0.0), (None, None), (LOST, LOST)])
def test_a_simulated_report_says_so_in_every_heading(tmp_path: Path, rewards: Sequence[Any]) -> None:
    for selector in ("skillreranker", "vector"):
        make_cell(tmp_path, selector=selector, rewards=rewards)
    text = markdown(build_report(load([tmp_path])))
    assert "**SIMULATED: no language model played" in text
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert len(headings) > 4 and all("SIMULATED" in heading for heading in headings)
    assert "paper" not in text


def balanced(text: str) -> None:
    """Braces close, environments nest, every row of a tabular has its columns."""
    bare = re.sub(r"\\\\|\\[{}%&#$_]", "", text)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    opened: list[str] = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", text):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    for form, body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.S):
        rows = [line for line in body.splitlines() if line.endswith("\\\\")]
        assert rows
        for row in rows:
            merged = sum(int(wide) - 1 for wide in re.findall(r"\\multicolumn\{(\d+)\}", row))
            assert len(re.findall(r"(?<!\\)&", row)) + 1 + merged == len(form), row


def test_latex_marks_best_second_coverage_and_published() -> None:
    text = latex(table((BEST, SECOND), (PARTIAL, MISSING)))
    balanced(text)
    assert "\\makecell[tr]{\\textbf{84.65}\\\\{\\scriptsize paper 85.00 ($-$0.35)}}" in text
    assert "\\makecell[tr]{\\underline{80.00}\\\\{\\scriptsize paper 81.00?}}" in text
    assert "\\makecell[tr]{33.33\\\\{\\scriptsize (3/140)}} & --- \\\\" in text
    assert "\\multirow{2}{*}{deepseek\\_v4\\_flash} & vector top\\_k=1 &" in text
    assert "\\multicolumn{2}{c}{valid\\_seen}" in text and "\\cmidrule(lr){3-4}" in text
    assert text.count("\\toprule") == text.count("\\bottomrule") == 1


def test_latex_takes_hostile_text_for_text() -> None:
    text = latex(table((BEST, MISSING), labels=(HOSTILE, HOSTILE)))
    balanced(text)
    assert "\\input" not in text.replace("\\textbackslash{}input", "")
    assert "\x1b" not in text and "\u202e" not in text and "漢" not in text
    assert latex_escape("é 漢 ~^\\") == "é U+6F22 \\textasciitilde{}\\textasciicircum{}\\textbackslash{}"


def test_every_table_of_a_report_is_sound_latex(made: Report) -> None:
    for one in made.tables:
        if one.rows:
            balanced(latex(one))


def test_a_long_or_wide_table_is_cut() -> None:
    long = table(*[(BEST, SECOND)] * 60)
    text = latex(long)
    balanced(text)
    assert text.count("\\begin{tabular}") == 2 and "(2 of 2)" in text
    assert text.count("\\multirow{40}{*}{deepseek") == text.count("\\multirow{20}{*}{deepseek") == 1
    columns = tuple(replace(REWARD, key=str(i), heading=("a", str(i))) for i in range(20))
    wide = replace(long, columns=columns, rows=(TableRow(("a", "b"), (BEST,) * 20),))
    text = latex(wide)
    balanced(text)
    assert text.count("\\begin{tabular}") == 3 and "(3 of 3)" in text


@pytest.mark.slow
def test_latex_compiles(made: Report, tmp_path: Path) -> None:
    if shutil.which("pdflatex") is None or shutil.which("kpsewhich") is None:
        pytest.skip("no pdflatex is installed")
    for package in ("adjustbox", "booktabs", "makecell", "multirow"):
        if subprocess.run(["kpsewhich", f"{package}.sty"], stdout=subprocess.DEVNULL, check=False).returncode:
            pytest.skip(f"the LaTeX package {package} is not installed")
    hostile = table((BEST, SECOND), (PARTIAL, MISSING), labels=(HOSTILE, HOSTILE))
    body = "\n".join(latex(one) for one in (*made.tables, hostile) if one.rows)
    source = tmp_path / "report.tex"
    packages = "\\usepackage{adjustbox,booktabs,makecell,multirow}"
    source.write_text(f"\\documentclass{{article}}\n{packages}\n\\begin{{document}}\n{body}\n\\end{{document}}\n")
    command = ["pdflatex", "-halt-on-error", "-no-shell-escape", source.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


def test_csv_has_one_line_an_entry_with_all_digits() -> None:
    lines = list(csv.DictReader(io.StringIO(table_csv(table((BEST, SECOND), (PARTIAL, MISSING))))))
    assert len(lines) == 4
    best, second, partial, missing = lines
    assert (best["backbone"], best["method"], best["column"]) == (
        "deepseek_v4_flash",
        "vector top_k=1",
        "alfworld.valid_seen.reward",
    )
    assert (best["mean"], best["low"], best["high"], best["rank"]) == ("84.654", "80.0", "90.0", "1")
    assert float(best["difference"]) == pytest.approx(-0.346)
    assert (second["difference"], second["differs"], second["uncertain"]) == ("", "K: 5 here, 30 published.", "odd")
    assert (partial["scored"], partial["expected"], partial["complete"]) == ("3", "140", "false")
    assert (missing["mean"], missing["expected"]) == ("", "0")


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "\x1b=1", "\uff1d1", "\uff20x"]
)
def test_csv_text_is_never_a_formula(text: str) -> None:
    lines = list(csv.reader(io.StringIO(table_csv(table((BEST, MISSING), labels=(text, "m"))))))
    assert not lines[1][0].lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff20"))


def test_csv_numbers_stay_numbers_below_zero() -> None:
    lines = list(csv.DictReader(io.StringIO(table_csv(table((replace(BEST, mean=-3.5), MISSING))))))
    assert lines[0]["mean"] == "-3.5"


def test_comparisons_have_a_file_of_their_own(made: Report) -> None:
    lines = list(csv.DictReader(io.StringIO(comparisons_csv(made.comparisons))))
    assert len(lines) == len(made.comparisons) > 0
    assert {line["first"] for line in lines} == {"skillreranker k=30"}
    success = next(line for line in lines if line["measure"] == "success" and line["second"] == "without_split k=30")
    assert (success["tasks"], success["split"], success["simulated"]) == ("4", "valid_seen", "false")
    assert len(success["only_first"]) == 64


def test_json_says_what_the_tables_say(made: Report) -> None:
    plain = orjson.loads(report_json(made))
    assert list(plain) == sorted(plain)
    assert set(plain["tables"]) == {table.name for table in made.tables}
    first = made.table("table1").rows[0].entries[0]
    told = plain["tables"]["table1"]["rows"][0]["entries"][0]
    assert (told["mean"], told["scored"], told["complete"]) == (first.mean, first.scored, first.complete)
    assert len(plain["lines"]) == len(made.lines) and len(plain["comparisons"]) == len(made.comparisons)
    line = next(line for line in plain["lines"] if line["method"] == "skillreranker k=30")
    assert line["estimates"]["success"]["mean"] == 0.75


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_the_terminal_never_cuts_a_number(made: Report, width: int) -> None:
    for one in made.tables:
        if not one.rows:
            continue
        console = Console(width=width, file=io.StringIO(), highlight=False)
        for part in terminal_tables(one, width):
            console.print(part)
        printed = console.file.getvalue()  # type: ignore[attr-defined]
        assert "…" not in printed
        assert max(map(len, printed.splitlines())) <= width
        for row in one.rows:
            for entry, column in zip(row.entries, one.columns, strict=True):
                assert entry_text(entry, column, one).value in printed


def test_the_terminal_prints_hostile_text_without_its_commands() -> None:
    console = Console(width=200, file=io.StringIO(), highlight=False)
    for part in terminal_tables(table((BEST, MISSING), labels=(HOSTILE, "[bold]m[/bold]")), 200):
        console.print(part)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in printed and "[bold]m[/bold]" in printed


def test_columns_of_a_group_stay_together_while_they_fit() -> None:
    columns = tuple(
        Column(f"{g}.{i}", (g, str(i)), "", 0) for g, size in (("a", 3), ("b", 4), ("c", 9)) for i in range(size)
    )
    row = TableRow(("x",), (MISSING,) * 16)
    cut = parts(ReportTable("t", "T", ("l",), columns, (row,)), 6)
    assert [[column.key for column in part.columns] for part in cut] == [
        ["a.0", "a.1", "a.2"],
        ["b.0", "b.1", "b.2", "b.3"],
        ["c.0", "c.1", "c.2", "c.3", "c.4", "c.5"],
        ["c.6", "c.7", "c.8"],
    ]
    assert [len(part.columns) for part in parts(ReportTable("t", "T", ("l",), columns, (row,)), 7)] == [7, 7, 2]


def test_labels_are_said_once() -> None:
    rows = [TableRow(labels, ()) for labels in (("a", "b", "1"), ("a", "b", "2"), ("a", "c", "2"), ("d", "c", "2"))]
    assert labels_once(rows) == [("a", "b", "1"), ("", "", "2"), ("", "c", "2"), ("d", "c", "2")]


def test_numbers_have_no_minus_before_a_zero() -> None:
    assert (number(-0.001, 2), number(1234567.8, 0), signed(-0.001, 2), signed(2.0, 1)) == (
        "0.00",
        "1,234,568",
        "0.00",
        "+2.0",
    )
