"""Pictures of case studies: nothing overlaps, nothing is lost, and equal studies give equal files."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from case_factory import HOSTILE, JAPANESE, edges_selection, skill

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.report.case_layout import MOST_ROWS
from skillarena.orchestration.report.case_model import case_study
from skillarena.orchestration.report.case_picture import draw
from skillarena.orchestration.report.case_study import write_case_study
from skillarena.orchestration.report.lettering import MISSING, clean, width
from skillarena.selectors.interface import Selection

SVG = "{http://www.w3.org/2000/svg}"
POINTS = 72


def picture(selection: Selection, goal: str = "put a hot mug in cabinet") -> ElementTree.Element:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        return ElementTree.fromstring(draw(case_study(selection, goal, "skillreranker"), "svg"))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def extents(root: ElementTree.Element) -> list[tuple[float, float, float, float, str]]:
    """Left, right, top, bottom and content of every line, in points."""
    found = []
    for element in root.iter(f"{SVG}text"):
        style = dict(part.strip().split(": ", 1) for part in element.attrib["style"].split(";") if ":" in part)
        content, size = "".join(element.itertext()), float(style["font-size"].removesuffix("px"))
        wide = width(content, size, bold=style.get("font-weight") == "700") * POINTS
        x, y = float(element.attrib["x"]), float(element.attrib["y"])
        left = x - wide * {"start": 0, "middle": 0.5, "end": 1}[style["text-anchor"]]
        found.append((left, left + wide, y - 0.75 * size, y + 0.2 * size, content))
    return found


def gos_selection() -> Selection:
    bundle = [{"id": f"lib/skill-{n}", "score": 9.0 - n, "walk": 1 / (n + 1), "seed": None} for n in range(9)]
    kinds = ("dependency", "workflow", "semantic", "alternative")
    pairs = [(0, 3), (5, 1), (8, 0), (2, 3), (4, 7)]
    relations = [
        {"source": f"lib/skill-{a}", "target": f"lib/skill-{b}", "type": kinds[n % 4], "weight": 0.2 * n}
        for n, (a, b) in enumerate(pairs)
    ]
    return Selection((skill("lib/skill-0"),), details={"bundle": bundle, "relations": relations})


CASES = {
    "usual": edges_selection(),
    "two_states": edges_selection(states=2, skills=3),
    "twelve_states": edges_selection(states=12, skills=30, split_everywhere=True),
    "long_names": edges_selection(
        name=lambda n: f"a-library/with/{'very-' * 12}long-name-{n}", text=lambda n: "x" * 90
    ),
    "long_texts": edges_selection(text=lambda n: f"state {n} " + "in which a lot of things are true at once " * 9),
    "one_state": edges_selection(states=1, skills=8),
    "hostile": edges_selection(name=lambda n: f"{HOSTILE}{n}", text=lambda n: HOSTILE, marks=("parse_fallback",)),
    "japanese": edges_selection(name=lambda n: f"技能/水を沸かす-{n}", text=lambda n: JAPANESE),
    "ranking": Selection(
        (skill("b", 0.5),), details={"candidates": [{"id": c, "cosine": 0.1, "score": -3.0} for c in "abc"]}
    ),
    "chosen_only": Selection((skill("x"),), details={"method": "random", "seed": 0, "chosen": ["x"]}),
    "skill_graph": gos_selection(),
}


@pytest.mark.parametrize("case", CASES)
def test_no_text_lies_over_another_or_outside_of_the_picture(case: str) -> None:
    root = picture(CASES[case])
    wide, tall = (float(root.attrib[side].removesuffix("pt")) for side in ("width", "height"))
    lines = extents(root)
    assert lines
    for left, right, top, bottom, content in lines:
        assert left >= 0, content
        assert right <= wide, content
        assert top >= 0, content
        assert bottom <= tall, content
    for one, other in combinations(lines, 2):
        beside = one[1] <= other[0] or other[1] <= one[0]
        below = one[3] <= other[2] or other[3] <= one[2]
        assert beside or below, (one[4], other[4])


@pytest.mark.parametrize("case", CASES)
def test_a_picture_can_be_a_png_without_a_warning(case: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert draw(case_study(CASES[case], "goal", "m"), "png").startswith(b"\x89PNG")


def test_states_stages_skills_flows_and_the_choice_are_in_it() -> None:
    selection = edges_selection(states=4, skills=12, split_everywhere=True, marks=("parse_fallback",))
    shown = texts(picture(selection))
    whole = " ".join(shown)
    assert {f"S{n}" for n in (0, 3)} <= set(shown)
    assert {f"S{n} (split)" for n in (1, 2)} <= set(shown)
    for n in range(4):
        assert f"state {n} of" in whole
    for n, stage in enumerate(selection.details["stages"], start=1):
        assert f"stage {n}" in shown
        assert f"S{stage['start']}→S{stage['end']} phi" in shown
    for candidate in selection.details["candidates"]:
        assert candidate["id"] + ("*" if candidate["fallback"] else "") in shown
        assert f"{candidate['w']:.2f}" in shown or f"{candidate['w']:.3f}" in shown
    for values in selection.details["flow"].values():
        assert {f"{value:.2f}" for value in values} <= set(shown)
    assert {"In", "Out", "Cross"} <= set(shown)
    assert "dropped" not in shown
    assert texts(picture(CASES["one_state"])).count("dropped") == 8
    assert any(line.startswith("parse_fallback: ") for line in shown)
    for place, chosen in enumerate(selection.skills, start=1):
        assert any(line.startswith(f"{place} {chosen.id}: It fits.") for line in shown)


def test_the_choice_is_marked_by_more_than_its_colour() -> None:
    root = picture(edges_selection(seed=1))
    bold = ["".join(e.itertext()) for e in root.iter(f"{SVG}text") if "font-weight: 700" in e.attrib["style"]]
    for place, chosen in enumerate(edges_selection(seed=1).skills, start=1):
        assert chosen.id in bold
        assert str(place) in bold


def test_only_the_most_relevant_of_very_many_skills_are_drawn_and_it_says_so() -> None:
    selection = edges_selection(skills=300)
    shown = texts(picture(selection))
    assert any(f"{MOST_ROWS} of 300 skills" in line for line in shown)
    drawn = {c["id"] for c in selection.details["candidates"] if {c["id"], c["id"] + "*"} & set(shown)}
    chosen = {one.id for one in selection.skills}
    assert len(drawn) == MOST_ROWS
    assert chosen <= drawn
    by_weight = sorted(selection.details["candidates"], key=lambda c: -c["w"])
    assert drawn - chosen <= {c["id"] for c in by_weight[:MOST_ROWS]}


def test_hostile_text_stays_text() -> None:
    root = picture(CASES["hostile"], HOSTILE)
    assert {element.tag.removeprefix(SVG) for element in root.iter() if isinstance(element.tag, str)} <= {
        "svg", "g", "path", "text", "defs", "style", "clipPath", "rect", "metadata", "use",
        *(e.tag for e in root.iter(f"{SVG}metadata") for e in e.iter()),
    }  # fmt: skip
    assert clean(HOSTILE) in texts(root)
    assert "<script>" in clean(HOSTILE)
    assert not any(c in "".join(texts(root)) for c in "\x00\x1b\ufffe\u202e")


def test_letters_that_the_font_lacks_are_in_the_svg_and_are_explained_in_a_png(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillarena.orchestration.report import canvas

    drawn: list[str] = []
    original = canvas.Sheet.text
    monkeypatch.setattr(
        canvas.Sheet,
        "text",
        lambda self, x, y, text, *a, **k: (drawn.append(text), original(self, x, y, text, *a, **k))[1],
    )
    draw(case_study(CASES["japanese"], "水", "m"), "png")
    assert any(line.startswith(MISSING) and "lacks" in line for line in drawn)
    drawn.clear()
    root = picture(CASES["japanese"], "水を沸かす")
    assert "水を沸かす" in texts(root)
    assert not any(MISSING in line for line in texts(root))


SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from case_factory import edges_selection
from skillarena.orchestration.report.case_study import write_case_study
for form in ("svg", "png", "html"):
    write_case_study(edges_selection(seed=5), "a goal", "skillreranker", Path(sys.argv[2], f"case.{form}"))
"""


def test_files_are_equal_byte_for_byte_whatever_the_hash_seed_and_the_users_settings(tmp_path: Path) -> None:
    rc = tmp_path / "matplotlibrc"
    rc.write_text("font.size: 20\nsvg.fonttype: path\ntext.usetex: True\naxes.facecolor: red\nsavefig.dpi: 30\n")
    written = []
    for seed, settings in (("0", {}), ("1", {"MATPLOTLIBRC": str(rc)})):
        folder = tmp_path / seed
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(folder)],
            env={**os.environ, "PYTHONHASHSEED": seed, **settings},
            check=True,
            timeout=120,
        )
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    assert set(written[0]) == {"case.svg", "case.png", "case.html"}


@pytest.mark.parametrize("name", ["case.gif", "case", "case.sgv"])
def test_an_unknown_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="no such kind of figure"):
        write_case_study(CASES["usual"], "goal", "m", tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        write_case_study(CASES["usual"], "goal", "m", tmp_path / "absent" / "case.svg")
    (tmp_path / "taken.svg").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        write_case_study(CASES["usual"], "goal", "m", tmp_path / "taken.svg")


def test_the_page_holds_the_picture_and_every_number_as_tables(tmp_path: Path) -> None:
    selection = edges_selection(states=3, skills=60, split_everywhere=True)
    write_case_study(selection, "the goal", "skillreranker", tmp_path / "case.html")
    page = (tmp_path / "case.html").read_text()
    assert page.count("<svg ") == 1
    assert "default-src 'none'" in page
    assert "<script" not in page
    assert page.count("<table>") == 4
    for candidate in selection.details["candidates"]:  # all of them, where the picture shows the most relevant
        assert f">{candidate['id']}</th>" in page
        assert f"{candidate['rho']:.4g}" in page
    for stage in selection.details["stages"]:
        assert all(f"{value:.4g}" in page for value in stage["phi"])


def test_hostile_text_is_no_markup_in_the_page(tmp_path: Path) -> None:
    write_case_study(CASES["hostile"], HOSTILE, HOSTILE, tmp_path / "case.html")
    page = (tmp_path / "case.html").read_text()
    assert "<script" not in page
    assert "{{ 7*7 }}" in page
    assert not any(c in page for c in "\x00\x1b\u202e")


@pytest.mark.slow
@pytest.mark.parametrize("wide", [1280, 390])
def test_the_page_opens_from_disk_without_errors_and_nothing_sticks_out(tmp_path: Path, wide: int) -> None:
    from steered_browser import Browser

    write_case_study(CASES["twelve_states"], "the goal " * 20, "skillreranker", tmp_path / "case.html")
    with Browser(tmp_path / "profile", width=wide) as browser:
        browser.open((tmp_path / "case.html").as_uri())
        assert browser.errors == []
        assert [address for address in browser.requests if not address.startswith("file:")] == []
        assert browser.evaluate("document.documentElement.scrollWidth") <= wide
        assert browser.evaluate("document.querySelectorAll('svg text').length") > 100
        browser.press("Tab")
        assert browser.evaluate("document.activeElement.getAttribute('role')") == "region"
