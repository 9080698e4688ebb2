"""Official ALFWorld games from archives or folders into the folder where ``benchmark=alfworld_seen`` finds them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from skillarena.conf.errors import DataError
from skillarena.envs.alfworld import LAYOUT, STANDARD_COUNTS
from skillarena.envs.alfworld_games import GAME_FILE, TRAJECTORY_FILE, playable_games
from skillarena.orchestration.data_command.archives import Member, Wanted, check_space, members, place
from skillarena.orchestration.progress_bar import ProgressBar

SPLIT_DIGESTS = {
    "valid_seen": "daded02c96312455badc26cda107692fbb9978c9392e01ded9698e99dea89379",
    "valid_unseen": "e3637493f555930184285f642ca09ad345e15e03c878e7a85de13ee808ab8d0e",
}
"""SHA-256 over the sorted ids of a split's games (``Game.id``), of the copy that this project was tested with."""


@dataclass(frozen=True, slots=True)
class Split:
    """A folder of games as it was found."""

    name: str
    games: int
    """Playable ones."""
    expected: int | None
    """Games that papers report on; None for a split without such a number."""
    digest: str
    """As in ``SPLIT_DIGESTS``."""

    @property
    def whole(self) -> bool:
        """All games are there; of a split that nobody reports on, any."""
        return self.games > 0 and self.expected in (None, self.games)

    @property
    def known(self) -> bool | None:
        """Whether these are the very games that this project was tested with; None where it knows none."""
        return self.digest == SPLIT_DIGESTS[self.name] if self.name in SPLIT_DIGESTS else None


def look(folder: Path) -> Split:
    """Read and check every game of a split.

    Raises:
        DataError: a game is damaged, or two are the same.
    """
    games = playable_games(folder)
    ids = "\n".join(sorted(game.id for game in games))
    return Split(folder.name, len(games), STANDARD_COUNTS.get(folder.name), hashlib.sha256(ids.encode()).hexdigest())


def splits_in(target: Path) -> list[Split]:
    """The splits below a data folder; one with damaged games counts as empty."""
    root = target / LAYOUT
    return [_look_at_any(folder) for folder in sorted(root.iterdir()) if folder.is_dir()] if root.is_dir() else []


def bring_in(sources: Sequence[Path], target: Path) -> list[Split]:
    """Copy games file by file into a hidden folder, check them there, and move each whole split to its place.

    Repeated after it was stopped, it goes on with the files that are missing. A split that is whole already is left as
    it is; an incomplete one is put aside, not deleted, when the whole one comes.

    Args:
        sources: folders and archives with ``json_2.1.1/SPLIT/TASK/TRIAL/`` in them, or folders of that name.
        target: the folder that gets ``json_2.1.1``.

    Returns:
        What the sources held.

    Raises:
        DataError: a source is missing, damaged or holds no games; a split is incomplete; the disk is full.
    """
    staging = target / f".import-{_name_of(sources)}"
    for source in sources:
        with members(source, _wanted(source)) as files:
            target.mkdir(parents=True, exist_ok=True)
            check_space(files, target)
            with ProgressBar(f"copying from {source.name}", len(files)) as bar:
                for file in files:
                    place(file, staging / _place_of(file, source))
                    bar.advance()
    try:
        folders = sorted(folder for folder in staging.iterdir() if folder.is_dir()) if staging.is_dir() else []
        found = [_checked(folder) for folder in folders if any(folder.rglob(GAME_FILE))]
        if not found:
            raise DataError(
                f"no {GAME_FILE} in {', '.join(map(str, sources))}",
                f"give a folder or archives that hold {LAYOUT}/SPLIT/TASK/TRIAL/{GAME_FILE}",
            )
        for split in found:
            _move(staging / split.name, target / LAYOUT / split.name)
    finally:  # all was copied: nothing is left that a repetition could use
        shutil.rmtree(staging, ignore_errors=True)
    return found


def _checked(folder: Path) -> Split:
    bare = [game.parent for game in folder.rglob(GAME_FILE) if not game.with_name(TRAJECTORY_FILE).is_file()]
    if bare:
        raise DataError(
            f"{folder.name}: the source has no {TRAJECTORY_FILE} for {len(bare):,} games",
            "the games and these files come in two archives: give both with --from",
        )
    try:
        split = look(folder)
    except DataError as error:
        raise DataError(f"the source is damaged: {error.message}", "get another copy of it") from error
    if not split.whole:
        raise DataError(
            f"{split.name}: the source holds {split.games} playable games of {split.expected}; none is put in place",
            "get a whole copy; a part of a split is played with benchmark.data=FOLDER benchmark.allow_partial=true",
        )
    return split


def _move(staged: Path, final: Path) -> None:
    final.parent.mkdir(parents=True, exist_ok=True)
    if final.is_dir():
        if _look_at_any(final).whole:
            return
        aside = final.parent.with_name(f"{LAYOUT}.replaced") / final.name
        aside.parent.mkdir(exist_ok=True)
        final.replace(next(path for path in _free(aside) if not path.exists()))
    staged.replace(final)


def _free(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 1000))]


def _look_at_any(folder: Path) -> Split:
    try:
        return look(folder)
    except DataError:
        return Split(folder.name, 0, STANDARD_COUNTS.get(folder.name), "")


def _wanted(source: Path) -> Wanted:
    return lambda path: path.name in (GAME_FILE, TRAJECTORY_FILE) and _parts(path, source) is not None


def _place_of(file: Member, source: Path) -> Path:
    parts = _parts(file.path, source)
    assert parts is not None
    return Path(*parts)


def _parts(path: PurePosixPath, source: Path) -> tuple[str, ...] | None:
    """SPLIT, TASK, TRIAL and file."""
    parts = (source.name, *path.parts) if source.is_dir() else path.parts
    inside = parts[parts.index(LAYOUT) + 1 :] if LAYOUT in parts else ()
    return inside if len(inside) == 4 else None


def _name_of(sources: Sequence[Path]) -> str:
    """Of the staging folder, so that files of different sources never meet in one."""
    marks = [f"{source} {source.stat().st_size} {source.stat().st_mtime_ns}" for source in sources]
    return hashlib.sha256("\n".join(marks).encode()).hexdigest()[:8]
