"""Runs of the real thing, and of plain runners, against the slow endpoint: each in processes of its own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from plain_runners import SPLIT, benchmark_of
from slow_provider import END_TOKENS
from uneven_episodes import Episode, Load

from skillarena.orchestration.ledger import read_rows

_HERE = Path(__file__).parent
_TIMEOUT_S = 900
_SAMPLE_S = 0.25


@dataclass(frozen=True)
class Run:
    """One run of ``skillarena run``."""

    episodes: list[Episode]
    first_question_s: float
    """From the command's start to the first question to the endpoint."""
    most_at_once: int
    """Questions that the endpoint had under way at once."""
    questions: int
    cpu_s: float
    """Of all processes, from the first question to the last; the endpoint's too."""
    driver_cpu_s: float
    """Of the command's own process, likewise."""
    driver_mib: float
    """Its largest resident memory."""


@dataclass
class _Usage:
    """What the processes of a run take, as time goes by."""

    all_cpu: list[tuple[float, float]]
    """Monotonic seconds, CPU seconds so far."""
    own_cpu: list[tuple[float, float]]
    most_mib: float = 0.0


def env_seconds(load: Load) -> tuple[float, float]:
    """Median seconds of a reset and of a command in one environment alone; games are known to the cache afterwards."""
    benchmark = benchmark_of(load)
    env = benchmark.make_env()
    resets, steps = [], []
    tasks = benchmark.tasks()
    try:
        for task in tasks:
            env.reset(task)
        for task in tasks:
            start = time.perf_counter()
            env.reset(task)
            resets.append(time.perf_counter() - start)
            for _ in range(10):
                start = time.perf_counter()
                env.step("look")
                steps.append(time.perf_counter() - start)
    finally:
        env.close()
    return statistics.median(resets), statistics.median(steps)


def skillarena_run(load: Load, workers: int) -> Run:
    """Play a load with ``skillarena run`` in a folder of its own."""
    with TemporaryDirectory(prefix="skillarena-bench-") as folder:
        started = time.monotonic()
        with _provider(load) as (port, seen):
            process = subprocess.Popen(
                _command(load, workers, port), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            with _sampled(process) as usage:
                _, err = process.communicate(timeout=_TIMEOUT_S)
        if process.returncode:
            raise RuntimeError(f"the run failed with exit code {process.returncode}:\n{err}")
        rows = [row for cell in Path(folder).glob("outputs/cells/*") for row in read_rows(cell).rows]
    episodes = [Episode(r.finished_at - r.wall_seconds, r.finished_at, r.llm_turns, r.env_seconds) for r in rows]
    first, last = min(seen["asked"]), max(seen["asked"])
    return Run(
        episodes,
        first - started,
        seen["most"],
        len(seen["asked"]),
        _between(usage.all_cpu, first, last) + seen["cpu_s"],
        _between(usage.own_cpu, first, last),
        usage.most_mib,
    )


def plain_run(name: str, load: Load) -> list[Episode]:
    """Play a load with one of ``plain_runners``."""
    with _provider(load) as (port, _):
        command = [sys.executable, str(_HERE / "plain_runners.py"), name, json.dumps(asdict(load)), str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(f"{name} failed with exit code {done.returncode}:\n{done.stderr}")
    return [Episode(**plain) for plain in json.loads(done.stdout)]


def _command(load: Load, workers: int, port: int) -> list[str]:
    settings = (
        "benchmark=alfworld",
        f"benchmark.split={SPLIT}",
        f"benchmark.limit={load.games}",
        f"seed={','.join(map(str, range(load.seeds)))}",
        f"agent.max_tokens={END_TOKENS}",
        "selector=none",
        "backbone=openai_compatible",
        f"backbone.base_url=http://127.0.0.1:{port}/v1",
        "backbone.model=slow",
        "backbone.api_key_env=null",
        f"cluster.rollout_workers={workers}",
        f"cluster.min_rollout_workers={workers}",
        f"cluster.episodes_per_worker={load.at_once // workers}",
        "tracking.enabled=false",
        "run.bootstrap_resamples=100",
    )
    return [sys.executable, "-m", "skillarena.orchestration.cli", "run", "-m", *settings]


@contextmanager
def _provider(load: Load) -> Iterator[tuple[int, dict[str, Any]]]:
    """The endpoint's port, and what it has seen, which is known when the block is over."""
    ends = [str(load.shortest), str(load.longest)]
    command = [sys.executable, str(_HERE / "slow_provider.py"), str(load.latency_s), *ends]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    seen: dict[str, Any] = {}
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), seen
        seen |= json.loads(process.communicate("", timeout=30)[0])
    finally:
        process.kill()


@contextmanager
def _sampled(process: subprocess.Popen[str]) -> Iterator[_Usage]:
    usage = _Usage([], [])
    done = threading.Event()
    used: dict[int, float] = {}

    def sample() -> None:
        while not done.wait(_SAMPLE_S):
            try:
                own = psutil.Process(process.pid)
                for one in (own, *own.children(recursive=True)):
                    times = one.cpu_times()
                    used[one.pid] = times.user + times.system
                usage.most_mib = max(usage.most_mib, own.memory_info().rss / 1024**2)
            except psutil.NoSuchProcess:
                continue  # one ended while it was looked at
            now = time.monotonic()
            usage.all_cpu.append((now, sum(used.values())))
            usage.own_cpu.append((now, used[process.pid]))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield usage
    finally:
        done.set()
        thread.join()


def _between(samples: list[tuple[float, float]], first: float, last: float) -> float:
    inside = [sample for sample in samples if first <= sample[0] <= last]
    if len(inside) < 2:
        return float("nan")
    (begin, before), (end, after) = inside[0], inside[-1]
    return (after - before) / (end - begin) * (last - first)


def data_used() -> str:
    """Which games are played."""
    return "generated games" if SPLIT == "generated_seen" else "ALFWorld's own games"
