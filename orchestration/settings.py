"""The configuration as frozen, checked, plain data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from skillarena.conf.errors import ConfigError, nearest
from skillarena.conf.redaction import holds_credentials, refuse_credentials
from skillarena.orchestration.agent_settings import AgentSettings

PARTS = ("benchmark", "library", "embedder", "reranker", "parser", "llm", "selector", "backbone")
"""Sections that name a class with ``_target_`` and pass it their other keys."""

_WHERE_NOT_WHAT: dict[str, set[str]] = {
    "benchmark": {
        "allow_partial",
        "cache_dir",
        "call_deadline_s",
        "data",
        "deadline_s",
        "gold_deadline_s",
        "java",
        "jvm_heap_mb",
        "limit",
        "start_deadline_s",
        "task_ids",
        "task_types",
    },
    "backbone": {
        "api_key_env",
        "connect_timeout_s",
        "failover_timeout_s",
        "gpu_memory_utilization",
        "kv_cache_gib",
        "latency_s",
        "max_concurrency",
        "max_retries",
        "max_wait_s",
        "num_cpus",
        "price",
        "replicas",
        "start_timeout_s",
        "timeout_s",
        "trust_env",
    },
    "agent": {"env_deadline_s"},
    "embedder": {"batch_size", "device"},
    "reranker": {
        "api_key_env",
        "base_url",
        "batch_size",
        "connect_timeout_s",
        "device",
        "max_retries",
        "reference",
        "served_name",
        "timeout_s",
    },
    "parser": {"model"},
}
"""Keys that do not tell one cell from another: they say where or how fast, or what they say is in the identity already
(the tasks, the parser's model)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RunSettings(_Frozen):
    """Scheduling, retries and reporting; ``conf/run/default.yaml`` explains each key."""

    max_attempts: int = Field(3, ge=1, le=20)
    retry_wait_s: float = Field(2.0, ge=0, le=3600)
    episode_timeout_s: float = Field(1800.0, gt=0)
    selection_timeout_s: float = Field(14400.0, gt=0)
    stall_timeout_s: float = Field(900.0, gt=0)
    max_lost_in_a_row: int | None = Field(5, ge=1)
    on_cell_error: Literal["continue", "stop"] = "continue"
    bootstrap_resamples: int = Field(10_000, ge=100, le=1_000_000)
    progress_every_s: float = Field(10.0, gt=0)
    max_tokens: int | None = Field(None, ge=1)
    max_cost: float | None = Field(None, gt=0)
    keep_selections: bool = False


class ClusterSettings(_Frozen):
    """Ray processes; ``conf/cluster/existing.yaml`` explains each key."""

    name: str = "local"
    address: str | None = Field(None, min_length=1)
    py_modules: list[str] = []
    rollout_workers: int | None = Field(None, ge=1, le=4096)
    min_rollout_workers: int = Field(1, ge=1, le=4096)
    episodes_per_worker: int = Field(2, ge=1, le=256)
    selection_workers: int = Field(1, ge=1, le=256)
    model_cpus: int | None = Field(None, ge=1, le=1024)
    embedder_gpus: float = Field(0.0, ge=0, le=64)
    reranker_gpus: float = Field(0.0, ge=0, le=64)
    start_timeout_s: float = Field(120.0, gt=0)
    placement_timeout_s: float = Field(120.0, gt=0)

    @field_validator("embedder_gpus", "reranker_gpus")
    @classmethod
    def _whole_above_one(cls, gpus: float) -> float:
        if gpus > 1 and gpus != int(gpus):
            raise ValueError("must be a fraction of one GPU or a whole number of them")
        return gpus


class TrackingSettings(_Frozen):
    """MLflow; ``conf/tracking/mlflow.yaml`` explains each key."""

    @field_validator("uri")
    @classmethod
    def _no_credentials(cls, uri: str | None) -> str | None:
        """Configurations are written to disk and uploaded, so they must not hold passwords."""
        if uri and holds_credentials(uri):
            raise ValueError(
                "must hold no password; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD,"
                " or leave tracking.uri out and set MLFLOW_TRACKING_URI"
            )
        return uri

    name: str = "mlflow"
    enabled: bool = True
    uri: str | None = None
    experiment: str = Field("skillarena", min_length=1)
    traces: bool = False
    flush_every_s: float = Field(5.0, gt=0)
    timeout_s: float = Field(60.0, gt=0)


@dataclass(frozen=True)
class Facts:
    """What settings stand for: the content behind names and paths."""

    library: str
    """The skill library's fingerprint."""
    tasks: str
    """Digest of the task ids."""
    models: dict[str, str]
    """Identity of each model the selector needs, by part: embedder, reranker, parser, llm."""
    weights: str
    """Name of the backbone's very weights; empty where they are not known."""
    selector_code: str
    """Digest of the file that defines the selector, so that an edited method is another cell."""
    selector_content: str = ""
    """Digest of files that the selector's options name; empty where there are none."""

    @property
    def used(self) -> tuple[str, ...]:
        """Parts on which results can depend."""
        return ("benchmark", "selector", "backbone", *self.models)


class Settings(_Frozen):
    """One cell's resolved configuration. Plain data only, so it can cross to any process."""

    benchmark: dict[str, Any]
    library: dict[str, Any]
    embedder: dict[str, Any]
    reranker: dict[str, Any]
    parser: dict[str, Any]
    llm: dict[str, Any]
    selector: dict[str, Any]
    backbone: dict[str, Any]
    agent: AgentSettings
    run: RunSettings
    cluster: ClusterSettings
    tracking: TrackingSettings
    seed: int = Field(0, ge=0, lt=2**63)
    output_dir: str = Field(min_length=1)
    cell_dir: str | None = None
    cache_dir: str | None = None

    def identity(self, facts: Facts) -> dict[str, Any]:
        """What makes this cell different from another: results can depend on nothing else.

        Args:
            facts: what the settings stand for on this machine.
        """
        used = {part: section for part in PARTS if (section := getattr(self, part)) and part in facts.used}
        identity: dict[str, Any] = {
            part: _without(section, _WHERE_NOT_WHAT.get(part, set())) for part, section in used.items()
        }
        for part, model in facts.models.items():
            identity[part]["identity"] = model
        if facts.weights:
            identity["backbone"]["weights"] = facts.weights
        identity["selector"]["code"] = facts.selector_code
        if facts.selector_content:
            identity["selector"]["content"] = facts.selector_content
        identity["library"] = {"fingerprint": facts.library}
        identity["tasks"] = facts.tasks
        identity["agent"] = self.agent.model_dump(mode="json", exclude=_WHERE_NOT_WHAT["agent"])
        identity["seed"] = self.seed
        return identity


def _without(section: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key not in keys}


def digest(plain: Any) -> str:
    """SHA-256 hex digest of plain data, independent of key order."""
    return hashlib.sha256(orjson.dumps(plain, option=orjson.OPT_SORT_KEYS)).hexdigest()


def label(section: Mapping[str, Any]) -> str:
    """The readable name of a part: its ``name`` key, else the last word of its ``_target_``."""
    return str(section.get("name") or str(section.get("_target_", "?")).rsplit(".", 1)[-1])


def validate(raw: Mapping[str, Any]) -> Settings:
    """Turn a resolved configuration into settings.

    Raises:
        ConfigError: listing every unknown key (with the nearest known one) and every value out of range; or naming a
            key whose URL holds a password.
    """
    _check_numbers(raw, "")
    refuse_credentials(raw)
    try:
        settings = Settings.model_validate(dict(raw))
    except ValidationError as error:
        raise ConfigError(
            _explain(error), "correct these keys; `skillarena run --cfg job` shows all of them"
        ) from error
    for part in PARTS:
        if "_target_" not in getattr(settings, part):
            raise ConfigError(
                f"{part}: no `_target_`, so there is no class to build",
                f"choose a file with {part}=NAME, or set {part}._target_ to your own class",
            )
    return settings


def _check_numbers(plain: Any, path: str) -> None:
    """Ledgers and digests hold 64-bit integers and finite numbers."""
    if isinstance(plain, Mapping):
        for key, value in plain.items():
            _check_numbers(value, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list):
        for value in plain:
            _check_numbers(value, path)
    elif isinstance(plain, int | float) and not abs(plain) < 2**63:  # nor is NaN
        raise ConfigError(f"{path}: {str(plain)[:40]} is out of range", "give a finite number below 2^63")


def _explain(error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        path = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "extra_forbidden":
            lines.append(f"{path}: unknown key{nearest(str(problem['loc'][-1]), _fields_at(problem['loc'][:-1]))}")
        else:
            secret = path == "tracking.uri"  # may hold a password
            got = "" if secret else f" (got {problem['input']!r})"
            lines.append(f"{path}: {problem['msg'].removeprefix('Value error, ')}{got}")
    return "\n  ".join(lines)


def _fields_at(path: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Settings
    for step in path:
        annotation = model.model_fields[str(step)].annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return []
        model = annotation
    return list(model.model_fields)
