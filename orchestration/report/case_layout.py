"""Where everything of a case study's picture stands, in inches from its upper left corner."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from skillarena.orchestration.report.case_model import CaseStudy, Column, Option
from skillarena.orchestration.report.lettering import clean, width, wrap

MOST_ROWS = 40
"""Skills that a picture shows; the chosen ones and the most relevant others."""

NAME, SMALL, TINY, TITLE, FACTS = 7.5, 7.0, 6.5, 11.0, 8.0
"""Sizes of text in points."""
MARGIN, ROW = 0.25, 0.235
PLACE = 0.26
"""Room of the number before a chosen skill."""
FIT = 0.85
"""Width of a stage's column."""
RELATIONS = 1.6
"""Room for the edges of a skill graph."""
FLOW_HEIGHT = 0.75
"""Of the bars alone."""
PAD = 0.08

_LEADING = 1.35  # line height in font sizes
_LONGEST_NAME = 3.0
_NUMBER, _WIDEST_NUMBER = 0.95, 1.9
_NARROWEST = 7.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of running text."""

    text: str
    size: float
    color: str
    bold: bool = False


def height_of(lines: int, size: float) -> float:
    """Inches that lines of text take."""
    return lines * size * _LEADING / 72


def paragraph(text: str, room: float, size: float, color: str, *, lines: int, bold: bool = False) -> list[Line]:
    """Running text in at most so many lines."""
    return [Line(line, size, color, bold) for line in wrap(clean(text), room, size, lines=lines, bold=bold)]


def label_of(option: Option) -> str:
    """How a skill is named in the picture."""
    return clean(option.id) + ("*" if option.fallback else "")


def shortened(study: CaseStudy) -> CaseStudy:
    """The study with no more than ``MOST_ROWS`` options: the chosen ones, then the most relevant."""
    if len(study.options) <= MOST_ROWS:
        return study

    def worth(at: int) -> tuple[bool, float, int]:
        option = study.options[at]
        return option.place is None, -option.weight, at  # without weights the best come first already

    kept = sorted(sorted(range(len(study.options)), key=worth)[:MOST_ROWS])
    ids = {study.options[at].id for at in kept}
    return replace(
        study,
        options=tuple(study.options[at] for at in kept),
        columns=tuple(Column(c.heading, tuple(c.values[at] for at in kept)) for c in study.columns),
        stages=tuple(replace(stage, fits=tuple(stage.fits[at] for at in kept)) for stage in study.stages),
        relations=tuple(edge for edge in study.relations if {edge.source, edge.target} <= ids),
    )


class Layout:
    """Places of a study with at least one option. First widths, which decide where text breaks, then heights."""

    def __init__(self, study: CaseStudy) -> None:
        self.study = study
        self.with_states = study.flows is not None
        # In a study with states only the weight, which its edges are made of.
        self.columns = tuple(c for c in study.columns if not self.with_states or c.heading == "w")

    @cached_property
    def names(self) -> float:
        """Width of the skills' names and places."""
        widest = max(width(label_of(option), NAME, bold=option.place is not None) for option in self.study.options)
        return PLACE + min(widest, _LONGEST_NAME) + 0.1

    @cached_property
    def columns_at(self) -> float:
        """Left end of the columns of numbers."""
        return MARGIN + self.names + 0.1

    @cached_property
    def column_width(self) -> float:
        """Of a column of numbers; where nothing else is beside the names they take the room there is."""
        if self.with_states or not self.columns:
            return _NUMBER
        taken = self.columns_at + MARGIN + (RELATIONS if self.study.relations else 0.0)
        return min(max((_NARROWEST - taken) / len(self.columns), _NUMBER), _WIDEST_NUMBER)

    @cached_property
    def states_at(self) -> float:
        """Left end of the states."""
        return self.columns_at + self.column_width * len(self.columns)

    @cached_property
    def state_width(self) -> float:
        """Room of a state's text."""
        count = len(self.study.states)
        return 2.1 if count <= 4 else 1.6 if count <= 7 else 1.3

    @cached_property
    def fits_at(self) -> float:
        """Left end of the stages' columns."""
        return self.states_at + (self.state_width * len(self.study.states) + 0.15 if self.with_states else 0.0)

    @cached_property
    def rows_end(self) -> float:
        """Right end of the rows, and left end of a graph's edges."""
        return self.fits_at + FIT * len(self.study.stages)

    @cached_property
    def page_width(self) -> float:
        """Of the whole picture."""
        return max(self.rows_end + (RELATIONS if self.study.relations else 0.0) + MARGIN, _NARROWEST)

    @property
    def text_width(self) -> float:
        """Room of running text."""
        return self.page_width - 2 * MARGIN

    def state_x(self, state: int) -> float:
        """Where a state stands."""
        return self.states_at + (state + 0.5) * self.state_width

    @cached_property
    def state_lines(self) -> list[list[str]]:
        """Texts of the states."""
        return [wrap(clean(state), self.state_width - 2 * PAD, SMALL, lines=6) for state in self.study.states]

    @cached_property
    def stage_lines(self) -> list[list[str]]:
        """Texts of the stages."""
        texts = []
        for number, stage in enumerate(self.study.stages, start=1):
            room = self.state_width * (stage.end - stage.start) - 2 * PAD
            texts.append(wrap(clean(f"stage {number}: {stage.text}"), room, SMALL, lines=4))
        return texts

    def place(self, head: Sequence[Line], foot: Sequence[Line]) -> None:
        """Set the heights, now that the running text is known."""
        self.headings_at = MARGIN + sum(height_of(1, line.size) for line in head) + 0.12
        states = height_of(1 + max(map(len, self.state_lines), default=0), SMALL)
        self.axis = self.headings_at + states + 0.12  # of the states
        self.bands_at = self.axis + 0.12  # top of the stages' bands
        if self.with_states:
            headings_end = self.bands_at + height_of(max(map(len, self.stage_lines), default=0), SMALL) + PAD
        else:
            kinds = len({edge.kind for edge in self.study.relations})
            headings_end = self.headings_at + height_of(max(1, kinds), SMALL) + PAD
        self.rows_at = headings_end + PAD
        self.flow_at = self.rows_at + ROW * len(self.study.options) + 0.1
        self.flow_base = self.flow_at + FLOW_HEIGHT
        self.foot_at = (self.flow_base + height_of(3, SMALL) + 0.1 if self.with_states else self.flow_at) + 0.1
        self.page_height = self.foot_at + sum(height_of(1, line.size) for line in foot) + MARGIN

    def row_y(self, row: int) -> float:
        """Middle of a row."""
        return self.rows_at + (row + 0.5) * ROW
