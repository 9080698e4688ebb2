"""A case study as a picture: a row for each skill, and beside it its edge between states, its scores and its fits.

Skills stand in rows instead of at curved edges, so that thirty of them stay readable and every number of a skill is on
one line with its name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from skillarena.orchestration.report.canvas import Format, Sheet, own_style
from skillarena.orchestration.report.case_layout import (
    FACTS,
    FIT,
    FLOW_HEIGHT,
    MARGIN,
    MOST_ROWS,
    NAME,
    PAD,
    PLACE,
    RELATIONS,
    ROW,
    SMALL,
    TINY,
    TITLE,
    Layout,
    Line,
    height_of,
    label_of,
    paragraph,
    shortened,
)
from skillarena.orchestration.report.case_model import CaseStudy, Column, Option, StageFit
from skillarena.orchestration.report.lettering import MISSING, clean, fit, width

_BLACK, _GREY, _FAINT, _RULE = "#1a1a1a", "#5b6472", "#b8bfca", "#e3e7ed"
_CHOSEN, _SOFT_CHOSEN, _OTHER = "#c2410c", "#fdebdf", "#1d4ed8"
_BANDS = ("#eef4fb", "#f6f3ea")
_FLOWS = (("In", "#1d4ed8"), ("Out", "#0f766e"), ("Cross", "#b45309"))
_KINDS = ("#7c3aed", "#0f766e", "#b45309", "#1d4ed8", "#be185d", "#4d7c0f")
_FLOW_BAR = 0.13


def draw(study: CaseStudy, form: Format) -> bytes:
    """The picture as an SVG or PNG file; the same study gives the same bytes."""
    with own_style():
        return _Picture(study, form).to_bytes()


class _Picture:
    def __init__(self, study: CaseStudy, form: Format) -> None:
        self._study = shortened(study)
        self._layout = layout = Layout(self._study)
        self._head = _head(self._study, len(study.options), layout.text_width)
        self._foot = _foot(self._study, layout.text_width)
        layout.place(self._head, self._foot)
        self._sheet = Sheet(layout.page_width, layout.page_height, form)

    def to_bytes(self) -> bytes:
        layout = self._layout
        if layout.with_states:
            self._draw_bands()
        self._draw_rows()
        for at, column in enumerate(layout.columns):
            self._draw_column(layout.columns_at + at * layout.column_width, column)
        if layout.with_states:
            self._draw_states()
            self._draw_edges()
            self._draw_flow()
        for at, stage in enumerate(self._study.stages):
            self._draw_fits(layout.fits_at + at * FIT, at + 1, stage)
        if self._study.relations:
            self._draw_relations()
        self._write(self._head, MARGIN)
        self._write(self._foot, layout.foot_at)
        if self._sheet.has_missing:
            note = f"{MISSING} stands for a character that the font lacks; an SVG or HTML file has it."
            self._sheet.text(MARGIN, layout.page_height - 0.09, note, SMALL, color=_GREY)
        return self._sheet.to_bytes()

    def _write(self, lines: Sequence[Line], top: float) -> None:
        y = top
        for line in lines:
            y += height_of(1, line.size)
            base = y - 0.3 * line.size / 72
            self._sheet.text(MARGIN, base, line.text, line.size, color=line.color, bold=line.bold)

    # States and stages

    def _draw_bands(self) -> None:
        layout, top = self._layout, self._layout.bands_at
        for at, (stage, lines) in enumerate(zip(self._study.stages, layout.stage_lines, strict=True)):
            left, right = layout.state_x(stage.start), layout.state_x(stage.end)
            self._sheet.box(left, top, right - left, layout.flow_base - top, _BANDS[at % len(_BANDS)])
            for number, line in enumerate(lines, start=1):
                self._sheet.text(left + PAD, top + height_of(number, SMALL), line, SMALL, color=_GREY)

    def _draw_states(self) -> None:
        layout, splits = self._layout, self._study.splits
        xs = [layout.state_x(state) for state in range(len(self._study.states))]
        bounds = {0, len(xs) - 1, *splits}
        for state, (x, lines) in enumerate(zip(xs, layout.state_lines, strict=True)):
            heading = f"S{state} (split)" if state in splits else f"S{state}"
            y = layout.headings_at + height_of(1, SMALL)
            self._sheet.text(x, y, heading, NAME, align="center", bold=state in bounds)
            for number, line in enumerate(lines, start=1):
                self._sheet.text(x, y + height_of(number, SMALL), line, SMALL, color=_GREY, align="center")
        for left, right in pairwise(xs):
            self._sheet.line([(left, layout.axis), (right, layout.axis)], _BLACK, 0.8)
        for state, x in enumerate(xs):
            split = state in splits
            color = _BLACK if split else _FAINT
            below_text = layout.bands_at if split else layout.rows_at
            self._sheet.line([(x, layout.axis), (x, layout.bands_at)], color, 0.9)
            self._sheet.line([(x, below_text), (x, layout.flow_base)], color, 0.9, dashed=split)
            self._sheet.disc(x, layout.axis, 0.055, _BLACK, filled=state in bounds)

    # Rows

    def _draw_rows(self) -> None:
        layout, sheet = self._layout, self._sheet
        sheet.line([(MARGIN, layout.rows_at), (layout.rows_end, layout.rows_at)], _FAINT)
        for row, option in enumerate(self._study.options):
            y, chosen = layout.row_y(row), option.place is not None
            if chosen:
                sheet.box(MARGIN, y - ROW / 2, layout.names + 0.05, ROW, _SOFT_CHOSEN)
                sheet.disc(MARGIN + 0.11, y, 0.09, _CHOSEN)
                sheet.text(MARGIN + 0.11, y + 0.033, str(option.place), TINY, color="white", align="center", bold=True)
            name = fit(label_of(option), layout.names - PLACE - 0.05, NAME, bold=chosen)
            color = _GREY if self._dropped(option) else _BLACK
            sheet.text(MARGIN + PLACE, y + 0.036, name, NAME, color=color, bold=chosen)
            sheet.line([(MARGIN, y + ROW / 2), (layout.rows_end, y + ROW / 2)], _RULE, 0.4)

    def _dropped(self, option: Option) -> bool:
        return self._layout.with_states and option.target is None

    def _draw_edges(self) -> None:
        for row, option in enumerate(self._study.options):
            y, start = self._layout.row_y(row), self._layout.state_x(option.source or 0)
            if option.target is None:
                self._sheet.disc(start, y, 0.035, _GREY, filled=False)
                self._sheet.text(start + PAD, y + 0.033, "dropped", TINY, color=_GREY)
                continue
            color = _OTHER if option.place is None else _CHOSEN
            self._sheet.arrow(
                start,
                self._layout.state_x(option.target),
                y,
                color,
                thickness=(1 + 5 * option.weight) / 72,
                alpha=0.25 + 0.75 * option.weight,
            )

    # Columns

    def _draw_column(self, left: float, column: Column) -> None:
        room, heading_y = self._layout.column_width, self._layout.rows_at - 0.06
        heading = fit(clean(column.heading), room - 0.1, SMALL)
        self._sheet.text(left, heading_y, heading, SMALL, color=_GREY)
        known = [value for value in column.values if value is not None]
        low, high = min(0.0, *known), max(0.0, *known)
        marked = [not self._layout.with_states and option.place is not None for option in self._study.options]
        self._draw_bars(left, room, column.values, lambda value: (value - low) / (high - low or 1.0), marked)

    def _draw_fits(self, left: float, number: int, stage: StageFit) -> None:
        y = self._layout.rows_at - 0.06
        self._sheet.text(left, y - height_of(1, SMALL), f"stage {number}", SMALL, bold=True)
        self._sheet.text(left, y, f"S{stage.start}\u2192S{stage.end} phi", SMALL, color=_GREY)
        marked = [option.id == stage.winner for option in self._study.options]
        for row in (row for row, won in enumerate(marked) if won):
            self._sheet.box(left - 0.04, self._layout.row_y(row) - ROW / 2, FIT - 0.02, ROW, _SOFT_CHOSEN)
        self._draw_bars(left, FIT, stage.fits, math.exp, marked)

    def _draw_bars(
        self,
        left: float,
        room: float,
        values: Sequence[float | None],
        share: Callable[[float], float],
        marked: Sequence[bool],
    ) -> None:
        """A number in every row and a bar that is ``share`` of it long, 1 being the longest."""
        for row, (option, value) in enumerate(zip(self._study.options, values, strict=True)):
            if value is None:
                continue
            y = self._layout.row_y(row)
            color = _CHOSEN if marked[row] else _FAINT if self._dropped(option) else _OTHER
            length = max((room - 0.55) * share(value), 0.01)
            self._sheet.box(left, y - 0.05, length, 0.1, color, 1.0 if marked[row] else 0.65)
            right = left + room - 0.12
            self._sheet.text(right, y + 0.033, _short(value), TINY, color=_GREY, align="right", bold=marked[row])

    # Flow

    def _draw_flow(self) -> None:
        flows, layout, sheet = self._study.flows, self._layout, self._sheet
        assert flows is not None
        columns = (flows.inflow, flows.outflow, flows.cross)
        most = max(map(max, columns)) or 1.0
        label = layout.states_at - 0.05
        sheet.text(label, layout.flow_at + 0.2, "flow at each state", SMALL, color=_GREY, align="right")
        sheet.line([(layout.states_at, layout.flow_base), (layout.fits_at - 0.15, layout.flow_base)], _FAINT)
        for at, ((heading, color), values) in enumerate(zip(_FLOWS, columns, strict=True)):
            y = layout.flow_base + height_of(at + 1, SMALL) + 0.03
            sheet.box(label - width(heading, SMALL) - 0.14, y - 0.075, 0.08, 0.08, color)
            sheet.text(label, y, heading, SMALL, color=_GREY, align="right")
            for state, value in enumerate(values):
                x = layout.state_x(state)
                tall = (FLOW_HEIGHT - 0.1) * value / most
                sheet.box(x + (at - 1.5) * _FLOW_BAR, layout.flow_base - tall, _FLOW_BAR - 0.02, tall, color)
                sheet.text(x, y, f"{value:.2f}", SMALL, color=_GREY, align="center")

    # Edges of a skill graph

    def _draw_relations(self) -> None:
        relations, layout, sheet = self._study.relations, self._layout, self._sheet
        names = sorted({edge.kind for edge in relations})
        kinds = {kind: _KINDS[at % len(_KINDS)] for at, kind in enumerate(names)}
        rows = {option.id: row for row, option in enumerate(self._study.options)}
        left = layout.rows_end + PAD
        most = max(edge.weight for edge in relations) or 1.0
        for at, (kind, color) in enumerate(kinds.items()):
            y = layout.rows_at - 0.06 - height_of(len(kinds) - 1 - at, SMALL)
            sheet.line([(left, y - 0.03), (left + 0.18, y - 0.03)], color, 1.5)
            sheet.text(left + 0.24, y, fit(clean(kind), RELATIONS - 0.3, SMALL), SMALL, color=_GREY)
        for edge in relations:
            source, target = rows[edge.source], rows[edge.target]
            bulge = 0.2 + (RELATIONS - 0.4) * abs(target - source) / max(len(rows), 2)
            y = layout.row_y(target) + (0.03 if source > target else -0.03)
            start, thickness = (left, layout.row_y(source)), 0.6 + 1.2 * edge.weight / most
            sheet.curve(start, (left + 0.06, y), bulge, kinds[edge.kind], thickness)
            sheet.polygon([(left, y), (left + 0.07, y - 0.03), (left + 0.07, y + 0.03)], kinds[edge.kind])


def _head(study: CaseStudy, total: int, room: float) -> list[Line]:
    shown = len(study.options)
    skills = _counted(total, "skill")
    facts = [study.method, skills if shown == total else f"{shown} of {skills}"]
    if study.flows is not None:
        splits = ", ".join(f"S{at}" for at in study.splits)
        facts.append(_counted(len(study.stages), "stage"))
        facts.append(f"split at {splits}" if splits else "no split point")
    facts.append(f"{len(study.chosen)} chosen")
    lines = paragraph(study.goal, room, TITLE, _BLACK, lines=3, bold=True)
    lines += paragraph(" \u00b7 ".join(facts), room, FACTS, _GREY, lines=1)
    for warning in study.warnings:
        lines += paragraph(warning, room, FACTS, _CHOSEN, lines=2)
    return lines


def _foot(study: CaseStudy, room: float) -> list[Line]:
    lines = []
    for place, skill in enumerate(study.chosen[:MOST_ROWS], start=1):
        lines += paragraph(f"{place} {skill.id}: {skill.reason}", room, SMALL, _BLACK, lines=2)
    for note in (*study.notes, *_legend(study)):
        lines += paragraph(note, room, SMALL, _GREY, lines=6)
    return lines


def _legend(study: CaseStudy) -> list[str]:
    legend = []
    if study.flows is not None:
        legend.append(
            "Arrows lead from the state a skill starts in to the state it leads to; the wider and darker, the more"
            " relevant the skill is to the task (w)."
        )
        legend.append(
            "A state is a split point where both In and Out exceed Cross."
            if _by_flow(study)
            else "The split points of this method do not follow from the flow."
        )
        if any(option.target is None for option in study.options):
            legend.append("A skill is dropped that could start in the last state only, after which none follows.")
    elif len(study.states) > 1:
        states = "; ".join(f"S{at} {state}" for at, state in enumerate(study.states))
        legend.append(f"States of the parsed task, between which this method draws no edges: {states}")
    columns = [] if study.flows is not None else study.columns
    if any(value is not None and value < 0 for column in columns for value in column.values):
        legend.append("Where a column has negative numbers, its bars begin at the lowest.")
    if study.stages:
        legend.append("Bars below a stage: how well a skill fits the task and the stage, e to the power of phi.")
    if any(option.fallback for option in study.options):
        legend.append("* could not be parsed.")
    return legend


def _by_flow(study: CaseStudy) -> bool:
    """The split points are those of SkillReranker."""
    flows = study.flows
    assert flows is not None
    inner = range(1, len(study.states) - 1)
    return list(study.splits) == [i for i in inner if min(flows.inflow[i], flows.outflow[i]) > flows.cross[i]]


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _short(value: float) -> str:
    size = abs(value)
    return f"{value:.2g}" if size >= 1000 else f"{value:.2f}" if size >= 0.1 else f"{value:.3f}"
