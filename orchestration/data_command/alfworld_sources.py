"""Where official ALFWorld games come from: the two archives that ``alfworld-download`` fetches, or copies at hand."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from skillarena.conf.errors import DataError
from skillarena.orchestration.data_command.archives import is_archive
from skillarena.orchestration.data_command.download import download
from skillarena.orchestration.progress_bar import ProgressBar

_SCRIPT = "alfworld-download"
_ADDRESSES = ("JSON_FILES_URL", "TW_PDDL_FILES_URL")
"""Constants of the script: descriptions of the tasks, and the games. Its other archives are not read here."""
DOWNLOADS = ".downloads"
"""Folder below the target for archives and parts of them."""


def addresses() -> tuple[str, ...]:
    """Where the installed version of alfworld fetches its archives from.

    Raises:
        DataError: alfworld is not installed, or its script has changed.
    """
    try:
        files = metadata.files("alfworld") or []
    except metadata.PackageNotFoundError as error:
        raise DataError(
            "the addresses of ALFWorld's archives come with the package alfworld, which is not installed",
            "pip install 'skillarena[alfworld]', or give --from FOLDER",
        ) from error
    script = next((Path(str(file.locate())) for file in files if file.name == _SCRIPT), None)
    if script is None or not script.is_file():
        raise DataError(f"the package alfworld has no {_SCRIPT}", "install it again, or give --from FOLDER")
    constants = {
        target.id: node.value.value
        for node in ast.parse(script.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if missing := [name for name in _ADDRESSES if name not in constants]:
        raise DataError(
            f"{script} has no {missing[0]}",
            f"run {_SCRIPT} itself, or use a version of alfworld that this project knows",
        )
    return tuple(constants[name] for name in _ADDRESSES)


def fetch(target: Path, mirror: str | None = None) -> list[Path]:
    """Download both archives; what is there is not fetched again.

    Args:
        target: folder for the games; the archives go to a hidden folder in it.
        mirror: address of a folder that holds archives of the same names; None for the official ones.

    Raises:
        DataError: no network, a refusal, a full disk; says what to copy by hand.
    """
    official = addresses()
    urls = [f"{mirror.rstrip('/')}/{_name(url)}" for url in official] if mirror else official
    by_hand = (
        f"repeat the command to go on where it stopped; without network, fetch {' and '.join(official)} elsewhere,"
        f" copy both files into one folder here, and run `skillarena data alfworld --from THAT_FOLDER --to {target}`"
    )
    archives = [target / DOWNLOADS / _name(url) for url in urls]
    for url, archive in zip(urls, archives, strict=True):
        with ProgressBar(f"downloading {_name(url)}", None, unit="bytes") as bar:
            download(url, archive, advance=bar.advance, total=bar.expect, by_hand=by_hand)
    return archives


def at_hand(sources: Sequence[Path]) -> list[Path]:
    """Folders and archives to read games from; a folder that holds archives stands for those.

    Raises:
        DataError: a source is missing or neither of both.
    """
    found: list[Path] = []
    for source in sources:
        source = source.expanduser().absolute()
        if source.is_dir():
            archives = sorted(path for path in source.iterdir() if path.is_file() and is_archive(path))
            found += archives or [source]
        elif source.is_file() and is_archive(source):
            found.append(source)
        elif source.exists():
            raise DataError(f"{source} is neither a folder nor an archive", "give a folder, a .zip or a .tar.xz")
        else:
            raise DataError(f"there is no {source}", "check the path given with --from")
    return found


def _name(url: str) -> str:
    return url.rsplit("/", 1)[-1]
