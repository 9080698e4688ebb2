"""The durable record of one cell's finished episodes. Everything reported is recomputed from it.

A cell folder holds

* ``config.json``: the cell's identity, name, resolved settings and task list, written once;
* ``trajectories.jsonl``: one line an episode, written before the episode's row;
* ``selections.jsonl``: on request (``run.keep_selections``) one line an episode with its whole selection, likewise;
* ``episodes.jsonl``: one row an episode, append-only, flushed to disk one by one. An episode is finished when, and
  only when, its row is complete. A second row of the same episode replaces the first (an infrastructure error that a
  later run mended).
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import FileIO
from pathlib import Path
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs.interface import EndReason, Task
from skillarena.orchestration.json_lines import JsonLines
from skillarena.orchestration.selection_store import selection_to_json
from skillarena.selectors.interface import Selection

log = logging.getLogger(__name__)

_MOST = 2**53
"""No counter and no file gets there; what a line says beyond it, JSON readers elsewhere would round."""
Count = Annotated[int, Field(ge=0, le=_MOST)]
Offset = Annotated[int, Field(ge=-1, le=_MOST)]


@dataclass(frozen=True, slots=True)
class EpisodeRow:
    """One finished episode. Counters are defined here and nowhere else.

    Fields with a value of their own may be missing in rows of earlier versions.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(allow_inf_nan=False)

    episode_id: str
    """sha256 of cell digest, task identity and seed."""
    task_id: str
    task_name: str
    task_type: str
    outcome: str
    """One of ``EndReason``. Rows with ``infra_error`` have no scores and enter no mean."""
    reward: float | None
    """0 to 100 points as tables report it; None for ``infra_error``."""
    success: bool | None
    """The task was fully solved; None for ``infra_error``."""
    score: float | None
    """Final score on the simulator's own scale."""
    env_steps: Count
    """Actions sent to the environment, refused ones included."""
    llm_turns: Count
    """Replies the agent's backbone gave."""
    invalid_actions: Count
    """Replies without an action plus actions the environment refused."""
    skill_lookups: Count
    """Calls of selector tools inside the episode."""
    prompt_tokens: Count
    """Prompt tokens of the agent's calls, cached ones included."""
    cached_tokens: Count
    """The part of ``prompt_tokens`` the server took from its prefix cache."""
    completion_tokens: Count
    """Completion tokens of the agent's calls, reasoning included."""
    wasted_tokens: Count
    """Tokens of discarded replies and of attempts that broke off; in no other count."""
    tokens_estimated: bool
    """At least one call's usage was estimated from text length."""
    skills: tuple[str, ...]
    """Ids of the selected skills in prompt order."""
    selection_seconds: float
    """Wall time of the selection when it was computed."""
    selection_reused: bool
    """The selection came from the store of earlier selections."""
    selector_prompt_tokens: Count
    """Prompt tokens of the selector's online LLM calls."""
    selector_completion_tokens: Count
    """Completion tokens of the selector's online LLM calls."""
    offline_tokens: Count
    """Tokens of skill parses that this episode's selection was the first to need; a library's cost, not a task's."""
    pairs_scored: Count
    """Query-document pairs the reranker model scored for this selection."""
    pairs_cached: Count
    """Query-document pairs the score cache answered."""
    marks: tuple[str, ...]
    """What was unusual about the selection (``Selection.marks``)."""
    wall_seconds: float
    """Time of the accepted attempt from reset to end."""
    llm_seconds: float
    """The part of ``wall_seconds`` spent waiting for the backbone."""
    env_seconds: float
    """The part of ``wall_seconds`` spent in the environment."""
    attempts: Count
    """Attempts made, the accepted one included."""
    finished_at: float
    """Unix time."""
    error: str = ""
    """Reason of an ``infra_error``."""
    trajectory_offset: Offset = -1
    """Byte offset of the trajectory's line in ``trajectories.jsonl``; -1 when there is none."""
    reasoning_tokens: Count = 0
    """The part of ``completion_tokens`` the model thought with (see ``Usage``)."""
    cost: float | None = None
    """Money for the agent's prompt and completion tokens by the backbone's ``price``; None when that is not known.
    Discarded replies and broken-off attempts are in no row's cost, only in what the run has spent."""
    node: str = ""
    """Ray's id of the node that played the accepted attempt; empty for an ``infra_error``."""
    skills_added: Annotated[int, Field(ge=-_MOST, le=_MOST)] = 0
    """Skills whose text the agent read later than in the first prompt."""
    lookup_seconds: float = 0.0
    """The part of ``wall_seconds`` spent waiting for the selector's tools and advice."""
    memory: str = ""
    """File in the cell's folder ``memory`` that the episode of a learning selector started from; empty for others and
    before the first update."""
    selection_offset: Offset = -1
    """Byte offset of the selection's line in ``selections.jsonl``; -1 when it was not kept."""

    @property
    def total_tokens(self) -> int:
        """The agent's prompt plus completion tokens."""
        return self.prompt_tokens + self.completion_tokens


_SCHEMA = TypeAdapter(EpisodeRow)
_OUTCOMES = frozenset(EndReason)


def _row(line: bytes) -> EpisodeRow | None:
    """The row that a line holds, with every field of its type; None where it is none."""
    try:
        row = _SCHEMA.validate_json(line, strict=True)
    except ValidationError:
        return None
    if row.outcome not in _OUTCOMES:
        return None
    unscored = None in (row.reward, row.success, row.score)
    return None if unscored and row.outcome != EndReason.INFRA_ERROR else row


@dataclass(frozen=True)
class LedgerContent:
    """What a ledger file says."""

    rows: tuple[EpisodeRow, ...]
    """The last row of each episode, in order of first completion."""
    damaged_lines: int = 0
    """Lines that are no rows; their episodes count as unfinished."""


def read_rows(cell_dir: Path, beginning: str = "") -> LedgerContent:
    """All rows of a cell, tolerant of a torn last line. A missing file is an empty ledger.

    Args:
        cell_dir: the cell's folder.
        beginning: of the ids of the only episodes to be read; other lines are passed over unread.

    Raises:
        DataError: the file cannot be read.
    """
    rows: dict[str, EpisodeRow] = {}
    damaged = 0
    path = cell_dir / "episodes.jsonl"
    wanted = f'"episode_id":"{beginning}'.encode() if beginning else b""
    try:
        with path.open("rb") as file:
            for line in file:
                if wanted not in line:
                    continue
                row = _row(line)
                if row is None:
                    damaged += 1
                else:
                    rows[row.episode_id] = row
    except FileNotFoundError:
        return LedgerContent(())
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror or error})", "copy a cell's folder with all its files"
        ) from error
    return LedgerContent(tuple(rows.values()), damaged)


def read_trajectories(cell_dir: Path) -> Iterator[dict[str, Any]]:
    """The trajectory of every finished episode, in ledger order. Raises ``DataError`` for a damaged line."""
    path = cell_dir / "trajectories.jsonl"
    if not path.exists():
        return
    for row in read_rows(cell_dir).rows:
        if row.trajectory_offset >= 0:
            yield read_line(path, row.trajectory_offset)


def read_line(path: Path, offset: int) -> dict[str, Any]:
    """The line of an episode in ``trajectories.jsonl`` or ``selections.jsonl``.

    Args:
        path: the file.
        offset: where the line begins, in bytes.

    Raises:
        DataError: the file cannot be read, or there is no object on that line.
    """
    try:
        with path.open("rb") as file:
            file.seek(offset)
            plain = orjson.loads(file.readline())
    except OSError as error:
        raise DataError(
            f"{path}: cannot be read ({error.strerror or error})", "copy a cell's folder with all its files"
        ) from error
    except orjson.JSONDecodeError as error:
        raise damaged_line(path, offset, f"not a line of JSON ({error})") from error
    if not isinstance(plain, dict):
        raise damaged_line(path, offset, "not an object")
    return plain


def damaged_line(path: Path, offset: int, what: str) -> DataError:
    """The error for a line of an episode that is not what it should be."""
    return DataError(
        f"{path}, byte {offset}: {what}", "the file was damaged or replaced; the episode's row still counts"
    )


def read_config(cell_dir: Path) -> dict[str, Any]:
    """``config.json`` of a cell. Raises ``DataError`` when it is missing or broken."""
    path = cell_dir / "config.json"
    try:
        plain: dict[str, Any] = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as error:
        what = "there is no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", error)
        raise DataError(f"{path}: not a cell's configuration ({what})", "give the folder of a cell") from error
    parts = [plain.get(part) for part in ("identity", "cell", "settings")] if isinstance(plain, dict) else [None]
    if not all(isinstance(part, dict) for part in parts) or not isinstance(plain.get("tasks"), list):
        raise DataError(f"{path}: not a cell's configuration", "give the folder of a cell, or remove this one")
    return plain


def changed_keys(old: Any, new: Any, path: str = "") -> list[str]:
    """Dotted keys whose values differ between two pieces of plain data."""
    if isinstance(old, dict) and isinstance(new, dict):
        found = []
        for key in sorted(old.keys() | new.keys()):
            found += changed_keys(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
        return found
    return [] if old == new else [f"{path}: {old!r} -> {new!r}"]


@dataclass
class Ledger:
    """The one writer of a cell folder. Use as a context manager; opening it takes the folder's lock."""

    cell_dir: Path
    identity: dict[str, Any]
    """What the cell is (``Settings.identity``); must match what the folder already says."""
    about: dict[str, Any]
    """Further facts for readers of the folder: name, axes, settings; not compared."""
    tasks: Sequence[Task]
    rows: dict[str, EpisodeRow] = field(default_factory=dict)
    """Last row by episode id, in order of first completion."""
    _files: list[FileIO | JsonLines] = field(default_factory=list)
    _selections: JsonLines | None = None
    """Opened when the first selection is to be kept."""

    def __enter__(self) -> Ledger:
        try:
            self.cell_dir.mkdir(parents=True, exist_ok=True)
            self._lock()
            self._claim()
            self._trajectories = JsonLines(self.cell_dir / "trajectories.jsonl")
            self._files.append(self._trajectories)
            self._episodes = JsonLines(self.cell_dir / "episodes.jsonl")
            self._files.append(self._episodes)
        except OSError as error:
            self.__exit__()
            raise DataError(
                f"{self.cell_dir}: cannot be written ({error.strerror or error})",
                "free space or permissions there, or set output_dir to another folder",
            ) from error
        except BaseException:
            self.__exit__()
            raise
        content = read_rows(self.cell_dir)
        self.rows = {row.episode_id: row for row in content.rows}
        if content.damaged_lines:
            log.warning("%s: %d damaged lines; their episodes run again", self.cell_dir, content.damaged_lines)
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.close()
        self._files.clear()
        self._selections = None

    def append(
        self, row: EpisodeRow, trajectory: dict[str, Any] | None = None, selection: Selection | None = None
    ) -> EpisodeRow:
        """Record one finished episode; on return it is on disk.

        Args:
            row: its row.
            trajectory: what happened; None where nothing was played.
            selection: the selection it was played with, if that is to be kept.

        Raises:
            DataError: the disk refuses; nothing half-written counts.
        """
        try:
            if trajectory is not None:
                row = replace(row, trajectory_offset=self._trajectories.append(trajectory))
            if selection is not None:
                row = replace(row, selection_offset=self._keep(row, selection))
            self._episodes.append(row)
        except OSError as error:
            raise DataError(
                f"{self.cell_dir}: cannot record an episode ({error.strerror or error})",
                "free some disk space and run the same command again; finished episodes are kept",
            ) from error
        self.rows[row.episode_id] = row
        return row

    def finished(self, episode_id: str) -> bool:
        """True when the episode needs no further run; infrastructure errors are tried again."""
        row = self.rows.get(episode_id)
        return row is not None and row.outcome != EndReason.INFRA_ERROR

    def _keep(self, row: EpisodeRow, selection: Selection) -> int:
        """Append a selection; returns its offset."""
        if self._selections is None:
            self._selections = JsonLines(self.cell_dir / "selections.jsonl")
            self._files.append(self._selections)
            # A process that died between a selection and its row left a line that the episode's next run writes again.
            self._selections.drop_behind(max((known.selection_offset for known in self.rows.values()), default=-1))
        plain = orjson.Fragment(selection_to_json(selection))
        return self._selections.append({"episode_id": row.episode_id, "task_id": row.task_id, "selection": plain})

    def _lock(self) -> None:
        lock = FileIO(self.cell_dir / "lock", "w")
        self._files.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{self.cell_dir}: another process is running this cell", "wait for it, or stop it first"
            ) from None

    def _claim(self) -> None:
        path = self.cell_dir / "config.json"
        if not path.exists():
            plain = {
                "identity": self.identity,
                **self.about,
                "tasks": [{"id": task.id, "name": task.name, "type": task.task_type} for task in self.tasks],
            }
            part = path.with_suffix(".tmp")
            part.write_bytes(orjson.dumps(plain, option=orjson.OPT_INDENT_2))
            part.replace(path)
            return
        changed = changed_keys(read_config(self.cell_dir)["identity"], orjson.loads(orjson.dumps(self.identity)))
        if changed:
            raise ConfigError(
                f"{self.cell_dir} holds a cell with another configuration; changed keys:\n  " + "\n  ".join(changed),
                "leave cell_dir out (each configuration gets its own folder) or name another folder",
            )
