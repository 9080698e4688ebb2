"""Hostile text in every field of a record runs nothing in a real browser, whatever file it is shown in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from case_factory import edges_selection
from report_cells import LOST, make_cell
from steered_browser import Browser

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.case_study import write_case_study
from skillarena.orchestration.report.report import build_report
from skillarena.orchestration.report.report_files import write_report

pytestmark = pytest.mark.slow

RAN = "window.ran === undefined ? null : window.ran"
FOREIGN = "document.querySelectorAll('img, iframe, object, embed, foreignObject, base, link, form[action]').length"


def hostile(field: str) -> str:
    """Text that says in ``window.ran`` that it was run, and as which field."""
    act = f"window.ran='{field}'"
    return (
        f"</script></text></title></style></textarea>--></p>]]><script>{act}</script>"
        f'<img src=x onerror="{act}"><svg onload="{act}"/>" onmouseover="{act}" autofocus onfocus="{act}" x="'
        f"<iframe srcdoc='<script>parent.{act}</script>'></iframe><meta http-equiv=refresh content='0;url=http://leak.invalid/'>"
        f'<a href="javascript:{act}">{field}</a>{{{{{act}}}}}${{{act}}}\';{act};//'
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of cells in which every text that comes from elsewhere is hostile."""
    root = tmp_path_factory.mktemp("hostile")
    words = {name: hostile(name) for name in ("goal", "observation", "reply", "thought", "action")}
    for selector in ("none", "vector"):
        fields = {"error": ["", "", hostile("error")], "skills": (hostile("skill"),)}
        cell = make_cell(root, selector=selector, texts=words, rewards=(100.0, 0.0, LOST), fields=fields)
        _rename(cell / "config.json", selector)
        _choose_hostile_skills(cell)
    archive = load([root])
    write_report(build_report(archive), archive, root / "report")
    return root / "report"


def _rename(config: Path, selector: str) -> None:
    """Names in a cell's configuration, as somebody else's could be."""
    plain = json.loads(config.read_bytes())
    plain["cell"]["name"] = hostile("cell")
    plain["cell"]["axes"] |= {axis: hostile(axis) for axis in ("split", "backbone", "benchmark")}
    if selector == "vector":
        plain["cell"]["axes"]["selector"] = hostile("selector")
    for part in ("identity", "settings"):
        plain[part]["backbone"]["name"] = hostile("backbone")
        plain[part]["selector"]["name"] = hostile("selector") if selector == "vector" else selector
    for task in plain["tasks"]:
        task["name"], task["task_type"] = task["name"] + hostile("task"), hostile("type")
    config.write_text(json.dumps(plain))


def _choose_hostile_skills(cell: Path) -> None:
    """Trajectories whose skills have hostile names; rows say where each line begins."""
    offsets, lines = {}, b""
    for line in (cell / "trajectories.jsonl").read_bytes().splitlines():
        plain = json.loads(line) | {"skills": [hostile("skill")]}
        offsets[plain["episode_id"]] = len(lines)
        lines += json.dumps(plain).encode() + b"\n"
    (cell / "trajectories.jsonl").write_bytes(lines)
    rows = [json.loads(row) for row in (cell / "episodes.jsonl").read_bytes().splitlines()]
    for row in rows:
        row["trajectory_offset"] = offsets.get(row["episode_id"], -1)
    (cell / "episodes.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def nothing_ran(browser: Browser, address: str) -> None:
    assert browser.evaluate(RAN) is None
    assert browser.evaluate(FOREIGN) == 0
    assert [sent for sent in browser.requests if sent.partition("#")[0] != address] == []
    assert browser.errors == []
    assert browser.evaluate("location.href").partition("#")[0] == address


def test_the_report_page(browser: Browser, report: Path) -> None:
    address = (report / "index.html").as_uri()
    browser.open(address)
    browser.wait("!document.getElementById('viewer').hidden && document.querySelectorAll('[role=option]').length > 0")
    count = browser.evaluate("document.querySelectorAll('[role=option]').length")
    assert count == 6
    shown = ""
    for place in range(count):
        browser.evaluate(f"document.querySelectorAll('[role=option]')[{place}].click()")
        browser.wait(f"document.getElementById('detail').textContent.includes('{place + 1} of {count}')")
        browser.evaluate("document.querySelectorAll('#detail details').forEach(part => (part.open = true))")
        shown += browser.evaluate("document.getElementById('detail').textContent")
        nothing_ran(browser, address)
    shown += browser.evaluate("document.body.textContent")
    for field in ("goal", "observation", "thought", "action", "selector", "backbone", "split", "skill", "task"):
        assert f"window.ran='{field}'" in shown, f"{field} is not shown at all"
    assert browser.evaluate("[...document.querySelectorAll('a')].every(a => a.getAttribute('href').startsWith('#'))")
    moved = "document.querySelectorAll('*').forEach(e => e.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})))"
    browser.evaluate(moved)
    nothing_ran(browser, address)


def test_the_figures_of_a_report(browser: Browser, report: Path) -> None:
    figures = sorted((report / "figures").glob("*.svg"))
    assert figures
    for path in figures:
        browser.open(path.as_uri())
        nothing_ran(browser, path.as_uri())
        assert browser.evaluate("document.querySelectorAll('script').length") == 0


@pytest.mark.parametrize("kind", ["html", "svg"])
def test_the_picture_of_a_selection(browser: Browser, tmp_path: Path, kind: str) -> None:
    selection = edges_selection(
        name=lambda number: f"{number}{hostile('skill')}", text=lambda _: hostile("state"), marks=(hostile("mark"),)
    )
    path = tmp_path / f"case.{kind}"
    write_case_study(selection, hostile("goal"), hostile("method"), path)
    browser.open(path.as_uri())
    nothing_ran(browser, path.as_uri())
    assert browser.evaluate("document.querySelectorAll('script').length") == 0
    assert "window.ran=" in browser.evaluate("document.documentElement.textContent")


@pytest.mark.parametrize("part", ["script", "img", "svg", "frame"])
def test_a_page_that_took_the_text_for_markup_would_be_noticed(browser: Browser, tmp_path: Path, part: str) -> None:
    path = tmp_path / "careless.html"
    start = {"script": "<script>", "img": "<img ", "svg": "<svg ", "frame": "<iframe "}[part]
    text = hostile("goal")
    path.write_text(f"<!doctype html><body>{text[text.index(start) :]}")
    browser.open(path.as_uri())
    with pytest.raises(AssertionError):
        nothing_ran(browser, path.as_uri())


def test_what_mlflow_gets_is_data_and_no_markup(report: Path) -> None:
    """MLflow's own page shows tables as text; what it is handed is JSON that holds the words unchanged."""
    from skillarena.orchestration.ledger import read_rows
    from skillarena.orchestration.report.archive import cell_folders
    from skillarena.orchestration.tracking_points import episodes_table

    for folder in cell_folders([report.parent]):
        table = episodes_table(read_rows(folder).rows)
        assert json.loads(json.dumps(table)) == table
