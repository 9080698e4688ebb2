"""The least GPU memory a model needs, from what is known about it without loading it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from skillarena.conf.user_path import user_path

_BYTES = {"float32": 4.0, "float": 4.0, "bfloat16": 2.0, "float16": 2.0, "half": 2.0}
_QUANTISED = {"fp8": 1.0, "int8": 1.0, "awq": 0.5, "gptq": 0.5, "bitsandbytes": 0.5, "mxfp4": 0.5}
"""Bytes of a parameter by the method's name or how it begins (``awq_marlin``); scales and zero points come on top."""

_SIZE_IN_NAME = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([BM])(?![A-Za-z])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a checkpoint, or only its name, says."""

    parameters: float | None = None
    stored_bytes: float | None = None
    """Size of weights that are stored quantised; None for plain ones, which ``parameters`` tells."""
    cache_elements_per_token: float | None = None
    """Numbers that the KV cache keeps for one token."""
    dtype: str = "bfloat16"
    """Type of the stored weights."""
    max_length: int | None = None
    """Longest sequence the model was made for."""
    source: str = "unknown"
    """A clause for the reader."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on each GPU; None where it cannot be told."""

    weights: float | None
    cache: float | None
    """KV cache of one sequence of full length."""

    @property
    def least(self) -> float | None:
        """What must fit at least, activations and the runtime's own memory not counted."""
        return None if self.weights is None else self.weights + (self.cache or 0.0)


def memory_of(
    facts: ModelFacts,
    *,
    dtype: str | None = None,
    quantization: str | None = None,
    gpus: int = 1,
    max_length: int | None = None,
) -> Memory:
    """Memory of one copy of a model that is split evenly over GPUs.

    Args:
        facts: the model.
        dtype: type it is loaded as; None or ``auto``: as stored.
        quantization: method by which it is quantised while loading; None: not, or as stored.
        gpus: tensor-parallel size.
        max_length: longest sequence in tokens; None: the model's own.
    """
    loaded_as = facts.dtype if dtype in (None, "auto") else dtype
    element = _BYTES.get(str(loaded_as), 2.0)
    weights = facts.stored_bytes
    if weights is None and facts.parameters is not None:
        weights = facts.parameters * (_quantised(quantization) or element)
    length, per_token = max_length or facts.max_length, facts.cache_elements_per_token
    cache = None if length is None or per_token is None else length * per_token * element
    return Memory(
        weights=None if weights is None else weights / gpus,
        cache=None if cache is None else cache / gpus,
    )


def facts_of(model: str) -> ModelFacts:
    """Facts of a model in a folder or in the hub's local cache, else what its name says. Asks no server."""
    folder = _folder_of(model)
    return facts_from_name(model) if folder is None else facts_from_folder(folder)


def is_here(model: str) -> bool:
    """Whether a model is on this machine: in a folder, in the hub's local cache, or in a package (a bare word)."""
    return "/" not in model or _folder_of(model) is not None


def facts_from_name(model: str) -> ModelFacts:
    """The size that names such as ``Qwen3-Reranker-0.6B`` hold (the largest, for ``30B-A3B``)."""
    sizes = [
        float(number) * (1e9 if unit.upper() == "B" else 1e6)
        for number, unit in _SIZE_IN_NAME.findall(model.rsplit("/", 1)[-1].replace("-", " ").replace("_", " "))
    ]
    if not sizes:
        return ModelFacts(source="not on this machine, and its name tells no size")
    return ModelFacts(parameters=max(sizes), source="size by its name, as it is not on this machine")


def facts_from_folder(folder: Path) -> ModelFacts:
    """Facts of a checkpoint: ``config.json`` and the sizes of the safetensors files."""
    try:
        whole = _Config.model_validate_json((folder / "config.json").read_bytes())
    except (OSError, ValidationError):
        return ModelFacts(source="on this machine, with a configuration that cannot be read")
    config = whole.text_config or whole  # multimodal models keep the language model's part apart
    dtype = config.dtype or config.torch_dtype or whole.dtype or whole.torch_dtype or "bfloat16"
    size = float(sum(file.stat().st_size for file in folder.glob("*.safetensors")))
    plain = whole.quantization_config is None
    return ModelFacts(
        parameters=size / _BYTES.get(dtype, 2.0) if size and plain else None,
        stored_bytes=size if size and not plain else None,
        cache_elements_per_token=_cache_elements(config),
        dtype=dtype,
        max_length=config.max_position_embeddings or whole.max_position_embeddings,
        source="its files on this machine" if size else "its configuration on this machine, without weights",
    )


_Size = Annotated[int, Field(gt=0, le=2**40)]


class _Part(BaseModel):
    """What is read of a ``config.json``; keys that a kind of model words otherwise make it unreadable."""

    dtype: str | None = None
    torch_dtype: str | None = None
    max_position_embeddings: _Size | None = None
    num_attention_heads: _Size | None = None
    num_key_value_heads: _Size | None = None
    num_hidden_layers: Annotated[int, Field(gt=0, le=100_000)] | None = None
    hidden_size: _Size | None = None
    head_dim: _Size | None = None
    layer_types: list[str] | None = None


class _Config(_Part):
    text_config: _Part | None = None
    quantization_config: object = None


def _cache_elements(config: _Part) -> float | None:
    """Keys and values of all layers that attend to the whole text; others keep a state of fixed size."""
    heads = config.num_key_value_heads or config.num_attention_heads
    layers = config.num_hidden_layers
    if not heads or not layers:
        return None
    attending = sum(kind != "linear_attention" for kind in config.layer_types or ["full_attention"] * layers)
    width = config.head_dim
    if width is None:
        if not config.hidden_size or not config.num_attention_heads:
            return None
        return 2 * attending * heads * config.hidden_size / config.num_attention_heads
    return float(2 * attending * heads * width)


def _quantised(method: str | None) -> float | None:
    return next((size for name, size in _QUANTISED.items() if (method or "").startswith(name)), None)


def _folder_of(model: str) -> Path | None:
    local = user_path(model)
    if (local / "config.json").is_file():
        return local
    if model.count("/") != 1:
        return None
    from huggingface_hub import try_to_load_from_cache

    cached = try_to_load_from_cache(model, "config.json")
    return Path(cached).parent if isinstance(cached, str) else None
