"""How MLflow's table names, tags and describes runs, so that they can be grouped, filtered and told apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from skillarena.orchestration.settings import label

CELL_TAG = "skillarena.cell_id"
"""Tag by which a cell's run is found again."""
SWEEP_TAG = "skillarena.sweep"
"""Tag by which a sweep's run is found again."""
VERSION_TAG = "skillarena.version"

_MODELS = ("embedder", "reranker", "parser", "llm")
_SIZES = ("k", "top_k")
_MAJOR = ("split", "selector", "backbone")
_NUMBERED = (*_SIZES, "seed")
_NAMED = ("split", "selector", *_SIZES, "backbone", "seed")
"""Axes that a sweep's name speaks of, in this order."""
_LONGEST_PARAM = 6000  # characters; MLflow's bound
_LISTED = 2  # values of an axis that a sweep's name lists
_DIGITS = 6  # of a sweep's digest, in its name


def cell_name(config: Mapping[str, Any]) -> str:
    """What differs most within a sweep comes first: tables cut long names."""
    axes = cell_axes(config)
    method = [axes.get("selector"), *(f"{size}={axes[size]}" for size in _SIZES if size in axes)]
    seed = f"seed={axes['seed']}" if "seed" in axes else ""
    return _marked(" ".join(filter(None, [*method, _place(axes), axes.get("backbone"), seed])), [config])


def cell_axes(config: Mapping[str, Any]) -> dict[str, str]:
    """What cells are grouped by: the axes of tables and the models, without those that the selector does not use."""
    identity, settings = config["identity"], config["settings"]
    unused = {part for part in _MODELS if part not in identity}
    models = {part: label(settings[part]) for part in _MODELS if part in identity and part in settings}
    return {axis: value for axis, value in config["cell"]["axes"].items() if value and axis not in unused} | models


def cell_tags(config: Mapping[str, Any]) -> dict[str, str]:
    """One tag for each axis, and what the run is found by."""
    cell = config["cell"]
    return {
        CELL_TAG: cell["id"],
        "mlflow.runName": cell_name(config),
        "mlflow.source.name": "skillarena",
        "kind": "cell",
        "simulated": str(cell["simulated"]).lower(),
        **cell_axes(config),
    }


def cell_params(config: Mapping[str, Any]) -> dict[str, str]:
    """Everything that a cell's results can depend on, by dotted key."""
    return _params(_flat(config["identity"]))


def sweep_name(name: str, configs: Sequence[Mapping[str, Any]]) -> str:
    """What tells sweeps apart, for example ``sweep 3f2a61 alfworld/valid_seen 12 selectors simulated``.

    Args:
        name: the sweep's own name, a digest.
        configs: ``config.json`` of each of its cells.
    """
    axes = [cell_axes(config) for config in configs]
    values = _values([cell | {"split": _place(cell)} for cell in axes])
    words = [_listed(axis, values.get(axis, ())) for axis in _NAMED]
    return _marked(" ".join(["sweep", name[:_DIGITS], *filter(None, words)]), configs)


def sweep_tags(name: str, configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Tags of a sweep's run; those of axes on which all its cells agree, so that a filter finds it with them."""
    axes = [cell_axes(config) for config in configs]
    agreed = {axis: value for axis, value in axes[0].items() if all(other.get(axis) == value for other in axes)}
    return {
        SWEEP_TAG: name,
        "mlflow.runName": sweep_name(name, configs),
        "mlflow.source.name": "skillarena",
        "kind": "sweep",
        "sweep": name,
        "simulated": ", ".join(_distinct(str(config["cell"]["simulated"]).lower() for config in configs)),
        **agreed,
    }


def sweep_params(configs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What a sweep holds: how many cells, and every value of each axis."""
    values = _values([cell_axes(config) for config in configs])
    return _params({"cells": len(configs), **{axis: ", ".join(found) for axis, found in values.items()}})


def own_version() -> str:
    """Of this project, as installed."""
    return version("skillarena")


def _place(axes: Mapping[str, str]) -> str:
    return "/".join(axes[axis] for axis in ("benchmark", "split") if axis in axes)


def _values(cells: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    """Distinct values of each axis."""
    return {
        axis: _distinct(cell[axis] for cell in cells if axis in cell)
        for axis in dict.fromkeys(axis for cell in cells for axis in cell)
    }


def _distinct(words: Iterable[str]) -> list[str]:
    """Sorted: numbers by size, words by alphabet."""
    return sorted(set(words), key=lambda word: (not word.isdecimal(), int(word) if word.isdecimal() else 0, word))


def _listed(axis: str, values: Sequence[str]) -> str:
    """The values, or how many there are; of minor axes only when there are several."""
    if len(values) > _LISTED:
        return f"{len(values)} {axis}s"
    if len(values) < _LISTED and axis not in _MAJOR:
        return ""
    return (f"{axis}=" if axis in _NUMBERED else "") + "+".join(values)


def _marked(name: str, configs: Sequence[Mapping[str, Any]]) -> str:
    """Names say where no language model played."""
    simulated = [config["cell"]["simulated"] for config in configs]
    if not any(simulated) or "simulated" in name:
        return name
    return f"{name} [simulated]" if all(simulated) else f"{name} [partly simulated]"


def _params(plain: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value)[:_LONGEST_PARAM] for key, value in plain.items()}


def _flat(plain: Any, path: str = "") -> dict[str, Any]:
    if not isinstance(plain, dict):
        return {path: plain}
    flat: dict[str, Any] = {}
    for name, inner in plain.items():
        flat |= _flat(inner, f"{path}.{name}" if path else name)
    return flat
