"""A selection's working as typed data: what a case study shows, whichever method chose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from skillarena.conf.errors import ConfigError, DataError
from skillarena.orchestration.selection_store import selection_to_json
from skillarena.selectors.interface import MARKS, SelectedSkill, Selection

_NO_CHOICE = {
    "none": "it chooses no skill",
    "vanilla": "it gives the whole library to every task",
}
"""Methods whose selections hold no choice, with the reason."""
_RANKED_BY = ("score", "utility", "w", "cosine")
"""Numbers that a method may rank by, the first one known counts; where it says its ranking, that counts instead."""


@dataclass(frozen=True, slots=True)
class Option:
    """A skill that could have been chosen."""

    id: str
    place: int | None
    """Its place among the chosen ones from 1; None when it was not chosen."""
    source: int | None = None
    """State in which it can start; None in a study without states."""
    target: int | None = None
    """State it leads to; None where there is none after ``source``: the skill was dropped."""
    weight: float = 0.0
    """Relevance as 0 to 1, the edge's weight."""
    precondition: str | None = None
    completion: str = ""
    fallback: bool = False
    """It could not be parsed."""


@dataclass(frozen=True, slots=True)
class Column:
    """One number of every option."""

    heading: str
    values: tuple[float | None, ...]
    """In the order of the options; None where it is unknown or infinite."""


@dataclass(frozen=True, slots=True)
class Flows:
    """Relevance at each state (see ``execution_graph.Flow``)."""

    inflow: tuple[float, ...]
    outflow: tuple[float, ...]
    cross: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StageFit:
    """One stage and how well each option fits it."""

    start: int
    end: int
    text: str
    fits: tuple[float | None, ...]
    """phi of each option, at most 0; None where it is minus infinity."""
    winner: str | None
    """Id of its best option; None when none competes."""


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge of a skill graph."""

    source: str
    target: str
    kind: str
    weight: float


@dataclass(frozen=True)
class CaseStudy:
    """Everything a case study shows."""

    goal: str
    method: str
    options: tuple[Option, ...]
    """In the order they are shown: by edge in a study with states, else best first."""
    columns: tuple[Column, ...]
    chosen: tuple[SelectedSkill, ...]
    states: tuple[str, ...] = ()
    subtasks: tuple[str, ...] = ()
    flows: Flows | None = None
    """Of a study whose options are edges between states."""
    splits: tuple[int, ...] = ()
    stages: tuple[StageFit, ...] = ()
    relations: tuple[Relation, ...] = ()
    """Among the options."""
    notes: tuple[str, ...] = ()
    """Further facts, one sentence each."""
    warnings: tuple[str, ...] = ()
    """What was unusual, one sentence each."""


class _Read(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Candidate(BaseModel):
    """A ranked skill; all further numbers are columns."""

    model_config = ConfigDict(extra="allow", frozen=True)

    id: str
    src: int | None = None
    tgt: int | None = None
    keep: bool = True
    precondition: str | None = None
    completion: str = ""
    fallback: bool = False
    chars: int = 0
    seed: int | None = None

    @property
    def numbers(self) -> dict[str, float]:
        further = self.model_extra or {}
        return {k: float(v) for k, v in further.items() if isinstance(v, int | float) and not isinstance(v, bool)}


class _Parse(_Read):
    subtasks: list[str]
    states: list[str] = []
    fallback: bool = False


class _Flow(_Read):
    inflow: list[float]
    outflow: list[float]
    cross: list[float]


class _Stage(_Read):
    start: int
    end: int
    text: str
    phi: list[float | None]
    chosen: str | None


class _Relation(_Read):
    source: str
    target: str
    type: str
    weight: float


class _Template(_Read):
    goal: str
    cosine: float
    steps: list[str]


class _Details(_Read):
    """``Selection.details`` of all methods of this project, and of any other that uses the same words."""

    method: str = ""
    candidates: list[_Candidate] = []
    bundle: list[_Candidate] = []
    ranking: list[str] = []
    chosen: list[str] = []
    parse: _Parse | None = None
    flow: _Flow | None = None
    splits: list[int] = []
    stages: list[_Stage] = []
    relations: list[_Relation] = []
    conflicting: list[str] = []
    template: _Template | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> _Details:
        if self.flow is None:
            return self
        count = len(self.parse.states) if self.parse else 0
        flows = (self.flow.inflow, self.flow.outflow, self.flow.cross)
        edges = [c for c in self.candidates if c.keep]
        bounds = [(stage.start, stage.end) for stage in self.stages]
        if (
            not count
            or any(len(values) != count for values in flows)
            or any(c.src is None or not 0 <= c.src < count for c in self.candidates)
            or any(c.tgt is None or c.src is None or not c.src < c.tgt < count for c in edges)
            or any(not 0 < split < count - 1 for split in self.splits)
            or any(not 0 <= start < end < count for start, end in bounds)
            or any(len(stage.phi) != len(self.candidates) for stage in self.stages)
        ):
            raise ValueError("states, edges, flows and stages do not fit together")
        return self


def case_study(selection: Selection, goal: str, method: str) -> CaseStudy:
    """What there is to show of a selection.

    Args:
        selection: a method's outcome with its ``details``.
        goal: the task's instruction.
        method: the method's label.

    Raises:
        ConfigError: the method made no choice that could be shown.
        DataError: ``details`` does not have the form of any method.
    """
    try:
        details = _Details.model_validate(orjson.loads(selection_to_json(selection))["details"])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"]) or "details"
        raise DataError(
            f"the working of {method} cannot be drawn: {where}: {first['msg']}",
            "it is damaged, or the method words its details differently; `--json` prints them",
        ) from error
    if details.method in _NO_CHOICE:
        raise ConfigError(
            f"{method} has nothing to draw: {_NO_CHOICE[details.method]}",
            "choose a method that ranks skills, for example selector=skillreranker",
        )
    study = _of_edges if details.flow is not None else _of_ranking
    result = study(selection, details, goal, method)
    if not result.options:
        reasons = "; ".join(result.warnings) or "it chose no skill and ranked none"
        raise ConfigError(f"{method} has nothing to draw: {reasons}", "choose another task or method")
    return result


def _of_edges(selection: Selection, details: _Details, goal: str, method: str) -> CaseStudy:
    assert details.parse is not None and details.flow is not None
    candidates = details.candidates
    order = sorted(range(len(candidates)), key=lambda k: _edge_order(candidates[k]))
    places = _places(selection)
    return CaseStudy(
        goal=goal,
        method=method,
        options=tuple(_edge(candidates[k], places) for k in order),
        columns=_columns([candidates[k] for k in order]),
        chosen=selection.skills,
        states=tuple(details.parse.states),
        subtasks=tuple(details.parse.subtasks),
        flows=Flows(*(tuple(values) for values in details.flow.model_dump().values())),
        splits=tuple(details.splits),
        stages=tuple(
            StageFit(stage.start, stage.end, stage.text, tuple(stage.phi[k] for k in order), stage.chosen)
            for stage in details.stages
        ),
        warnings=_warnings(selection),
    )


def _edge_order(candidate: _Candidate) -> tuple[bool, int, int, float, str]:
    weight = candidate.numbers.get("w", 0.0)
    return not candidate.keep, candidate.src or 0, candidate.tgt or 0, -weight, candidate.id


def _edge(candidate: _Candidate, places: dict[str, int]) -> Option:
    return Option(
        candidate.id,
        places.get(candidate.id),
        candidate.src,
        candidate.tgt if candidate.keep else None,
        min(max(candidate.numbers.get("w", 0.0), 0.0), 1.0),
        candidate.precondition,
        candidate.completion,
        candidate.fallback,
    )


def _of_ranking(selection: Selection, details: _Details, goal: str, method: str) -> CaseStudy:
    numbered = details.candidates or details.bundle
    by_id = {candidate.id: candidate for candidate in numbered}
    known = by_id or {skill: _Candidate(id=skill) for skill in details.ranking}
    known = {skill.id: _Candidate(id=skill.id) for skill in selection.skills} | known
    places = _places(selection)
    order = _ranking(list(known.values()), details.ranking, places)
    parse = details.parse
    return CaseStudy(
        goal=goal,
        method=method,
        options=tuple(Option(candidate.id, places.get(candidate.id)) for candidate in order),
        columns=_columns(order),
        chosen=selection.skills,
        states=tuple(parse.states) if parse else (),
        subtasks=tuple(parse.subtasks) if parse else (),
        relations=tuple(
            Relation(edge.source, edge.target, edge.type, edge.weight)
            for edge in details.relations
            if edge.source in known and edge.target in known
        ),
        notes=_notes(details),
        warnings=_warnings(selection),
    )


def _ranking(candidates: Sequence[_Candidate], said: Sequence[str], places: dict[str, int]) -> list[_Candidate]:
    """Candidates best first: as the method says, else by its numbers; what was chosen comes before what was not."""
    spoken = {skill: rank for rank, skill in enumerate(said)}
    key = next((name for name in _RANKED_BY if any(name in c.numbers for c in candidates)), "")

    def order(candidate: _Candidate) -> tuple[float, float, float]:
        place = places.get(candidate.id, len(places) + 1)
        return place, spoken.get(candidate.id, len(said)), -candidate.numbers.get(key, 0.0)

    return sorted(candidates, key=order)


def _columns(candidates: Sequence[_Candidate]) -> tuple[Column, ...]:
    rows = [candidate.numbers for candidate in candidates]
    headings = dict.fromkeys(heading for row in rows for heading in row)
    return tuple(Column(heading, tuple(row.get(heading) for row in rows)) for heading in headings)


def _places(selection: Selection) -> dict[str, int]:
    return {skill.id: place for place, skill in enumerate(selection.skills, start=1)}


def _notes(details: _Details) -> tuple[str, ...]:
    notes = []
    if details.conflicting:
        notes.append(f"Left out, as they conflict with a chosen skill: {', '.join(details.conflicting)}.")
    if details.template:
        notes.append(f"A remembered procedure was given (similarity {details.template.cosine:.3f}).")
        notes.append(f"It solved: {details.template.goal}")
        notes.append("Its steps: " + "; ".join(details.template.steps))
    return tuple(notes)


def _warnings(selection: Selection) -> tuple[str, ...]:
    return tuple(f"{mark}: {MARKS.get(mark, 'a mark of the method')}" for mark in selection.marks)
