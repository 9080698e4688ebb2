"""Models and data sets on the Hugging Face hub: what they hold, and copies in its local cache."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from urllib.parse import urlsplit

from skillarena.conf.errors import DataError
from skillarena.selectors.checkpoint import hub_reason, unknown_host

_SAFE = ".safetensors"
_OTHER_WEIGHTS = ("bin", "pt", "pth", "ckpt", "onnx*", "h5", "msgpack", "gguf", "ot", "tflite", "mlmodel")
_NOT_LOADED = (*(f"*.{ending}" for ending in _OTHER_WEIGHTS), "onnx/*", "openvino/*", "original/*", "coreml/*")
"""Weights in forms that are never loaded; pickles among them could run code."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The files of a model that are loaded, as the hub or the cache has them."""

    commit: str | None = None
    """None where the hub gave no answer."""
    size: int = 0
    """Bytes of all of them."""
    missing: int = 0
    """Bytes of those that are not in the cache."""
    problem: str = ""
    """Why the model cannot be had, one clause; empty where it can."""


def listing(model: str, revision: str | None, *, weights: bool) -> Listing:
    """What would have to be fetched of a model; writes nothing.

    Args:
        model: hub id.
        revision: branch, tag or commit; None is the default branch.
        weights: False leaves the weights out.

    Raises:
        DataError: the hub's client is not installed.
    """
    hub = _client()
    try:
        _check_reachable(hub)
        files = hub.snapshot_download(model, revision=revision, ignore_patterns=_ignored(weights), dry_run=True)
    except Exception as error:  # the client's errors come from several packages and share no base
        copy = _copy(hub, model, revision, weights=weights)
        return Listing(problem=hub_reason(error)) if copy is None else Listing(size=_size_of(copy))
    if weights and not any(file.filename.endswith(_SAFE) for file in files):
        return Listing(problem="it has no safetensors on the hub, and nothing else is loaded")
    return Listing(
        commit=files[0].commit_hash,
        size=sum(file.file_size or 0 for file in files),
        missing=sum(file.file_size or 0 for file in files if file.will_download),
    )


def fetch(model: str, revision: str | None, *, weights: bool) -> Path:
    """The folder of a model in the cache; goes on with what an earlier try left.

    Raises:
        DataError: it cannot be had.
    """
    try:
        return Path(_client().snapshot_download(model, revision=revision, ignore_patterns=_ignored(weights)))
    except Exception as error:
        raise not_to_be_had([model], hub_reason(error)) from error


def fetch_collection(repository: str, repo_type: str, revision: str | None, patterns: Iterable[str]) -> Path:
    """The folder of a data set, model or space in the cache, with the files that fit the patterns.

    Raises:
        DataError: it cannot be had.
    """
    hub = _client()
    try:
        _check_reachable(hub)
        found = hub.snapshot_download(repository, repo_type=repo_type, revision=revision, allow_patterns=list(patterns))
        return Path(found)
    except Exception as error:
        raise DataError(
            f"{repo_type} {repository!r} cannot be had from the Hugging Face hub: {hub_reason(error)}",
            "check the id, --repo-type and --revision; without network, copy the collection here as a folder or an"
            " archive and give that",
        ) from error


def not_to_be_had(models: Iterable[str], reason: str) -> DataError:
    """What to do about models that cannot be had for one reason."""
    named = list(models)
    folders = ", ".join(f"models--{model.replace('/', '--')}" for model in named)
    return DataError(
        f"{', '.join(named)} cannot be had from the Hugging Face hub: {reason}",
        "check name and revision; without network, run the same command on a machine with network and copy from its"
        f" cache to {_client().constants.HF_HUB_CACHE}: {folders}; or name a folder as the section's model",
    )


def _client() -> ModuleType:
    try:
        import huggingface_hub
        import huggingface_hub.constants
    except ImportError as error:
        raise DataError(
            "the hub is asked with the package huggingface_hub", "pip install 'skillarena[models]'"
        ) from error
    return huggingface_hub


def _check_reachable(hub: ModuleType) -> None:
    """Tell at once what the hub's client would take half a minute to find out."""
    if hub.constants.HF_HUB_OFFLINE:
        raise ConnectionError("HF_HUB_OFFLINE is set")
    if unknown_host(hub.constants.ENDPOINT):
        raise ConnectionError(f"there is no network, or no name {urlsplit(hub.constants.ENDPOINT).hostname} in it")


def _ignored(weights: bool) -> list[str]:
    return [*_NOT_LOADED, *([] if weights else [f"*{_SAFE}"])]


def _copy(hub: ModuleType, model: str, revision: str | None, *, weights: bool) -> Path | None:
    """A copy in the cache with configuration and, when asked for, every file of its weights."""
    try:
        here = {"local_files_only": True, "ignore_patterns": _ignored(weights)}
        folder = Path(hub.snapshot_download(model, revision=revision, **here))
        index = folder / "model.safetensors.index.json"
        parts = set(json.loads(index.read_bytes())["weight_map"].values()) if index.is_file() else set()
    except Exception:  # none there, or a damaged one
        return None
    whole = all((folder / name).is_file() for name in parts) if parts else any(folder.glob(f"*{_SAFE}"))
    return folder if (folder / "config.json").is_file() and (whole or not weights) else None


def _size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
