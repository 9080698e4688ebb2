"""Queries with judged skills, read from a folder in the format of SkillRouter's evaluation set (arXiv 2603.22455).

The folder holds ``tasks.jsonl`` (what is asked, one object a line), ``relevance.json`` (which skills each task needs)
and any number of skill pools: subfolders of JSON-lines shards, or single JSON-lines files. Every file may be packed
with gzip, those of a pool also with xz. Data of one's own takes the same form.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from skillarena.conf.errors import DataError, nearest
from skillarena.conf.user_path import user_path
from skillarena.selectors.library import SkillLibrary

GENERIC_ONLY = "generic_only"
"""Task type of queries that need nothing but generic skills; the published evaluation leaves them out."""
_TASKS, _RELEVANCE = "tasks.jsonl", "relevance.json"
_POOLS = (".jsonl", ".jsonl.gz", ".jsonl.xz")
_TASK_FORM = '{"task_id": "…", "instruction_text": "…"}'
_RELEVANCE_FORM = (
    '{"TASK_ID": {"gt_skill_ids": ["…"], "core_gt_ids": ["…"], "relevance": {"SKILL_ID": 3}, "task_type": "…"}}; '
    "all but gt_skill_ids may be left out"
)


class Role(StrEnum):
    """What a judged skill is to a query."""

    CORE = "core"
    """Needed, and specific to the query."""
    AUXILIARY = "auxiliary"
    """Needed, but generic: what many queries of other kinds need too."""
    RELATED = "related"
    """Not needed, yet better than nothing, such as a worse copy of a needed skill."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one skill is worth to one query."""

    skill: str
    """Id, which need not be in the pool that is searched."""
    grade: float
    """Gain for nDCG, above 0."""
    role: Role


@dataclass(frozen=True, slots=True)
class Query:
    """Something to find skills for."""

    id: str
    text: str
    benchmark: str
    """What it belongs to; selectors see it as the task's benchmark."""
    task_type: str
    """Category; ``generic_only`` has a meaning of its own."""
    judgements: tuple[Judgement, ...]
    """One for each skill that is worth anything."""


@dataclass(frozen=True)
class Dataset:
    """Queries and the skills to choose from."""

    name: str
    queries: tuple[Query, ...]
    library: SkillLibrary
    notes: tuple[str, ...] = ()
    """What a reader of the scores should know about the data, one clause each."""

    def absent(self) -> dict[str, list[str]]:
        """Judged skills that are not in the library, by query; queries without one left out."""
        by_query = {
            query.id: [item.skill for item in query.judgements if item.skill not in self.library.by_id]
            for query in self.queries
        }
        return {query: skills for query, skills in by_query.items() if skills}


class _TaskLine(BaseModel):
    model_config = ConfigDict(strict=True)

    task_id: str = Field(min_length=1)
    instruction_text: str
    benchmark: str = "retrieval"


class _Relevance(BaseModel):
    model_config = ConfigDict(strict=True)

    gt_skill_ids: list[str]
    core_gt_ids: list[str] | None = None
    relevance: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] | None = None
    task_type: str = ""


_ENTRIES = TypeAdapter(dict[str, dict[str, object]])


def read_queries(folder: str | Path) -> tuple[Query, ...]:
    """The queries of a folder with their judgements, in file order.

    Raises:
        DataError: a file is missing, damaged or of another form, a task occurs twice or is not judged.
    """
    folder = user_path(folder)
    entries = _entries(_file(folder, _RELEVANCE))
    queries = tuple(_query(line, where, entries) for line, where in _task_lines(_file(folder, _TASKS)))
    if not queries:
        raise DataError(f"{folder / _TASKS} holds no task", f"write one object a line: {_TASK_FORM}")
    seen: set[str] = set()
    for query in queries:
        if query.id in seen:
            raise DataError(
                f"{folder / _TASKS}: two tasks have the id {query.id!r}", "give every task an id of its own"
            )
        seen.add(query.id)
    return queries


@dataclass(frozen=True, slots=True)
class Pool:
    """Skills to choose from, as JSON lines."""

    name: str
    files: list[Path]
    """Shards in order of name."""


def find_pool(folder: str | Path, tier: str | None = None) -> Pool | None:
    """A skill pool of a folder.

    Args:
        folder: the data set.
        tier: name of the pool; None takes the only one there is, if there is one.

    Raises:
        DataError: there is no such pool, or there are several to choose from.
    """
    folder = user_path(folder)
    pools = {pool.name: pool for pool in _pools(folder)}
    if tier is not None and tier not in pools:
        found = f"it has {', '.join(pools)}" if pools else "it has none"
        raise DataError(
            f"{folder} holds no skill pool {tier!r}{nearest(tier, list(pools))}",
            f"{found}; a pool is a folder of .jsonl, .jsonl.gz or .jsonl.xz files, or one such file",
        )
    if tier is None and len(pools) > 1:
        raise DataError(f"{folder} holds the pools {', '.join(pools)}", "choose one with --tier NAME")
    return pools[tier] if tier is not None else next(iter(pools.values()), None)


def _pools(folder: Path) -> Iterator[Pool]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and (shards := sorted(item for item in path.iterdir() if item.name.endswith(_POOLS))):
            yield Pool(path.name, shards)
        elif path.is_file() and path.name.endswith(_POOLS) and not path.name.startswith(_TASKS):
            yield Pool(path.name.partition(".jsonl")[0], [path])


def _file(folder: Path, name: str) -> Path:
    """A file, plain or packed."""
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if not found:
        raise DataError(f"{str(folder)!r} holds no {name}", f"name a folder with {_TASKS} and {_RELEVANCE}")
    return found[0]


def _read(path: Path) -> bytes:
    try:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}", "copy or download it again") from error


def _task_lines(path: Path) -> Iterator[tuple[_TaskLine, str]]:
    """Tasks with where each stands."""
    for number, line in enumerate(_read(path).splitlines(), start=1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise DataError(f"{where}: not JSON: {error}", f"write one object a line: {_TASK_FORM}") from error
            try:
                yield _TaskLine.model_validate(record), where
            except ValidationError as error:
                raise DataError(f"{where}: {_explain(error, record)}", f"write {_TASK_FORM}") from error


def _entries(path: Path) -> Mapping[str, tuple[_Relevance, str]]:
    """Judgements by task, with where each stands."""
    try:
        raw = _ENTRIES.validate_json(_read(path))
    except ValidationError as error:
        raise DataError(f"{path}: {_explain(error, {})}", f"write {_RELEVANCE_FORM}") from error
    entries: dict[str, tuple[_Relevance, str]] = {}
    for task, record in raw.items():
        try:
            entries[task] = _Relevance.model_validate(record), f"{path}: {task!r}"
        except ValidationError as error:
            raise DataError(f"{path}: {task!r}: {_explain(error, record)}", f"write {_RELEVANCE_FORM}") from error
    return entries


def _explain(error: ValidationError, record: object) -> str:
    """The first problems in one line, with the nearest key where one is missing."""
    keys = [str(key) for key in record] if isinstance(record, dict) else []
    problems = []
    for problem in error.errors()[:3]:
        path = ".".join(str(step) for step in problem["loc"])
        hint = nearest(path, keys) if problem["type"] == "missing" else ""
        problems.append(f"{path}: {problem['msg']}{hint}" if path else f"{problem['msg']}{hint}")
    return "; ".join(problems)


def _query(line: _TaskLine, where: str, entries: Mapping[str, tuple[_Relevance, str]]) -> Query:
    if line.task_id not in entries:
        raise DataError(
            f"{where}: task {line.task_id!r} has no entry in {_RELEVANCE}{nearest(line.task_id, list(entries))}",
            f"write {_RELEVANCE_FORM}",
        )
    relevance, entry = entries[line.task_id]
    return Query(
        id=line.task_id,
        text=line.instruction_text,
        benchmark=line.benchmark,
        task_type=relevance.task_type,
        judgements=tuple(_judgements(relevance, entry)),
    )


def _judgements(relevance: _Relevance, where: str) -> Iterator[Judgement]:
    needed = dict.fromkeys(relevance.gt_skill_ids)  # in order, and quick to look up
    core = needed if relevance.core_gt_ids is None else dict.fromkeys(relevance.core_gt_ids)
    grades = dict.fromkeys(needed, 1.0) if relevance.relevance is None else relevance.relevance
    graded = {skill: grade for skill, grade in grades.items() if grade > 0}
    _check_known(core, needed, f"{where}: core_gt_ids names", "is not in gt_skill_ids")
    _check_known(needed, graded, f"{where}: gt_skill_ids names", "has no grade above 0 in relevance")
    for skill in needed:
        yield Judgement(skill, graded[skill], Role.CORE if skill in core else Role.AUXILIARY)
    for skill, grade in graded.items():
        if skill not in needed:
            yield Judgement(skill, grade, Role.RELATED)


def _check_known(skills: Iterable[str], known: Collection[str], where: str, fault: str) -> None:
    for skill in skills:
        if skill not in known:
            raise DataError(
                f"{where} {skill!r}, which {fault}{nearest(skill, list(known))}", f"write {_RELEVANCE_FORM}"
            )
