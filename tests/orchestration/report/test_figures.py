"""Figures: what they show, that nothing in them overlaps, and that equal lines give equal files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from report_cells import make_cell

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.figure_curves import draw_k_curves
from skillarena.orchestration.report.figure_scatter import draw_reward_against_tokens
from skillarena.orchestration.report.figure_style import Drawing, colour_of, figure_style
from skillarena.orchestration.report.figure_tokens import draw_token_bars
from skillarena.orchestration.report.figures import draw, write_figures
from skillarena.orchestration.report.lines import Line, lines_of
from skillarena.orchestration.report.report import build_report


def lines_in(root: Path) -> list[Line]:
    return lines_of(load([root]).cells)


def texts(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in visible(drawing)]


def visible(drawing: Drawing) -> list[Text]:
    return [text for text in drawing.figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


@pytest.fixture
def styled() -> Iterator[None]:
    with figure_style():
        yield


def test_every_figure_is_written_as_svg_and_png(tmp_path: Path) -> None:
    for k in (5, 10):
        make_cell(tmp_path / "out", k=k)
    files = write_figures(draw(build_report(load([tmp_path / "out"])).lines), tmp_path / "figures")
    names = [f"{name}.{kind}" for name in ("tokens", "reward_tokens", "k_curves") for kind in ("svg", "png")]
    assert [file.name for file in files] == names
    assert all(ElementTree.parse(file).getroot().tag.endswith("svg") for file in files if file.suffix == ".svg")
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files if file.suffix == ".png")


def test_curves_need_several_k(tmp_path: Path) -> None:
    make_cell(tmp_path, k=30)
    assert [drawing.name for drawing in draw(lines_in(tmp_path))] == ["tokens", "reward_tokens"]


def test_no_figure_without_a_scored_episode(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=(None, None))
    assert draw(lines_in(tmp_path)) == []


def test_equal_ledgers_give_equal_files_wherever_they_lie(tmp_path: Path) -> None:
    make_cell(tmp_path / "a", k=5, rewards=(100.0, 0.0, 100.0))
    make_cell(tmp_path / "a", k=10, rewards=(100.0, None, 100.0))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    one, other = (
        write_figures(draw(build_report(load([tmp_path / name])).lines), tmp_path / name / "figures")
        for name in ("a", "b")
    )
    assert [file.read_bytes() for file in one] == [file.read_bytes() for file in other]
    svg = (tmp_path / "a" / "figures" / "tokens.svg").read_text()
    assert "matplotlib.org" not in svg and "<dc:date>" not in svg


def test_figures_ignore_the_users_own_settings_of_matplotlib(tmp_path: Path) -> None:
    import matplotlib

    make_cell(tmp_path)
    plain = [drawing.svg() for drawing in draw(lines_in(tmp_path))]
    with matplotlib.rc_context({"axes.facecolor": "red", "font.size": 30, "svg.hashsalt": None}):
        assert [drawing.svg() for drawing in draw(lines_in(tmp_path))] == plain


@pytest.mark.parametrize(
    ("simulated", "words"),
    [((True, True), " (SIMULATED"), ((True, False), " (some SIMULATED"), ((False, False), "")],
)
def test_headings_say_what_is_simulated(tmp_path: Path, simulated: tuple[bool, bool], words: str) -> None:
    for k, scripted in zip((5, 10), simulated, strict=True):
        make_cell(tmp_path, k=k, simulated=scripted, backbone="simulated" if scripted else "deepseek_v4_flash")
    for k, scripted in zip((20, 30), simulated, strict=True):
        make_cell(tmp_path, k=k, simulated=scripted, backbone="simulated" if scripted else "deepseek_v4_flash")
    drawings = draw(lines_in(tmp_path))
    assert len(drawings) == 3
    for drawing in drawings:
        assert drawing.title in texts(drawing)
        assert ("SIMULATED" in drawing.title) == bool(words) and words in drawing.title


@pytest.mark.usefixtures("styled")
def test_bars_show_means_and_what_is_missing_or_partial(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="none", tokens=[1000, 3000])
    make_cell(tmp_path, selector="skillreranker", rewards=(100.0, None), tokens=[500, 0])
    make_cell(tmp_path, selector="vector", rewards=(None, None))
    make_cell(tmp_path, selector="none", benchmark="scienceworld", tokens=700)
    drawing = draw_token_bars(lines_in(tmp_path))
    assert drawing is not None
    found = {text.strip() for text in texts(drawing)}
    assert {"2,000", "500 (1/2)", "no scored episode of 2", "700", "not run"} <= found
    hatched = [patch for axes in drawing.figure.axes for patch in axes.patches if patch.get_hatch()]
    assert len(hatched) == 1


@pytest.mark.usefixtures("styled")
def test_the_mean_of_both_sizes_stands_for_them(tmp_path: Path) -> None:
    for top_k in (1, 2):
        make_cell(tmp_path, selector="vector", top_k=top_k, tokens=1000 * top_k)
    drawing = draw_token_bars(lines_in(tmp_path))
    assert drawing is not None
    assert "vector top_k=1,2" in texts(drawing) and "1,500" in texts(drawing) and "1,000" not in texts(drawing)


@pytest.mark.usefixtures("styled")
def test_names_of_many_methods_do_not_overlap(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    for number in range(24):
        rewards = [100.0 * (generator.random() < 0.5) for _ in range(6)]
        options = {"selector.name": f"own_method_{number:02}_with_quite_a_long_name"}
        make_cell(tmp_path, selector="none", options=options, rewards=rewards, tokens=[1000 + number] * 6)
    lines = lines_in(tmp_path)
    assert len(lines) == 24
    for drawing in (draw_token_bars(lines), draw_reward_against_tokens(lines)):
        assert drawing is not None
        renderer = FigureCanvasAgg(drawing.figure).get_renderer()
        names = [text for text in visible(drawing) if text.get_text().startswith("own_method")]
        boxes = [text.get_window_extent(renderer) for text in names]
        assert len(boxes) == 24
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        whole = drawing.figure.bbox
        assert all(box.x0 >= 0 and box.x1 <= whole.width and 0 <= box.y0 <= whole.height for box in boxes)


@pytest.mark.usefixtures("styled")
@pytest.mark.parametrize("widest", [2000, 200_000])
def test_every_point_is_in_sight_and_led_to_its_name(tmp_path: Path, widest: int) -> None:
    make_cell(tmp_path, selector="none", rewards=(100.0, 0.0), tokens=1000)
    make_cell(tmp_path, selector="vector", rewards=(100.0, 100.0), tokens=widest)
    drawing = draw_reward_against_tokens(lines_in(tmp_path))
    assert drawing is not None
    (axes,) = drawing.figure.axes
    assert axes.get_xscale() == ("log" if widest > 4000 else "linear")
    leaders = [line.get_xydata() for line in axes.lines if line.get_transform() == axes.transAxes]
    for point, leader in zip([(1000, 50), (widest, 100)], leaders, strict=True):
        seen = axes.transAxes.inverted().transform(axes.transData.transform(point))
        assert 0 < seen[0] < 1 and 0 < seen[1] < 1
        assert leader[0] == pytest.approx(seen)


@pytest.mark.usefixtures("styled")
def test_points_stand_at_reward_and_tokens_with_their_intervals(tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=(100.0, 0.0, 100.0, 0.0), tokens=[1000, 2000, 3000, 4000])
    drawing = draw_reward_against_tokens(lines := lines_in(tmp_path))
    assert drawing is not None
    curves = [line.get_xydata().tolist() for line in drawing.figure.axes[0].lines]
    assert [[2500.0, 50.0]] in curves
    tokens, reward = lines[0].estimates["total_tokens"], lines[0].estimates["reward"]
    assert [[tokens.low, 50.0], [tokens.high, 50.0]] in curves
    assert [[2500.0, reward.low], [2500.0, reward.high]] in curves


@pytest.mark.usefixtures("styled")
def test_curves_run_over_ascending_k_and_mark_partial_points(tmp_path: Path) -> None:
    for k, rewards in ((10, (100.0, 0.0)), (5, (0.0, 0.0)), (30, (100.0, None))):
        make_cell(tmp_path, k=k, rewards=rewards)
    make_cell(tmp_path, selector="without_split", k=30)
    drawing = draw_k_curves(lines_in(tmp_path))
    assert drawing is not None
    whole, hollow = drawing.figure.axes[0].lines
    assert whole.get_xydata().tolist() == [[5, 0], [10, 50], [30, 100]]
    assert hollow.get_xydata().tolist() == [[30, 100]]
    assert "skillreranker" in texts(drawing) and "without_split" not in texts(drawing)


def test_a_method_keeps_its_colour(tmp_path: Path) -> None:
    paper = ("llm_selector", "skillrouter", "graph_of_skills", "skillreranker")
    for selector in (*paper, "skilldag", "skilldag_frozen", "vector"):
        make_cell(tmp_path, selector=selector)
    by_name = {line.selector: line for line in lines_in(tmp_path)}
    assert len({colour_of(by_name[name]) for name in paper}) == 4
    assert colour_of(by_name["skilldag"]) == colour_of(by_name["skilldag_frozen"])
    own = [colour_of(replace(by_name["vector"], selector=name)) for name in ("mine", "mine", "vectors")]
    assert own[0] == own[1] and own[2] != colour_of(by_name["vector"])


def test_text_from_data_is_neither_markup_nor_mathematics(tmp_path: Path) -> None:
    split = 'a$x^2$<b>&"\u202e\x07\u4e00--><script>'
    make_cell(tmp_path, split=split)
    for drawing in draw(lines_in(tmp_path)):
        shown = " ".join(texts(drawing))
        assert "$x^2$<b>&" in shown and "\u202e" not in shown and "\x07" not in shown
        root = ElementTree.fromstring(drawing.svg())
        assert not [element for element in root.iter() if element.tag.endswith(("script", "b"))]
