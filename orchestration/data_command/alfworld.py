"""`skillarena data alfworld`: the official games, downloaded or from copies, each split whole or not at all."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock, Timeout
from rich.text import Text

from skillarena.conf.errors import DataError
from skillarena.envs.alfworld import STANDARD_COUNTS, data_root
from skillarena.orchestration.console import EXIT_INCOMPLETE, EXIT_OK, console_for_results, plain
from skillarena.orchestration.data_command.alfworld_games import Split, bring_in, splits_in
from skillarena.orchestration.data_command.alfworld_sources import DOWNLOADS, at_hand, fetch

_LOCK_S = 5.0


def get_alfworld(sources: Sequence[str], to: Path | None) -> int:
    """Put the official games in place and say what is there.

    Args:
        sources: folders, archives, or one address of a mirror; none: download what ``alfworld-download`` does.
        to: folder that gets ``json_2.1.1``; None for where the benchmark looks.

    Returns:
        0; 1 when a split that is there is not whole.

    Raises:
        DataError: the sources cannot be had or are not whole, or another import into the folder is under way.
    """
    target = data_root(str(to) if to else None)
    mirrors = [source for source in sources if source.startswith(("http://", "https://"))]
    if mirrors and len(sources) > 1:
        raise DataError("--from names a mirror and something else", "give one address, or folders and archives")
    at_hand_already = splits_in(target)
    if sources or not _complete(at_hand_already):
        local = at_hand([Path(source) for source in sources]) if sources and not mirrors else None
        try:
            target.mkdir(parents=True, exist_ok=True)
            with FileLock(lock := target / ".import.lock", timeout=_LOCK_S):
                try:
                    bring_in(local or fetch(target, mirrors[0] if mirrors else None), target)
                    if local is None:
                        shutil.rmtree(target / DOWNLOADS, ignore_errors=True)
                finally:
                    lock.unlink(missing_ok=True)
        except Timeout as error:
            raise DataError(f"another import into {target} is under way", "wait for it to end") from error
        except OSError as error:
            raise DataError(f"{error.filename or target}: {error.strerror or error}", "choose another --to") from error
    there = splits_in(target)
    _print(there, target)
    return EXIT_OK if all(split.whole for split in there) else EXIT_INCOMPLETE


def _complete(splits: Sequence[Split]) -> bool:
    return {split.name for split in splits if split.whole} >= set(STANDARD_COUNTS)


def _print(splits: Sequence[Split], target: Path) -> None:
    out = console_for_results()
    found = {split.name: split for split in splits}
    for name in dict.fromkeys([*STANDARD_COUNTS, *found]):
        out.print(Text(plain(f"{name:<13} {_words(found.get(name), STANDARD_COUNTS.get(name))}")), soft_wrap=True)
    out.print(Text(plain(f"export ALFWORLD_DATA={shlex.quote(str(target))}")), soft_wrap=True)


def _words(split: Split | None, expected: int | None) -> str:
    if split is None:
        return f"not here ({expected:,} games)"
    if not split.whole:
        return f"{split.games:,} playable games of {expected:,}: incomplete" if expected else "no playable game"
    content = {
        True: ", the ones this project was tested with",
        False: ", but not the ones this project was tested with",
    }
    return f"{split.games:,} games{content.get(split.known, '') if split.known is not None else ''}"
