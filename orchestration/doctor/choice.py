"""Which checks there are, and which of them an experiment needs."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from pathlib import Path

from skillarena.orchestration.cells import cache_folder
from skillarena.orchestration.doctor.checking import Check
from skillarena.orchestration.doctor.clock import clock
from skillarena.orchestration.doctor.finding import Status
from skillarena.orchestration.doctor.hardware import folder, gpu, memory, processors, python
from skillarena.orchestration.doctor.models import api_keys, embedder_weights, hub, hub_address, vllm
from skillarena.orchestration.doctor.needs import Needs
from skillarena.orchestration.doctor.packages import packages
from skillarena.orchestration.doctor.ray_start import ray
from skillarena.orchestration.doctor.simulators import alfworld, java, scienceworld
from skillarena.orchestration.doctor.tracking import is_server, tracking
from skillarena.orchestration.settings import Settings
from skillarena.orchestration.tracking_store import tracking_uri

_VLLM_TIMEOUT_S = 120.0  # its server's imports alone take a quarter of a minute
_HUB_TIMEOUT_S = 12.0  # finding a host's address knows no time-out of its own
_START_TIMEOUT_S = 60.0  # of Ray and Java: seconds on an idle machine, half a minute on a busy one
_GRACE_S = 2.0  # for a check to end its process and tell why


def all_checks(settings: Settings) -> list[Check]:
    """Everything there is to check, when no experiment is named.

    Args:
        settings: the default configuration.
    """
    here = find_spec("scienceworld") is not None
    return [
        *_machine(settings),
        Check("GPU", gpu),
        Check("Java", partial(java, None, needed=here)),
        _ray(settings),
        Check("vLLM", partial(vllm, (), _VLLM_TIMEOUT_S)),
        Check("ALFWorld", partial(alfworld, ())),
        Check("ScienceWorld", partial(scienceworld, ()), _START_TIMEOUT_S),
        Check("embedder", partial(embedder_weights, needed=False)),
        Check("API keys", partial(api_keys, None)),
        Check("hub", partial(hub, ()), _HUB_TIMEOUT_S, Status.WARN),
        _tracking(settings),
        _clock(settings),
    ]


def checks_for(settings: Settings, needs: Needs) -> list[Check]:
    """What an experiment needs, and nothing else.

    Args:
        settings: of one of its cells, for what all of them share.
        needs: of all cells together.
    """
    chosen = _machine(settings)
    if needs.gpus:
        chosen.append(Check("GPU", partial(gpu, needs.gpus)))
    if needs.scienceworld:
        chosen.append(Check("Java", partial(java, needs.scienceworld[0].get("java"), needed=True)))
    chosen.append(_ray(settings))
    if needs.servers and settings.cluster.address is None:
        chosen.append(Check("vLLM", partial(vllm, needs.servers, _VLLM_TIMEOUT_S - _GRACE_S), _VLLM_TIMEOUT_S))
    if needs.alfworld:
        chosen.append(Check("ALFWorld", partial(alfworld, needs.alfworld)))
    if needs.scienceworld:
        chosen.append(Check("ScienceWorld", partial(scienceworld, needs.scienceworld), _START_TIMEOUT_S))
    if needs.packaged_embedder:
        chosen.append(Check("embedder", partial(embedder_weights, needed=True)))
    if needs.keys:
        chosen.append(Check("API keys", partial(api_keys, needs.keys)))
    if needs.hub_models:
        chosen.append(Check("hub", partial(hub, needs.hub_models), _HUB_TIMEOUT_S))
    if settings.tracking.enabled:
        chosen.append(_tracking(settings))
    return [*chosen, _clock(settings)]


def _machine(settings: Settings) -> list[Check]:
    output, cache = Path(settings.output_dir).absolute(), cache_folder(settings).expanduser()
    return [
        Check("Python", python),
        Check("packages", packages),
        Check("CPU cores", processors),
        Check("memory", memory),
        Check("output folder", partial(folder, output, "output_dir=FOLDER")),
        Check("cache folder", partial(folder, cache, "SKILLARENA_CACHE or cache_dir=FOLDER")),
    ]


def _ray(settings: Settings) -> Check:
    return Check("Ray", partial(ray, settings.cluster, _START_TIMEOUT_S - _GRACE_S), _START_TIMEOUT_S)


def _tracking(settings: Settings) -> Check:
    return Check("MLflow", partial(tracking, settings.tracking, settings.output_dir))


def _clock(settings: Settings) -> Check:
    store = tracking_uri(settings.tracking, settings.output_dir)
    servers = [store] if settings.tracking.enabled and is_server(store) else []
    hub_url = hub_address()
    return Check("clock", partial(clock, [*servers, *([hub_url] if hub_url else [])]), late=Status.WARN)
