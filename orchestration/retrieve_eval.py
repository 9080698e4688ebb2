"""`skillarena retrieve-eval`: selectors as search engines, without an agent."""

from __future__ import annotations

import hashlib
import itertools
import logging
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import orjson
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from skillarena.conf.errors import ConfigError, DataError, nearest
from skillarena.envs.interface import Task
from skillarena.orchestration.assembly import AssembledParts, build_selector, check_options, load_library
from skillarena.orchestration.cells import MODELS, cache_folder, indexing_of, needs_of, sections
from skillarena.orchestration.console import EXIT_OK, console_for_results, logging_to, plain, plain_json
from skillarena.orchestration.hydra_run import compose, explained
from skillarena.orchestration.retrieve_report import Method, Report
from skillarena.orchestration.settings import Settings, digest, label
from skillarena.selectors.interface import Selection, Selector
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import LearningSelector
from skillarena.selectors.measure import measured, offline
from skillarena.selectors.options import check_choice
from skillarena.selectors.retrieval.bundled_set import bundled_set
from skillarena.selectors.retrieval.dataset import Dataset, Query, find_pool, read_queries
from skillarena.selectors.retrieval.download import REPOSITORY, fetch
from skillarena.selectors.retrieval.predictions import Prediction, read_predictions, write_predictions
from skillarena.selectors.retrieval.scoring import MODES, Exam, Mode

log = logging.getLogger(__name__)

PREDICTIONS, SCORES = "predictions.jsonl", "scores.json"
"""Files of an output folder."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which data set: a folder, a download, or the bundled one when neither is given."""

    data: Path | None = None
    tier: str | None = None
    """Name of the folder's pool; None: its only one, or the configured library where it has none."""
    download: str | None = None
    """Tier to fetch from the hub."""
    revision: str | None = None

    def __post_init__(self) -> None:
        if self.data is not None and self.download is not None:
            raise ConfigError("--data and --download name two data sets", "give one of them")
        if self.tier is not None and self.data is None:
            raise ConfigError(
                "--tier chooses a pool of a data folder", "give --data FOLDER too, or --download TIER alone"
            )
        if self.revision is not None and self.download is None:
            raise ConfigError("--revision is of a download", "give --download TIER too")

    def dataset(self, settings: Settings, *, library_chosen: bool) -> Dataset:
        """Read it.

        Args:
            settings: where the library comes from, for data without a pool.
            library_chosen: the user asked for a library, which data with a pool cannot use.

        Raises:
            SkillArenaError: typed by what is wrong.
        """
        if self.download is not None:
            folder = fetch(self.download, self.revision)
            name = f"{REPOSITORY}@{folder.name[:8]}"
        elif self.data is not None:
            folder = self.data
            name = folder.resolve().name
        else:
            return bundled_set(load_library(settings.library))
        queries = read_queries(folder)
        pool = find_pool(folder, self.download or self.tier)
        if pool is None:
            return Dataset(name, queries, load_library(settings.library))
        if library_chosen:
            raise ConfigError(
                f"{folder} has a skill pool of its own, so library= would do nothing", "leave library= out"
            )
        return Dataset(f"{name} {pool.name}", queries, SkillLibrary.load(pool.files))


@dataclass(frozen=True, slots=True)
class Variant:
    """One row of the table before it is computed."""

    label: str
    settings: Settings


def retrieve_eval(
    overrides: Sequence[str],
    source: Source,
    *,
    mode: str = "core",
    predictions: Path | None = None,
    out: Path | None = None,
    config_dir: Path | None = None,
    as_json: bool = False,
) -> int:
    """Let selectors rank skills for queries, compare with what is needed, and print a table; returns the exit code.

    Args:
        overrides: Hydra overrides, as for ``run``; lists of values give a row for each.
        source: the data set.
        mode: which skills count as needed (``scoring.MODES``).
        predictions: a file of rankings to score instead; no selector is run.
        out: folder to write predictions and scores to.
        config_dir: folder of further configuration files.
        as_json: print the scores as JSON instead.

    Raises:
        SkillArenaError: typed by what is wrong.
    """
    check_choice("mode", mode, MODES)
    console = Console(stderr=True, highlight=False)
    variants, library_chosen = _variants(overrides, config_dir)
    settings = variants[0].settings
    if out is not None:
        _make(out)
    with logging_to(console):
        dataset = source.dataset(settings, library_chosen=library_chosen)
        exam = Exam.of(dataset.queries, cast("Mode", mode), dataset.library.by_id)
        _check_exam(exam, dataset)
        resamples = settings.run.bootstrap_resamples
        if predictions is not None:
            answers = read_predictions(predictions)
            _check_known(answers, dataset, predictions)
            made_of: Mapping[str, Mapping[str, Any]] = {}
        else:
            answers, made_of = _run(variants, dataset, exam, console)
        methods = [
            Method.of(name, answered, dataset, exam, resamples, made_of.get(name)) for name, answered in answers.items()
        ]
    report = Report(dataset, mode, exam, methods)
    if out is not None:
        _write(out, report, [] if predictions is not None else [item for items in answers.values() for item in items])
    if as_json:
        sys.stdout.write(plain_json(_json(report)) + "\n")
    else:
        _print(report, out)
    return EXIT_OK


def _variants(overrides: Sequence[str], config_dir: Path | None) -> tuple[list[Variant], bool]:
    """A variant for each combination of swept values, and whether the user chose a library."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise explained(error) from error
    axes: list[list[tuple[str, str]]] = []
    for override in parsed:
        key = override.get_key_element()
        if override.is_sweep_override():
            name = key.removeprefix("selector.")
            values = list(dict.fromkeys(override.sweep_string_iterator()))
            axes.append([(f"{key}={value}", "" if key == "selector" else f" {name}={value}") for value in values])
        else:
            axes.append([(str(override.input_line), "")])
    variants: dict[str, Variant] = {}
    for combination in itertools.product(*axes):
        settings = compose([text for text, _ in combination], config_dir)
        name = label(settings.selector) + "".join(suffix for _, suffix in combination)
        if name in variants:
            raise ConfigError(f"two rows would be called {name!r}", "give each selector file a `name` of its own")
        variants[name] = Variant(name, settings)
    found = list(variants.values())
    if any(variant.settings.library != found[0].settings.library for variant in found):
        raise ConfigError("rows of one table must search the same library", "run the command once for each library")
    return found, any(override.get_key_element().split(".")[0] == "library" for override in parsed)


@dataclass(frozen=True, slots=True)
class _Row:
    """A variant ready to run: no model is loaded yet."""

    variant: Variant
    parts: AssembledParts
    selector: Selector
    identities: Mapping[str, str]
    """Of the models that it reads, by part."""

    @classmethod
    def prepare(cls, variant: Variant, library: SkillLibrary, shared: dict[str, AssembledParts]) -> _Row:
        """Build a selector and check what it needs; rows with the same models get the same ones out of ``shared``."""
        settings = variant.settings
        for part in MODELS:
            check_options(getattr(settings, part), part)
        key = digest([{part: getattr(settings, part) for part in MODELS}, settings.cache_dir])
        if key not in shared:
            shared[key] = AssembledParts(sections(settings), library, cache_folder(settings))
        parts = shared[key]
        selector = build_selector(settings.selector, parts)
        identities = {}
        for part in needs_of(selector):
            model = getattr(parts, part)
            if hasattr(model, "check"):
                model.check()
            identities[part] = str(model.identity)
        return cls(variant, parts, selector, identities)

    def answer(self, queries: Iterable[Query]) -> list[Prediction]:
        """What it ranks for each query."""
        selector = self.selector
        if isinstance(selector, LearningSelector):
            with offline():
                selector = selector.with_memory(selector.initial_memory())
        return [
            _prediction(self.variant.label, query, measured(selector, self.parts, _task(query))) for query in queries
        ]


def _run(
    variants: Sequence[Variant], dataset: Dataset, exam: Exam, console: Console
) -> tuple[dict[str, list[Prediction]], dict[str, dict[str, Any]]]:
    """What every variant answers to the queries that are scored, and what it is made of, both by label."""
    scored = {item.query for item in exam.queries}
    queries = [query for query in dataset.queries if query.id in scored]
    shared: dict[str, AssembledParts] = {}
    rows = [_Row.prepare(variant, dataset.library, shared) for variant in variants]
    answers: dict[str, list[Prediction]] = {}
    made_of: dict[str, dict[str, Any]] = {}
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        while rows:
            row = rows.pop(0)  # so that the index of one method is free again when the next one makes its own
            name, settings = row.variant.label, row.variant.settings
            _announce_indexing(name, row.selector)
            answers[name] = row.answer(_tracked(queries, name, bar, settings.run.progress_every_s))
            made_of[name] = {"selector": settings.selector, "models": dict(row.identities)}
    return answers, made_of


def _tracked(queries: Sequence[Query], name: str, bar: Progress, every_s: float) -> Iterator[Query]:
    """The queries with progress: a bar on a terminal, a line now and then elsewhere."""
    task = bar.add_task(escape(plain(name)), total=len(queries))
    told = time.monotonic()
    for done, query in enumerate(queries):
        if bar.disable and time.monotonic() - told >= every_s:
            told = time.monotonic()
            log.info("%s: %d of %d queries", name, done, len(queries))
        yield query
        bar.advance(task)


def _announce_indexing(name: str, selector: Selector) -> None:
    work = indexing_of(selector)
    if work is not None:
        calls, tokens = format(work.calls, ","), format(work.prompt_tokens, ",")
        log.info("%s: indexing takes up to %s LLM calls with about %s prompt tokens, once", name, calls, tokens)


def _task(query: Query) -> Task:
    identity = hashlib.sha256(query.text.encode()).hexdigest()
    return Task(query.benchmark, "retrieval", identity, query.id, query.task_type, query.text)


def _prediction(name: str, query: Query, selection: Selection) -> Prediction:
    """A selection as a ranking: the method's own where it gives one, else what it chose, in order."""
    chosen = [skill.id for skill in selection.skills]
    ranking = selection.details.get("ranking")
    if ranking is not None and not (isinstance(ranking, list) and all(isinstance(skill, str) for skill in ranking)):
        raise ConfigError(
            f"{name}: details['ranking'] of a selection is no list of skill ids",
            "give ids, best first, or leave it out",
        )
    cost = selection.cost
    return Prediction(
        selector=name,
        query=query.id,
        ranking=chosen if ranking is None else ranking,
        chosen=ranking is None,
        marks=list(selection.marks),
        seconds=cost.seconds,
        pairs_scored=cost.pairs_scored,
        pairs_cached=cost.pairs_cached,
        tokens=cost.prompt_tokens + cost.completion_tokens,
    )


def _check_exam(exam: Exam, dataset: Dataset) -> None:
    if not exam.queries:
        reasons = "; ".join(f"{count} queries: {reason}" for reason, count in exam.left_out.items())
        raise DataError(
            f"no query of {dataset.name} can be scored with {len(dataset.library):,} skills ({reasons})",
            "choose the pool or library that the judgements are for, or another --mode",
        )


def _check_known(answers: Mapping[str, Sequence[Prediction]], dataset: Dataset, path: Path) -> None:
    known = [query.id for query in dataset.queries]
    asked = [prediction.query for predictions in answers.values() for prediction in predictions]
    if not set(asked) & set(known):
        raise DataError(
            f"{path} answers no query of {dataset.name}; its first is {asked[0]!r}{nearest(asked[0], known)}",
            "name the data set that it is for with --data or --download",
        )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--out {folder} cannot be made: {error.strerror}", "name a folder to write to") from error


def _write(folder: Path, report: Report, predictions: Sequence[Prediction]) -> None:
    if predictions:
        write_predictions(folder / PREDICTIONS, predictions)
    (folder / SCORES).write_text(_json(report) + "\n", encoding="utf-8")


def _json(report: Report) -> str:
    return orjson.dumps(report.to_dict(), option=orjson.OPT_INDENT_2).decode()


def _print(report: Report, out: Path | None) -> None:
    console = console_for_results()
    for table in report.tables(console.width):
        console.print(table)
    for note in report.notes():
        console.print(plain(note), markup=False)
    if out is not None:
        console.print(f"written to {out}", markup=False)
