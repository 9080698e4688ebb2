"""GPU memory by a model's files, else by its name, else unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillarena.orchestration.plan_memory import (
    ModelFacts,
    facts_from_folder,
    facts_from_name,
    facts_of,
    is_here,
    memory_of,
)

LLAMA = {
    "dtype": "bfloat16",
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "hidden_size": 64,
    "max_position_embeddings": 1000,
}


def checkpoint(folder: Path, config: dict[str, Any], weights: int = 2000) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    if weights:
        (folder / "model-00001-of-00002.safetensors").write_bytes(b"\0" * (weights // 2))
        (folder / "model-00002-of-00002.safetensors").write_bytes(b"\0" * (weights - weights // 2))
    return folder


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen/Qwen3.6-27B", 27e9),
        ("Qwen/Qwen3-Reranker-0.6B", 0.6e9),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 135e6),
        ("Qwen/Qwen3-30B-A3B", 30e9),
        ("someone/model_7b_v2", 7e9),
        ("gpt-5.4-mini", None),
        ("deepseek-v4-flash", None),
    ],
)
def test_the_size_in_a_name(name: str, parameters: float | None) -> None:
    assert facts_from_name(name).parameters == parameters


@pytest.mark.parametrize(
    ("options", "gigabytes"),
    [
        ({}, 54.0),
        ({"dtype": "float32"}, 108.0),
        ({"quantization": "fp8"}, 27.0),
        ({"quantization": "awq_marlin"}, 13.5),
        ({"gpus": 2}, 27.0),
        ({"quantization": "a-new-method"}, 54.0),
    ],
)
def test_weights_on_each_gpu(options: dict[str, Any], gigabytes: float) -> None:
    assert memory_of(ModelFacts(parameters=27e9), **options).weights == gigabytes * 1e9


def test_weights_that_are_stored_quantised_are_as_large_as_their_files(tmp_path: Path) -> None:
    facts = facts_from_folder(checkpoint(tmp_path, {**LLAMA, "quantization_config": {"quant_method": "awq"}}, 700))
    assert memory_of(facts, dtype="float32").weights == 700


def test_a_folder_tells_weights_and_the_cache_of_one_sequence(tmp_path: Path) -> None:
    facts = facts_from_folder(checkpoint(tmp_path, LLAMA))
    assert facts.parameters == 1000
    keys_and_values = 2 * 4 * 2 * 8  # two, layers, heads, width of a head
    assert memory_of(facts, max_length=100).cache == 100 * keys_and_values * 2
    assert memory_of(facts, gpus=2).cache == 1000 * keys_and_values * 2 / 2
    assert memory_of(facts).least == 2000 + 1000 * keys_and_values * 2


def test_layers_that_keep_a_state_of_fixed_size_need_no_cache(tmp_path: Path) -> None:
    kinds = ["linear_attention", "linear_attention", "linear_attention", "full_attention"]
    facts = facts_from_folder(checkpoint(tmp_path, {"text_config": {**LLAMA, "layer_types": kinds}}))
    assert facts.cache_elements_per_token == 2 * 1 * 2 * 8


def test_a_configuration_without_weights_leaves_them_unknown(tmp_path: Path) -> None:
    memory = memory_of(facts_from_folder(checkpoint(tmp_path, LLAMA, weights=0)))
    assert memory.weights is None
    assert memory.least is None


def test_what_is_not_here_is_told_by_its_name(tmp_path: Path) -> None:
    assert is_here(str(checkpoint(tmp_path, LLAMA)))
    assert facts_of(str(tmp_path)).parameters == 1000
    assert not is_here("nobody/such-a-model-7B")
    assert facts_of("nobody/such-a-model-7B").parameters == 7e9
    assert "tells no size" in facts_of("nobody/such-a-model").source
