"""What starts a vLLM server, as plain data, and what its log says when it fails."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.serving.server_log import reasons
from skillarena.orchestration.serving.vllm_spec import ServerSpec, computes_in_bf16, dtype_on_cpu

SPEC = ServerSpec(model="/models/m", served_name="m", device="cpu", num_cpus=2)


def arguments(spec: ServerSpec, *, bf16_cpu: bool = True) -> list[str]:
    return spec.arguments("127.0.0.1", 4321, location="/models/m", bf16_cpu=bf16_cpu)


def value_of(words: list[str], flag: str) -> str:
    assert words.count(flag) == 1
    return words[words.index(flag) + 1]


def test_arguments_say_what_the_spec_says() -> None:
    spec = ServerSpec(
        model="org/model",
        served_name="model",
        revision="main",
        commit="abc123",
        tensor_parallel_size=2,
        quantization="fp8",
        max_model_len=4096,
        gpu_memory_utilization=0.8,
        hf_overrides={"architectures": ["X"]},
        chat_template="t.jinja",
        runner="pooling",
    )
    words = spec.arguments("10.0.0.1", 80, location="org/model", bf16_cpu=False)
    assert value_of(words, "--host") == "10.0.0.1" and value_of(words, "--port") == "80"
    assert value_of(words, "--model") == "org/model" and value_of(words, "--served-model-name") == "model"
    assert value_of(words, "--revision") == "abc123"  # the commit that was looked up, not a name that may move on
    assert value_of(words, "--tensor-parallel-size") == "2" and value_of(words, "--quantization") == "fp8"
    assert value_of(words, "--max-model-len") == "4096" and value_of(words, "--gpu-memory-utilization") == "0.8"
    assert json.loads(value_of(words, "--hf-overrides")) == {"architectures": ["X"]}
    assert value_of(words, "--chat-template") == "t.jinja" and value_of(words, "--runner") == "pooling"
    assert value_of(words, "--dtype") == "auto"  # the CPU's abilities say nothing about a GPU
    assert "--enable-prompt-tokens-details" in words


def test_what_is_not_set_is_left_to_vllm() -> None:
    words = arguments(SPEC)
    for flag in ("--revision", "--quantization", "--max-model-len", "--hf-overrides", "--chat-template"):
        assert flag not in words
    assert "--gpu-memory-utilization" not in arguments(replace(SPEC, gpu_memory_utilization=0.5))  # on a CPU


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, ["--some-flag"]),
        (False, ["--no-some-flag"]),
        (None, []),
        (8, ["--some-flag", "8"]),
        ([1, 2], ["--some-flag", "1", "2"]),
        ({"a": {"b": 1}}, ["--some-flag", '{"a": {"b": 1}}']),
    ],
)
@pytest.mark.parametrize("flag", ["some-flag", "some_flag", "--some-flag"])
def test_engine_arguments_become_words(flag: str, value: Any, words: list[str]) -> None:
    plain = arguments(SPEC)
    assert arguments(replace(SPEC, engine_args={flag: value})) == [*plain, *words]


@pytest.mark.parametrize("flag", ["api-key", "api_key", "--port", "no-trust-remote-code", "dtype", "model"])
def test_engine_arguments_cannot_hold_keys_or_foreign_code_or_contradict_options(flag: str) -> None:
    with pytest.raises(ConfigError, match="engine_args cannot set"):
        replace(SPEC, engine_args={flag: "x"})


def test_cpu_servers_use_the_cores_they_asked_for() -> None:
    env = SPEC.environment(cores=64)
    assert env["OMP_NUM_THREADS"] == "2" and env["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"
    assert env["VLLM_CPU_KVCACHE_SPACE"] == "4"
    assert replace(SPEC, num_cpus=None).environment(cores=64)["OMP_NUM_THREADS"] == "64"
    assert replace(SPEC, env={"OMP_NUM_THREADS": "1"}).environment(cores=64)["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in replace(SPEC, device="cuda").environment(cores=64)


def test_a_replica_takes_cpus_or_gpus() -> None:
    assert SPEC.bundle == {"CPU": 2.0}
    assert replace(SPEC, num_cpus=None).bundle == {"CPU": 1.0}
    assert replace(SPEC, device="cuda", tensor_parallel_size=4).bundle == {"CPU": 2.0, "GPU": 4.0}


def test_bfloat16_is_used_only_where_the_cpu_has_it() -> None:
    assert dtype_on_cpu("auto", bf16_cpu=True) == "auto"
    assert dtype_on_cpu("auto", bf16_cpu=False) == "float32"
    assert dtype_on_cpu("bfloat16", bf16_cpu=False) == "bfloat16"  # who asks for it gets it
    assert value_of(arguments(SPEC, bf16_cpu=False), "--dtype") == "float32"
    assert computes_in_bf16("flags\t\t: fpu avx512f avx512_bf16 avx2\n")
    assert computes_in_bf16("Features\t: fp asimd bf16 i8mm\n")
    assert not computes_in_bf16("flags\t\t: fpu avx2 avx512f bf16x\n")


changes = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["a", "b"]),
        "revision": st.sampled_from(["main", "v1"]),
        "dtype": st.sampled_from(["float32", "bfloat16"]),
        "max_model_len": st.integers(1, 3),
        "tensor_parallel_size": st.integers(2, 3),
        "num_cpus": st.integers(3, 4),
        "seed": st.integers(1, 2),
        "engine_args": st.fixed_dictionaries({"max-num-seqs": st.integers(1, 2)}),
        "hf_overrides": st.fixed_dictionaries({"x": st.booleans()}),
    },
)


@given(changes, changes)
def test_names_differ_exactly_when_servers_do(one: dict[str, Any], other: dict[str, Any]) -> None:
    first, second = replace(SPEC, **one), replace(SPEC, **other)
    assert (first.name == second.name) == (first == second)
    assert pickle.loads(pickle.dumps(first)).name == first.name


def test_names_can_be_read_and_be_files_and_do_not_depend_on_what_was_found_out() -> None:
    spec = ServerSpec(model="org/Some Model-7B", served_name="org/Some Model-7B")
    assert spec.name.startswith("org-Some-Model-7B-")
    assert replace(spec, commit="abc", folder="/x").name == spec.name


LOG = """\
(APIServer pid=10) INFO 11-30 01:00:00 [api_server.py:100] vLLM API server version 0.32.0
(EngineCore pid=11) INFO 11-30 01:00:03 [core.py:40] Initializing an engine
(EngineCore pid=11) ERROR 11-30 01:00:05 [core.py:900] EngineCore failed to start.
(EngineCore pid=11) ERROR 11-30 01:00:05 [core.py:900] Traceback (most recent call last):
(EngineCore pid=11) ERROR 11-30 01:00:05 [core.py:900]   File "x.py", line 3, in load
(EngineCore pid=11) ERROR 11-30 01:00:05 [core.py:900]     raise ValueError("too big")
(EngineCore pid=11) ERROR 11-30 01:00:05 [core.py:900]     ^^^^^^^^^^^^^^^^^^^^^^^
(EngineCore pid=11) ERROR 11-30 01:00:05 [core.py:900] ValueError: 9 GiB of KV cache are needed, 1 GiB is there.
(EngineCore pid=11) Process EngineCore:
(EngineCore pid=11) ValueError: 9 GiB of KV cache are needed, 1 GiB is there.
(APIServer pid=10) Traceback (most recent call last):
(APIServer pid=10)   File "y.py", line 8, in main
(APIServer pid=10) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'x': 1}
"""


def test_a_log_is_cut_down_to_the_reasons() -> None:
    assert reasons(LOG) == ["ValueError: 9 GiB of KV cache are needed, 1 GiB is there."]


def test_a_log_without_a_fault_gives_its_last_lines() -> None:
    assert reasons("one\n\ntwo\nthree\n=====\nfour\n") == ["two", "three", "four"]
    assert reasons("usage: x\napi_server.py: error: unrecognized arguments: --nope\n") == [
        "api_server.py: error: unrecognized arguments: --nope"
    ]
    assert reasons("") == []


@given(st.text())
def test_any_log_can_be_read(log: str) -> None:
    assert all(line and len(line) <= 301 for line in reasons(log))
