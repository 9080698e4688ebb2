"""What the experiment that was asked about needs of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.orchestration.assembly import AssembledParts, build_selector, is_hosted, load_library, target
from skillarena.orchestration.cells import cache_folder, needs_of, sections
from skillarena.orchestration.plan_memory import is_here
from skillarena.orchestration.plan_survey import keys_of, server_of
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.orchestration.settings import Settings
from skillarena.selectors.checkpoint import PACKAGED

Section = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Needs:
    """Of all cells together."""

    alfworld: tuple[Section, ...]
    """Benchmark sections with ALFWorld."""
    scienceworld: tuple[Section, ...]
    keys: tuple[str, ...]
    """Environment variables with API keys."""
    servers: tuple[ServerSpec, ...]
    """vLLM servers that the run would start."""
    hub_models: tuple[str, ...]
    """Hub ids of models that are not on this machine yet."""
    packaged_embedder: bool
    gpus: float
    """GPUs of one sweep; 0 where a cluster that runs already has them."""


def needs_of_cells(all_settings: Sequence[Settings]) -> Needs:
    """Look at configurations only; nothing is started and no server is asked.

    Raises:
        SkillArenaError: a cell could not even be planned: an unknown class, a library that cannot be read.
    """
    parts = [(settings, _models(settings)) for settings in all_settings]
    backbones = _distinct(settings.backbone for settings in all_settings)
    servers = [server for section in backbones if (server := server_of(section)) is not None]
    used = [(part, getattr(settings, part).get("model")) for settings, needed in parts for part in needed]
    models = [model for part, model in used if part in ("embedder", "reranker") and isinstance(model, str)]
    models += [server.spec.model for server in servers]
    return Needs(
        alfworld=tuple(_benchmarks(all_settings, AlfworldBenchmark)),
        scienceworld=tuple(_benchmarks(all_settings, ScienceWorldBenchmark)),
        keys=tuple(dict.fromkeys(key for settings, needed in parts for key in keys_of(settings, needed))),
        servers=tuple(server.spec for server in servers),
        hub_models=tuple(dict.fromkeys(model for model in models if not is_here(model))),
        packaged_embedder=("embedder", PACKAGED) in used,
        gpus=_gpus(all_settings[0], servers=sum(s.replicas * s.spec.bundle.get("GPU", 0.0) for s in servers)),
    )


def _models(settings: Settings) -> tuple[str, ...]:
    """Models that the selector reads, and the embedder where the reranker is made of it."""
    library = load_library(settings.library)
    selector = build_selector(settings.selector, AssembledParts(sections(settings), library, cache_folder(settings)))
    needed = needs_of(selector)
    made_of_embedder = "reranker" in needed and not is_hosted(settings.reranker, "reranker")
    return tuple(dict.fromkeys([*needed, *(["embedder"] if made_of_embedder else [])]))


def _benchmarks(all_settings: Sequence[Settings], kind: type) -> Iterator[Section]:
    for section in _distinct(settings.benchmark for settings in all_settings):
        found = target(section, "benchmark")
        if isinstance(found, type) and issubclass(found, kind):
            yield section


def _gpus(settings: Settings, servers: float) -> float:
    cluster = settings.cluster
    return servers + cluster.embedder_gpus + cluster.reranker_gpus if cluster.address is None else 0.0


def _distinct(found: Iterator[Section]) -> list[Section]:
    kept: list[Section] = []
    for section in found:
        if section not in kept:
            kept.append(section)
    return kept
