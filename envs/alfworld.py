"""ALFWorld as a benchmark: household tasks played as text."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from skillarena.conf.errors import ConfigError, DataError, nearest
from skillarena.conf.user_path import is_folder, user_path
from skillarena.envs.alfworld_env import AlfworldEnv
from skillarena.envs.alfworld_games import TASK_TYPES, Game, playable_games
from skillarena.envs.alfworld_generator_goals import SPLITS as GENERATED_SPLITS
from skillarena.envs.cache_dir import cache_root
from skillarena.envs.interface import StepResult, Task
from skillarena.envs.task_choice import choose_tasks

STANDARD_COUNTS = {"valid_seen": 140, "valid_unseen": 134, "train": 3553}
"""Games that papers report on, by split."""

LAYOUT = "json_2.1.1"
"""Folder of the data that holds the splits."""
_FIX = (
    "run `skillarena data alfworld`, let benchmark.data or ALFWORLD_DATA name its folder, or use"
    " benchmark.split=generated_seen"
)

_ACTIONS = """\
look
inventory
go to {receptacle}
open {receptacle}
close {receptacle}
take {object} from {receptacle}
move {object} to {receptacle}
examine {object or receptacle}
use {object}
clean {object} with {receptacle}
heat {object} with {receptacle}
cool {object} with {receptacle}
slice {object} with {object}
help"""


class AlfworldBenchmark:
    """A ``Benchmark`` of ALFWorld games.

    Args:
        split: ``valid_seen`` (140 games), ``valid_unseen`` (134), ``train`` (3,553) or another folder of the data;
            ``generated_seen`` and ``generated_unseen`` need no download.
        data: folder that holds ``json_2.1.1``; None for ``ALFWORLD_DATA``, else the one of ``alfworld-download``.
            Generated splits are looked for there only when it is given.
        task_types: types to keep, out of ``TASK_TYPES``; None keeps all.
        limit: most tasks; None for all. The first ones are a mix of all types.
        task_ids: tasks to keep, by id, by its first 8 digits or more, or by name; None keeps all.
        max_steps: actions in an episode.
        cache_dir: folder for translated and generated games; None for the one of ``cache_root``.
        allow_partial: accept a standard split that is not complete. Filters imply it.
        deadline_s: seconds a reset may spend on a game that this machine has not played before.

    Raises:
        ConfigError: an argument that makes no sense.
        DataError: the data or the split is not there.
    """

    name = "alfworld"

    def __init__(
        self,
        *,
        split: str = "generated_seen",
        data: str | None = None,
        task_types: Sequence[str] | None = None,
        limit: int | None = None,
        task_ids: Sequence[str] | None = None,
        max_steps: int = 30,
        cache_dir: str | None = None,
        allow_partial: bool = False,
        deadline_s: float = 60.0,
    ) -> None:
        if isinstance(task_types, str):
            raise ConfigError(f"task_types must be a list, not {task_types!r}", f"write task_types=[{task_types}]")
        for option, value in {"max_steps": max_steps, "limit": limit, "deadline_s": deadline_s}.items():
            if value is not None and value < 1:
                raise ConfigError(f"ALFWorld's {option} is {value}", "give at least 1")
        for task_type in task_types or ():
            if task_type not in TASK_TYPES:
                hint = nearest(task_type, TASK_TYPES)
                raise ConfigError(f"unknown task type {task_type!r}{hint}", f"choose from: {', '.join(TASK_TYPES)}")
        self.split = split
        self.max_steps = max_steps
        self._task_types = list(task_types or ())
        self._task_ids = task_ids
        self._limit = limit
        self._cache_dir = cache_dir
        self._allow_partial = allow_partial
        self._deadline_s = deadline_s
        self._generated = data is None and split in GENERATED_SPLITS
        self._data = None if self._generated else str(_data_folder(data, split))

    def tasks(self) -> list[Task]:
        """The chosen games, one task for each, after every file of the split has been read and checked.

        One game of each type in turn, so that the first six are of six types; the order depends on the games' content.
        Names are folders below the split, ``TASK/TRIAL``.

        Raises:
            ConfigError: a filter fits no task, or leaves none.
            DataError: a file is damaged, two hold the same game, or a standard split is not complete.
        """
        folder = self._root() / LAYOUT / self.split
        games = playable_games(folder)
        filtered = bool(self._task_types or self._task_ids or self._limit)
        expected = STANDARD_COUNTS.get(self.split)
        if not games or (expected not in (None, len(games)) and not filtered and not self._allow_partial):
            raise DataError(
                f"{folder} holds {len(games)} playable games" + (f" of {expected}" if expected else ""),
                "run `skillarena data alfworld` again" + (", or set benchmark.allow_partial=true" if games else ""),
            )
        every = [self._task(game, folder) for game in games]
        return choose_tasks(every, task_types=self._task_types, task_ids=self._task_ids, limit=self._limit)

    def make_env(self) -> AlfworldEnv:
        """A new environment; its planner library is loaded at the first reset."""
        cache = self._cache() / "alfworld" / "translations"
        return AlfworldEnv(max_steps=self.max_steps, cache_dir=cache, deadline_s=self._deadline_s)

    def points(self, result: StepResult) -> float:
        """100 for a solved game, else 0."""
        return 100.0 if result.won else 0.0

    def action_help(self) -> str:
        """The forms that ALFWorld 0.4 understands, one a line."""
        return _ACTIONS

    def _cache(self) -> Path:
        return user_path(self._cache_dir) if self._cache_dir else cache_root()

    def _root(self) -> Path:
        if self._data is not None:
            return Path(self._data)
        from skillarena.envs.alfworld_generator import ensure_generated

        return ensure_generated(self.split, self._cache())

    def _task(self, game: Game, folder: Path) -> Task:
        return Task(
            benchmark=self.name,
            split=self.split,
            id=game.id,
            name=game.path.parent.relative_to(folder).as_posix(),
            task_type=game.task_type,
            goal=game.goal,
            source={"path": str(game.path)},
        )


def data_root(data: str | None = None) -> Path:
    """Where official games are looked for: ``data``, else ``ALFWORLD_DATA``, else the folder of ``alfworld-download``.

    It holds ``LAYOUT`` if there are any.
    """
    root = user_path(data or os.environ.get("ALFWORLD_DATA") or "~/.cache/alfworld").absolute()
    return root.parent if root.name == LAYOUT and is_folder(root) else root


def _data_folder(data: str | None, split: str) -> Path:
    root = data_root(data)
    if not is_folder(root / LAYOUT):
        known = [*STANDARD_COUNTS, *GENERATED_SPLITS]
        doubt = "" if split in known else f" to look for split {split!r} in{nearest(split, known)}"
        raise DataError(f"there is no ALFWorld data in {root}{doubt}", _FIX)
    if not split or not is_folder(root / LAYOUT / split):
        found = sorted(folder.name for folder in (root / LAYOUT).iterdir() if folder.is_dir())
        known = [*found, *GENERATED_SPLITS]
        raise DataError(f"unknown ALFWorld split {split!r}{nearest(split, known)}", f"choose from: {', '.join(known)}")
    return root
