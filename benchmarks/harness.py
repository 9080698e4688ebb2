"""Measuring one part against another in the same run: interleaved, by medians, with the machine noted beside it."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import orjson
from rich import box
from rich.console import Console
from rich.table import Table

REPEATS = 5
_PACKAGES = ("skillarena", "alfworld", "textworld", "scienceworld", "py4j", "ray", "numpy", "torch", "faiss-cpu")
_PACKAGES += ("sentence-transformers",)


@dataclass(frozen=True)
class Result:
    """One line of the table: a ratio or a quantity, and what it has to be."""

    part: str
    """For example ``scienceworld``."""
    name: str
    """What was measured, in words."""
    value: float
    unit: str
    """``x`` for a ratio: the stock part's time over ours."""
    bound: float | None = None
    """What the value has to reach, or stay under; None where nothing is promised."""
    at_least: bool = True
    """The bound is a lower one."""
    detail: dict[str, Any] = field(default_factory=dict)
    """What the value was made from: medians, repeats, sizes."""

    @property
    def reached(self) -> bool | None:
        """Whether the bound holds; None without one."""
        if self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """What one call takes by a clock."""
    started = clock()
    call()
    return clock() - started


def interleaved(
    parts: Sequence[Callable[[], object]], repeats: int = REPEATS, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds of each part, repeated in turns whose order changes, so that what slows the machine slows all of them.

    Args:
        parts: what is measured; each is called once before, unmeasured.
        repeats: measured calls of each.
        clock: ``time.process_time`` counts this process's CPU instead.
    """
    for part in parts:
        part()
    times: list[list[float]] = [[] for _ in parts]
    for turn in range(repeats):
        order = range(len(parts)) if turn % 2 == 0 else reversed(range(len(parts)))
        for index in order:
            gc.collect()
            times[index].append(seconds(parts[index], clock))
    return times


def ratio(stock: Sequence[float], ours: Sequence[float]) -> float:
    """The stock part's median over ours."""
    return statistics.median(stock) / statistics.median(ours)


def machine() -> dict[str, Any]:
    """Where the numbers come from."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in _lines(info) if line.startswith("model name")]
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3, 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2),
        "versions": versions,
    }


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def report(results: Iterable[Result], where: dict[str, Any], out: Path | None) -> int:
    """Print the table, write it as JSON where asked, and return the exit code: 1 when a bound is missed."""
    found = list(results)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        plain = {"machine": where, "results": [{**asdict(result), "reached": result.reached} for result in found]}
        out.write_bytes(orjson.dumps(plain, option=orjson.OPT_INDENT_2))
    console = Console(highlight=False)
    console.print(_table(found))
    console.print(_about(where), markup=False, soft_wrap=True)
    return int(any(result.reached is False for result in found))


def _table(results: Sequence[Result]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("part")
    table.add_column("what", overflow="fold")
    for heading in ("measured", "bound", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        sign = ">=" if result.at_least else "<="
        bound = "" if result.bound is None else f"{sign} {number(result.bound)} {result.unit}"
        verdict = {True: "reached", False: "MISSED", None: ""}[result.reached]
        table.add_row(result.part, result.name, f"{number(result.value)} {result.unit}", bound, verdict)
    return table


def number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _about(where: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    return (
        f"{where['cores']} cores of {where['cpu']}, {where['memory_gib']} GiB, {where['system']}, Python "
        f"{where['python']}, load before {where['load_before']}\n{versions}"
    )
