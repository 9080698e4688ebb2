"""Numbers that papers printed, with the settings they were made with (``data/published.json``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from skillarena.orchestration.report.archive import ArchivedCell
from skillarena.orchestration.report.lines import Line, Setting

SOLVED_OR_NOTHING = ("alfworld",)
"""Benchmarks that give 100 points for a solved task and none for any other, so reward and success are one number."""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Method(_Data):
    """How a paper ran a method; None where it does not say, or the method has no such thing."""

    selectors: tuple[str, ...]
    """Names of ours that run it."""
    k: int | None = None
    """Candidates from coarse recall."""
    sizes: tuple[int, ...] | None = None
    """Skills given in the runs that the number is the mean of."""
    options: dict[str, Any] = {}
    """Further options by the names of our selector."""
    embedder: str | None = None
    reranker: str | None = None
    parser: str | None = None
    llm: str | None = None
    temperature: float | None = None
    learned: bool = False
    """It had learned from episodes before."""


class PaperSettings(_Data):
    """What holds for all methods of a paper; None where it does not say."""

    max_steps: int | None = None
    temperature: float | None = None
    library_size: int | None = None
    tasks: dict[str, int] = {}
    """By ``BENCHMARK/SPLIT``."""


class PublishedRow(_Data):
    """The numbers of one method in one setting."""

    backbone: str
    """As the paper writes it."""
    method: str
    """As the paper writes it: a key of ``Paper.methods``."""
    benchmark: str
    """Our name."""
    split: str
    """Our name."""
    values: dict[str, float]
    """By the names of ``MEASURES``; success in per cent."""
    printed: dict[str, str] = {}
    """What stands in the paper where that is not the number itself."""
    uncertain: dict[str, str] = {}
    """Reason to doubt a number, by measure."""


class PublishedTable(_Data):
    """One table of a paper."""

    name: str
    rows: tuple[PublishedRow, ...]


class Paper(_Data):
    """One paper."""

    arxiv: str
    title: str
    settings: PaperSettings
    not_said: str
    """Settings that the paper leaves open, in words."""
    methods: dict[str, Method]
    tables: tuple[PublishedTable, ...]


@dataclass(frozen=True, slots=True)
class PublishedNumber:
    """One printed number."""

    value: float
    printed: str
    """As in the paper, where that is not the number itself; else empty."""
    source: str
    """For example ``arXiv 2607.06283v1, table 1``."""
    uncertain: str
    """Why it may be wrong; empty when nothing speaks against it."""
    backbone: str
    """The model that played, as the paper writes it."""
    paper: Paper = field(repr=False)
    method: Method = field(repr=False)


@cache
def papers() -> tuple[Paper, ...]:
    """All papers, the one whose tables ours are laid out like first."""
    text = files("skillarena.orchestration.report").joinpath("data/published.json").read_text("utf-8")
    return _Papers.model_validate_json(text).papers


class _Papers(_Data):
    papers: tuple[Paper, ...]


def published(setting: Setting, models: frozenset[str], selector: str, measure: str) -> tuple[PublishedNumber, ...]:
    """What papers printed for a method in a setting, at most one number a paper.

    Args:
        setting: benchmark and split are looked up here, and the backbone by its label.
        models: further names of the backbone (``backbone_models``).
        selector: our selector's name.
        measure: of ``MEASURES``.
    """
    found: dict[str, PublishedNumber] = {}
    for name in sorted({_plain(setting.backbone), *map(_plain, models)}):
        for number in _index().get((name, setting.benchmark, setting.split, selector, measure), ()):
            found.setdefault(number.paper.arxiv, number)
    order = [paper.arxiv for paper in papers()]
    return tuple(sorted(found.values(), key=lambda number: order.index(number.paper.arxiv)))


def backbone_models(cells: Sequence[ArchivedCell]) -> frozenset[str]:
    """Names of the model behind the backbone, apart from the backbone's own name."""
    return frozenset(str(model) for cell in cells if (model := cell.settings["backbone"].get("model")))


_Key = tuple[str, str, str, str, str]


@cache
def _index() -> dict[_Key, list[PublishedNumber]]:
    index: dict[_Key, list[PublishedNumber]] = {}
    for paper in papers():
        for table in paper.tables:
            for row in table.rows:
                for selector in paper.methods[row.method].selectors:
                    for measure, number in _numbers(paper, table, row):
                        key = (_plain(row.backbone), row.benchmark, row.split, selector, measure)
                        index.setdefault(key, []).append(number)
    return index


def _numbers(paper: Paper, table: PublishedTable, row: PublishedRow) -> Iterator[tuple[str, PublishedNumber]]:
    same = {"reward": "success", "success": "reward"} if row.benchmark in SOLVED_OR_NOTHING else {}
    for measure, value in row.values.items():
        number = PublishedNumber(
            value=value,
            printed=row.printed.get(measure, ""),
            source=f"arXiv {paper.arxiv}, {table.name}",
            uncertain=row.uncertain.get(measure, ""),
            backbone=row.backbone,
            paper=paper,
            method=paper.methods[row.method],
        )
        yield measure, number
        if measure in same:
            yield same[measure], number


def _plain(model: str) -> str:
    """``Qwen/Qwen3.6-27B`` and ``qwen3_6_27b`` are the same model."""
    return re.sub(r"[^a-z0-9]", "", model.rpartition("/")[2].casefold())


def differences(line: Line, number: PublishedNumber) -> tuple[str, ...]:
    """Every setting in which a line differs from the published run, one sentence each.

    Only what the paper says can differ; ``Paper.not_said`` lists what it leaves open. A line of several cells is judged
    by the first: they differ in seed and size only.
    """
    cell, paper, method = line.cells[0], number.paper.settings, number.method
    setting = f"{line.setting.benchmark}/{line.setting.split}"
    temperature = paper.temperature if method.temperature is None else method.temperature
    found = [
        _backbone(cell, number.backbone),
        _differ("Steps in an episode at most", cell.settings["benchmark"].get("max_steps"), paper.max_steps),
        _differ("Tasks", len(line.tasks), paper.tasks.get(setting)),
        _differ("Skills in the library", cell.library_size, paper.library_size),
        _differ("Temperature", cell.settings["backbone"].get("temperature"), temperature),
        *method_differences(line, number),
        *(_model(cell, part, getattr(method, part)) for part in ("embedder", "reranker", "parser", "llm")),
        *_unnamed(cell, method),
    ]
    return tuple(sentence for sentence in found if sentence)


def method_differences(line: Line, number: PublishedNumber) -> tuple[str, ...]:
    """Those of ``differences`` that make it another method: candidates, sizes and options."""
    selector, method = line.cells[0].settings["selector"], number.method
    found = [
        _differ("Candidates from coarse recall (K)", selector.get("k"), method.k),
        _sizes(line, method),
        *(_differ(f"selector.{key}", selector.get(key), value) for key, value in method.options.items()),
    ]
    return tuple(sentence for sentence in found if sentence)


def _differ(what: str, own: Any, theirs: Any) -> str:
    """A sentence, or nothing where the paper says nothing or the same."""
    if theirs is None or own == theirs:
        return ""
    return f"{what}: {_shown(own)} here, {_shown(theirs)} published."


def _shown(value: Any) -> str:
    if value is None:
        return "not known"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def _sizes(line: Line, method: Method) -> str:
    if method.sizes is None or method.sizes == line.sizes:
        return ""
    own = line.cells[0].settings["selector"].get("top_k")
    sizes = " and ".join(map(str, method.sizes))
    return f"Skills for a task: {_shown(own)} here, the mean of runs with {sizes} published."


def _backbone(cell: ArchivedCell, theirs: str) -> str:
    """A backbone with a published name can still be told to ask another model."""
    own = cell.settings["backbone"].get("model")
    return "" if own is None or _plain(str(own)) == _plain(theirs) else f"Model: {own} here, {theirs} published."


def _model(cell: ArchivedCell, part: str, theirs: str | None) -> str:
    """Parts that the cell's selector does not use differ in nothing."""
    if theirs is None or part not in cell.identity:
        return ""
    section = cell.settings[part]
    inner = section.get("model")  # a parser's is a section of its own
    own = str((inner.get("model") if isinstance(inner, dict) else inner) or section.get("name"))
    return "" if _plain(own) == _plain(theirs) else f"{part.capitalize()}: {own} here, {theirs} published."


def _unnamed(cell: ArchivedCell, method: Method) -> Iterator[str]:
    """Choices that papers do not name and that still make a run unlike the usual one."""
    benchmark, backbone = cell.settings["benchmark"], cell.settings["backbone"]
    if benchmark.get("simplifications", "easy") != "easy":
        own = benchmark["simplifications"] or "none"
        yield f"Simplifications: {own} here; the paper names none, and easy is usual for agents."
    if backbone.get("quantization"):
        yield f"Quantization of the backbone: {backbone['quantization']} here; the paper names none."
    if method.learned and not cell.settings["selector"].get("memory"):
        yield "Memory: empty at the start here; the published method had learned from episodes before."
