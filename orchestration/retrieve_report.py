"""What `skillarena retrieve-eval` found, as plain data and as tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import accumulate
from statistics import fmean
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.console import plain
from skillarena.orchestration.summary import Estimate, bootstrap_mean
from skillarena.selectors.interface import MARKS
from skillarena.selectors.retrieval.dataset import Dataset, Role
from skillarena.selectors.retrieval.metrics import METRICS
from skillarena.selectors.retrieval.predictions import Prediction
from skillarena.selectors.retrieval.scoring import EVERY, Exam, Scores, score

_SHOWN = tuple(name for name in METRICS if not name.startswith(("Hit", "Precision")))
_BY_GROUP = ("Hit@1", "nDCG@10")
_COST = {
    "s/query": ("seconds", ".3f"),
    "pairs\nscored": ("pairs_scored", ".1f"),
    "pairs\ncached": ("pairs_cached", ".1f"),
    "LLM\ntokens": ("tokens", ",.0f"),
}
_IF_ANY = ("tokens",)
"""Costs that have a column only where there are any."""
_NEEDED_ONLY = "(needed only)"
_AROUND = 2
"""Characters between two columns of a table."""
_DEEPEST = max(int(name.rpartition("@")[2]) for name in METRICS)
_MOST_LISTED = 3


@dataclass(frozen=True)
class Method:
    """One row: a method, what it answered and what that is worth."""

    label: str
    scores: Scores
    estimates: Mapping[str, Mapping[str, Estimate]]
    """0 to 1, by stratum and metric."""
    predictions: Sequence[Prediction]
    made_of: Mapping[str, Any] = field(default_factory=dict)
    """Configuration and model identities; empty where they are not known."""

    @classmethod
    def of(
        cls,
        label: str,
        predictions: Sequence[Prediction],
        dataset: Dataset,
        exam: Exam,
        resamples: int,
        made_of: Mapping[str, Any] | None = None,
    ) -> Method:
        """Score what a method answered; ``resamples`` are those of the bootstrap intervals."""
        rankings = {prediction.query: prediction.ranking for prediction in predictions}
        scores = score(exam, {query.id for query in dataset.queries}, rankings, dataset.library.by_id)
        estimates = {
            stratum: {name: bootstrap_mean(column, resamples) for name, column in columns.items()}
            for stratum, columns in scores.values.items()
        }
        return cls(label, scores, estimates, predictions, made_of or {})

    @property
    def chose_only(self) -> bool:
        """Some of its rankings are what it chose, and nothing beyond."""
        return any(prediction.chosen for prediction in self.predictions)

    @property
    def marks(self) -> dict[str, int]:
        """How many selections were unusual, by mark."""
        return dict(sorted(Counter(mark for item in self.predictions for mark in item.marks).items()))

    def mean(self, cost: str) -> float | None:
        """Mean of one of ``_COST`` over the queries that know it."""
        known = [value for prediction in self.predictions if (value := getattr(prediction, cost)) is not None]
        return fmean(known) if known else None


@dataclass(frozen=True)
class Report:
    """All methods on one data set."""

    dataset: Dataset
    mode: str
    exam: Exam
    methods: Sequence[Method]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "dataset": {
                "name": self.dataset.name,
                "queries": len(self.dataset.queries),
                "scored": len(self.exam.queries),
                "left_out": dict(self.exam.left_out),
                "skills": len(self.dataset.library),
                "library": self.dataset.library.fingerprint,
                "judged_but_absent": self.dataset.absent(),
            },
            "mode": self.mode,
            "strata": self.exam.strata(),
            "needed_only": {
                stratum: {name: fmean(column) for name, column in columns.items()}
                for stratum, columns in self._needed_only.values.items()
            },
            "methods": {
                method.label: {
                    **method.made_of,
                    "depth": method.scores.depth,
                    "missing": method.scores.missing,
                    "repeats": method.scores.repeats,
                    "strange_skills": method.scores.strange_skills,
                    "strange_queries": method.scores.strange_queries,
                    **{cost: method.mean(cost) for cost, _ in _COST.values()},
                    "marks": method.marks,
                    "metrics": {
                        stratum: {name: asdict(estimate) for name, estimate in estimates.items()}
                        for stratum, estimates in method.estimates.items()
                    },
                }
                for method in self.methods
            },
            "notes": list(self.notes()),
        }

    def tables(self, width: int) -> list[Table]:
        """A row for each method and one for ``Exam.needed_only``, over all queries and then by group.

        What is wider than ``width`` characters goes on below.
        """
        count = len(self.exam.queries)
        title = f"{self.dataset.name}: {count} queries, {len(self.dataset.library):,} skills, mode {self.mode}; percent"
        labels = [*(method.label for method in self.methods), _NEEDED_ONLY]
        tables = [*_tables(title, labels, {**self._quality(), **self._cost()}, width)]
        groups = [stratum for stratum in self.exam.strata() if stratum != EVERY]
        if len(groups) > 1:
            tables += _tables("By group of queries", labels, self._by_group(groups), width)
        return tables

    def _quality(self) -> dict[str, list[str]]:
        columns = {name: self._column(EVERY, name) for name in _SHOWN}
        intervals = [_interval(method.estimates[EVERY]["Hit@1"]) for method in self.methods]
        return {"Hit@1": self._column(EVERY, "Hit@1"), "95 %": [*intervals, ""], **columns}

    def _cost(self) -> dict[str, list[str]]:
        return {
            "depth": [*(str(method.scores.depth) for method in self.methods), ""],
            **{
                heading: [*(_number(method.mean(cost), form) for method in self.methods), ""]
                for heading, (cost, form) in _COST.items()
                if cost not in _IF_ANY or any(method.mean(cost) for method in self.methods)
            },
        }

    def _by_group(self, groups: Sequence[str]) -> dict[str, list[str]]:
        sizes = self.exam.strata()
        return {
            f"{group}\n({sizes[group]})\n{name}": self._column(group, name) for group in groups for name in _BY_GROUP
        }

    def _column(self, stratum: str, metric: str) -> list[str]:
        means = [method.estimates[stratum][metric].mean for method in self.methods]
        return [_percent(mean) for mean in (*means, fmean(self._needed_only.values[stratum][metric]))]

    def notes(self) -> Iterator[str]:
        """What a reader must know to read the numbers, one sentence each."""
        yield f"One query is {100 / len(self.exam.queries):.2f} points."
        yield f"{_NEEDED_ONLY}: a ranking of just what is needed, the most that choosing it can reach."
        if any(value < 1 for value in self._needed_only.values[EVERY]["nDCG@10"]):
            yield "Skills that are not needed gain too, so that its nDCG is below 100 and other rankings may exceed it."
        yield from (f"Queries {note}." for note in self.dataset.notes)
        total = len(self.dataset.queries)
        yield from (f"Left out, as {reason}: {n} of {total} queries." for reason, n in self.exam.left_out.items())
        if refused := [item for item in self.dataset.library.rejections if not item.repeat]:
            yield f"Skill documents that cannot be used: {len(refused)}; {refused[0].source}: {refused[0].reason}."
        yield from self._absent()
        if chose_only := [method.label for method in self.methods if method.chose_only]:
            yield f"Scored on the skills that they choose, as they rank nothing beyond: {', '.join(chose_only)}."
        if any(method.scores.depth < _DEEPEST for method in self.methods):
            yield "Beyond the depth of a method's rankings (column depth) its recall and coverage cannot rise."
        if any(method.mean("pairs_cached") for method in self.methods):
            yield "Cached pairs took no time: compare seconds on equal caches only."
        for method in self.methods:
            yield from _faults(method)

    def _absent(self) -> Iterator[str]:
        absent = self.dataset.absent()
        skills = sorted({skill for missing in absent.values() for skill in missing})
        if skills:
            some = f"{', '.join(skills[:_MOST_LISTED])}{', …' if len(skills) > _MOST_LISTED else ''}"
            yield f"Judged skills that are not in the pool and count for nothing: {len(skills)} ({some})."
        scored = {item.query for item in self.exam.queries}
        needy = [
            query.id
            for query in self.dataset.queries
            if query.id in scored
            and any(
                item.role is not Role.RELATED and item.skill in absent.get(query.id, ()) for item in query.judgements
            )
        ]
        if needy:
            yield f"Queries scored on a part of what they need, the rest not being in the pool: {len(needy)}."

    @cached_property
    def _needed_only(self) -> Scores:
        queries = {query.id for query in self.dataset.queries}
        return score(self.exam, queries, self.exam.needed_only(), self.dataset.library.by_id)


def _faults(method: Method) -> Iterator[str]:
    scores = method.scores
    yield from (f"{method.label}: {MARKS.get(mark, mark)}: {n} queries ({mark})." for mark, n in method.marks.items())
    counts = {
        "queries without a ranking, which count as 0": scores.missing,
        "places taken away, as they repeat a skill": scores.repeats,
        "places of skills that are not in the pool, which count as wrong": scores.strange_skills,
        "rankings of queries that are not in the set, which count for nothing": scores.strange_queries,
    }
    yield from (f"{method.label}: {what}: {n}." for what, n in counts.items() if n)


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return ""
    return f"{_percent(estimate.low)}-{_percent(estimate.high)}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _tables(title: str, labels: Sequence[str], columns: Mapping[str, Sequence[str]], width: int) -> Iterator[Table]:
    """Tables of as many columns each as fit beside the labels."""
    left = {heading.replace("FullCoverage", "Cover").replace("@", "\n@"): cells for heading, cells in columns.items()}
    room = width - _width(["selector", *labels])
    while left:
        ends = accumulate(_width([*heading.split("\n"), *cells]) for heading, cells in left.items())
        fitting = max(1, sum(end <= room for end in ends))
        headings = list(left)[:fitting]
        yield _table(title, labels, {heading: left.pop(heading) for heading in headings})
        title = "(continued)"


def _width(texts: Sequence[str]) -> int:
    """Characters of a column, the space around it included."""
    return max(map(len, texts)) + _AROUND


def _table(title: str, labels: Sequence[str], columns: Mapping[str, Sequence[str]]) -> Table:
    table = Table(
        title=_text(title), title_style="bold", title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    table.add_column("selector", overflow="fold")
    for heading in columns:
        table.add_column(heading, justify="right", overflow="fold")
    for label, *cells in zip(labels, *columns.values(), strict=True):
        table.add_row(_text(label), *cells)
    return table


def _text(content: str) -> Text:
    return Text(plain(content))
