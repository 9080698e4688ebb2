"""ALFWorld's game files: finding them, reading them with every check, and their identity."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skillarena.conf.errors import DataError
from skillarena.envs.alfworld_text import parse_grammar

GAME_FILE = "game.tw-pddl"
TRAJECTORY_FILE = "traj_data.json"

TASK_TYPES = (
    "look_at_obj_in_light",
    "pick_and_place_simple",
    "pick_clean_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_two_obj_and_place",
)

_FIX = "fetch the game again with `skillarena data alfworld`, or remove its folder"


class _GameFile(BaseModel):
    model_config = ConfigDict(strict=True)

    pddl_domain: str = Field(min_length=1)
    grammar: str = Field(min_length=1)
    pddl_problem: str = Field(min_length=1)
    solvable: bool
    walkthrough: list[str] | None = None


class _TrajectoryFile(BaseModel):
    model_config = ConfigDict(strict=True)

    task_type: str


_File = TypeVar("_File", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Game:
    """One ALFWorld game as its two files give it."""

    path: Path
    task_type: str
    """One of ALFRED's seven; only ``TASK_TYPES`` are played."""
    goal: str
    """The instruction as the game shows it."""
    solvable: bool
    domain: str
    problem: str
    grammar: str
    walkthrough: tuple[str, ...]
    """Commands that solve it; in internal names, which the game does not accept, in files of ``valid_unseen``."""

    @property
    def id(self) -> str:
        """SHA-256 of the PDDL problem: the same for every copy of the game, wherever it lies."""
        return hashlib.sha256(self.problem.encode()).hexdigest()


def read_game(path: Path) -> Game:
    """Read ``game.tw-pddl`` and the ``traj_data.json`` beside it.

    Raises:
        DataError: a file is missing, unreadable or incomplete; the message names it and what is wrong.
    """
    file = _validated(_GameFile, path)
    trajectory = _validated(_TrajectoryFile, path.with_name(TRAJECTORY_FILE))
    if "(:goal" not in file.pddl_problem or file.pddl_problem.count("(") != file.pddl_problem.count(")"):
        raise DataError(f"{path}: pddl_problem is no complete PDDL problem", _FIX)
    try:
        goal = parse_grammar(file.grammar).goal
    except DataError as error:
        raise DataError(f"{path}: {error.message}", error.fix) from error
    return Game(
        path=path,
        task_type=trajectory.task_type,
        goal=goal,
        solvable=file.solvable,
        domain=file.pddl_domain,
        problem=file.pddl_problem,
        grammar=file.grammar,
        walkthrough=tuple(file.walkthrough or ()),
    )


def playable_games(folder: Path) -> list[Game]:
    """The games under ``folder`` that ALFWorld's own loader plays.

    Left out are tasks with sliced or movable things, types other than ``TASK_TYPES``, and unsolvable games.

    Raises:
        DataError: a game cannot be read, or two files hold the same game.
    """
    games: dict[str, Game] = {}
    for path in sorted(folder.rglob(GAME_FILE)):
        inside = path.relative_to(folder).as_posix()
        if "movable" in inside or "Sliced" in inside:
            continue
        game = read_game(path)
        if not game.solvable or game.task_type not in TASK_TYPES:
            continue
        if game.id in games:
            raise DataError(f"{path} and {games[game.id].path} are the same game", "remove one of the two folders")
        games[game.id] = game
    return list(games.values())


def _validated(model: type[_File], path: Path) -> _File:
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", _FIX) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{path}: {where}: {first['msg']}", _FIX) from error
