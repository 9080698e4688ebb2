"""A vLLM server as plain data: what distinguishes it from another, and how it is started."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from skillarena.conf.errors import ConfigError

MODULE = "vllm.entrypoints.openai.api_server"
_GUARD = "skillarena.orchestration.serving.wants_key.WantsKey"

_FOUND = ("commit", "folder")  # found out about ``model`` and ``revision``; adds nothing to them

_OWN_FLAGS = frozenset(
    {
        "api-key",
        "chat-template",
        "dtype",
        "gpu-memory-utilization",
        "hf-overrides",
        "host",
        "max-model-len",
        "middleware",
        "model",
        "port",
        "quantization",
        "revision",
        "runner",
        "seed",
        "served-model-name",
        "tensor-parallel-size",
        "trust-remote-code",
    }
)


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """One model server. Equal specs are one server, whatever cells use it.

    Raises:
        ConfigError: ``engine_args`` set what has an option of its own, a key, or foreign code.
    """

    model: str
    """A folder, a hub id, or ``smollm2``."""
    served_name: str
    """The model's name in requests."""
    revision: str | None = None
    """Branch, tag or commit on the hub."""
    commit: str | None = None
    """What ``revision`` stands for at present; served if known."""
    folder: str | None = None
    """Absolute path of a model that is a folder, if known."""
    device: Literal["cpu", "cuda"] = "cuda"
    num_cpus: int | None = None
    """CPU cores; None: all of the machine's on a CPU, one beside a GPU."""
    tensor_parallel_size: int = 1
    """GPUs (or CPU processes) that share the model."""
    dtype: str = "auto"
    """Of weights and activations; see ``dtype_on_cpu`` for ``auto``."""
    quantization: str | None = None
    max_model_len: int | None = None
    """Longest prompt and reply together in tokens; None: the model's own."""
    gpu_memory_utilization: float | None = None
    """Part of each GPU's memory; None: vLLM's default."""
    kv_cache_gib: int = 4
    """Memory for the key-value cache of each process on a CPU, in GiB."""
    seed: int = 0
    runner: Literal["generate", "pooling"] = "generate"
    hf_overrides: Mapping[str, Any] = field(default_factory=dict)
    """Changes of the model's config.json."""
    chat_template: str | None = None
    """File or text of a template; None: the model's own."""
    engine_args: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments, without dashes. True is the bare flag, False its ``no-`` form, None leaves it out, a list
    is several words, and a mapping becomes JSON."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further environment variables."""
    module: str = MODULE
    """Python module that is run; another one must understand the same arguments and answer the same requests."""

    def __post_init__(self) -> None:
        taken = sorted(flag for flag in self.engine_args if _dashed(flag).removeprefix("no-") in _OWN_FLAGS)
        if taken:
            raise ConfigError(
                f"engine_args cannot set {', '.join(taken)}",
                "use the option of that name; keys are made for each run, and a model's own code is never run",
            )

    @property
    def name(self) -> str:
        """Readable, and another one for whatever changes the server; the same on every node, with or without vLLM."""
        fields = {name: value for name, value in asdict(self).items() if name not in _FOUND}
        whole = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
        return f"{re.sub(r'[^A-Za-z0-9.]+', '-', self.served_name).strip('-')[:48]}-{whole[:8]}"

    @property
    def bundle(self) -> dict[str, float]:
        """What one replica takes of a node, in Ray's words."""
        gpus = {"GPU": float(self.tensor_parallel_size)} if self.device == "cuda" else {}
        return {"CPU": float(self.num_cpus or 1), **gpus}

    def arguments(self, host: str, port: int, *, location: str, bf16_cpu: bool) -> list[str]:
        """Command line arguments of the server; they hold no secret.

        Args:
            host: address to listen on.
            port: likewise.
            location: where the model is on this node: a folder or a hub id.
            bf16_cpu: the node's CPU computes in bfloat16.
        """
        options: dict[str, Any] = {
            "host": host,
            "port": port,
            "model": location,
            "served-model-name": self.served_name,
            "revision": self.commit or self.revision,
            "dtype": dtype_on_cpu(self.dtype, bf16_cpu) if self.device == "cpu" else self.dtype,
            "quantization": self.quantization,
            "max-model-len": self.max_model_len,
            "tensor-parallel-size": self.tensor_parallel_size,
            "gpu-memory-utilization": self.gpu_memory_utilization if self.device == "cuda" else None,
            "seed": self.seed,
            "runner": self.runner,
            "hf-overrides": self.hf_overrides or None,
            "chat-template": self.chat_template,
            "enable-prompt-tokens-details": True,
            "middleware": _GUARD,
            "disable-uvicorn-access-log": True,
        }
        extra = {_dashed(flag): value for flag, value in self.engine_args.items()}
        return [word for flag, value in (options | extra).items() for word in _words(flag, value)]

    def environment(self, cores: int) -> dict[str, str]:
        """Environment variables of the server, beside those of the process that starts it.

        Args:
            cores: CPU cores of the node, taken when ``num_cpus`` is None.
        """
        own = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_COLOR": "0"}
        if self.device == "cpu":
            own |= {
                # Binding threads to cores would know nothing of other servers on the node and keep one core free.
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "OMP_NUM_THREADS": str(self.num_cpus or cores),
                "VLLM_CPU_KVCACHE_SPACE": str(self.kv_cache_gib),
            }
        return own | dict(self.env)


def dtype_on_cpu(dtype: str, bf16_cpu: bool) -> str:
    """The number format for a CPU: ``auto`` is float32 where bfloat16 has to be emulated, which is 6 times slower."""
    return "float32" if dtype == "auto" and not bf16_cpu else dtype


def computes_in_bf16(cpuinfo: str) -> bool:
    """Whether a CPU has instructions for bfloat16, from the text of ``/proc/cpuinfo``."""
    return bool({"avx512_bf16", "amx_bf16", "bf16"} & set(cpuinfo.split()))


def _dashed(flag: str) -> str:
    return flag.lstrip("-").replace("_", "-")


def _words(flag: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, list | tuple):
        return [f"--{flag}", *map(str, value)]
    if isinstance(value, Mapping):
        return [f"--{flag}", json.dumps(value, default=dict)]
    return [f"--{flag}", str(value)]
