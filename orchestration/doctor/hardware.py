"""The machine itself: Python, processors, memory, folders, GPUs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from skillarena.orchestration.cluster import cores
from skillarena.orchestration.doctor.finding import Finding, Status, lacking, ok

_PYTHONS = ((3, 11), (3, 12))
_GIB = 1024**3
_USUAL_MEMORY = 4.0  # GiB: Ray, a few workers, MiniLM and a Java process
_LEAST_MEMORY = 1.0
_USUAL_DISK = 2.0  # GiB
_LEAST_DISK = 0.1
_SMI_TIMEOUT_S = 20.0
_SMI = ("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits")
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether this is a Python that TextWorld works on."""
    found = f"{platform.python_version()} ({sys.executable})"
    if version not in _PYTHONS:
        needed = " or ".join(f"{major}.{minor}" for major, minor in _PYTHONS)
        return Finding(
            Status.FAIL,
            f"Python {'.'.join(map(str, version))} ({sys.executable}); ALFWorld's engine works on {needed} only",
            f"install Python {needed} and repeat the set-up with it: make demo PYTHON=/path/to/python3.12",
        )
    return ok(found, version=platform.python_version(), executable=sys.executable)


def processors() -> Finding:
    """CPU cores that this process may use."""
    count = cores()
    found = f"{count} of {os.cpu_count()} usable"
    if count < 2:
        return Finding(
            Status.WARN,
            f"{found}: everything runs in turn, slowly",
            "give the machine, the container or `taskset` at least 2 cores",
            {"cores": count},
        )
    return ok(found, cores=count)


def memory(limit_file: Path = _CGROUP_LIMIT) -> Finding:
    """Memory that is free, and the limit of a container where there is one.

    Args:
        limit_file: the container's limit in bytes, or the word ``max``.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB
    free = _available() / _GIB
    limit = limit_file.read_text().strip() if limit_file.is_file() else "max"
    if limit.isdecimal() and int(limit) / _GIB < total:
        total, free = int(limit) / _GIB, min(free, int(limit) / _GIB)
    found = f"{free:.1f} GiB free of {total:.1f}"
    facts = {"free_gib": round(free, 1), "total_gib": round(total, 1)}
    if free < _USUAL_MEMORY:
        status = Status.FAIL if free < _LEAST_MEMORY else Status.WARN
        fix = f"have {_USUAL_MEMORY:g} GiB free; less is needed with cluster.rollout_workers=1"
        return Finding(status, found, fix, facts)
    return ok(found, **facts)


def _available() -> int:
    """Bytes that could be had without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")


def folder(path: Path, option: str) -> Finding:
    """Whether files can be made in a folder, and how many; what is tried is removed again.

    Args:
        path: it may not exist yet.
        option: what chooses another one, for the fix.
    """
    there = next(place for place in [path, *path.parents] if place.exists())
    facts = {"path": str(path), "exists": there == path}
    try:
        with TemporaryDirectory(dir=there, prefix=".skillarena-doctor-") as scratch:
            (Path(scratch) / "file").write_bytes(b"x")
    except OSError as error:
        why = f"{path} cannot be written: {there}: {error.strerror}"
        return Finding(Status.FAIL, why, f"make it writable, or choose another one with {option}", facts)
    free = shutil.disk_usage(there).free / _GIB
    found = f"{path}: writable, {free:.1f} GiB free" + ("" if there == path else " (not made yet)")
    facts |= {"free_gib": round(free, 1)}
    if free < _USUAL_DISK:
        status = Status.FAIL if free < _LEAST_DISK else Status.WARN
        return Finding(status, found, f"make room, or choose another folder with {option}", facts)
    return ok(found, **facts)


def gpu(needed: float = 0.0) -> Finding:
    """NVIDIA's GPUs as its own tool lists them, and whether the installed PyTorch can use them.

    Args:
        needed: how many the experiment takes.
    """
    gpus = _listed()
    facts = {"gpus": [{"name": name, "memory_mib": memory} for name, memory in gpus]}
    if not gpus:
        if needed:
            fix = "run on a machine with GPUs, or with cluster=existing; backbone=smollm2 needs none"
            return Finding(Status.FAIL, f"none, and this experiment takes {needed:g}", fix, facts)
        return ok("none; nothing that needs one was asked for", **facts)
    found = ", ".join(f"{name} ({memory / 1024:.0f} GiB)" if memory else name for name, memory in gpus)
    if needed > len(gpus):
        fix = "ask for fewer: backbone.replicas, backbone.tensor_parallel_size, cluster.embedder_gpus"
        return Finding(Status.FAIL, f"{found}; this experiment takes {needed:g}", fix, facts)
    if find_spec("torch") is not None and not _torch_sees_gpus():
        fix = "install a build of PyTorch for this driver, for example: make demo TORCH_BACKEND=auto"
        return lacking(bool(needed), f"{found}; the installed PyTorch cannot use it", fix, **facts)
    return ok(found, **facts)


def _listed() -> list[tuple[str, int | None]]:
    """Name and MiB of each GPU; empty where the driver's tool is missing or finds none."""
    if shutil.which(_SMI[0]) is None:
        return []
    answer = subprocess.run(_SMI, capture_output=True, text=True, timeout=_SMI_TIMEOUT_S, check=False)
    lines = [line for line in answer.stdout.splitlines() if line.strip()] if answer.returncode == 0 else []
    found = [re.fullmatch(r"(.+?),\s*(\S.*)", line.strip()) for line in lines]
    return [(match[1], int(match[2]) if match[2].isdecimal() else None) for match in found if match]


def _torch_sees_gpus() -> bool:
    import torch

    return torch.cuda.is_available()
