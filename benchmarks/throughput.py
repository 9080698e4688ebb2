"""How near real runs come to the throughput that latency and environment allow.

    python benchmarks/throughput.py                  64 episodes at once, in 1 and in 4 worker processes
    python benchmarks/throughput.py --workers 2      other numbers of processes

Each run is `skillarena run` on real ALFWorld games against a chat endpoint in a process of its own that answers after
200 ms. The agent looks around until its steps are used up, so all episodes play side by side for the whole run.

* achieved: turns a second in the middle three fifths of all turns, when every episode is under way;
* ideal: episodes / (latency + env), where env is the time of one command in one environment alone on this machine;
* CPU: seconds of CPU a turn takes in all processes of the run (workers, driver, endpoint), and the turns a second that
  the machine's cores allow at that price. Where this is less than the ideal, the ideal is out of reach here.

Exit code 0: at least 90 % of the ideal in every run, and no run slower than the first by more than the same 10 %.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import psutil
import typer

GOAL = 0.9
_PROVIDER = Path(__file__).with_name("slow_provider.py")
_SAMPLE_S = 0.5
_GAMES = 16  # in each cell; seeds make as many cells as there must be


@dataclass(frozen=True)
class Load:
    """What is played."""

    episodes: int
    """All of them at once."""
    turns: int
    """Of each episode."""
    latency_s: float


@dataclass(frozen=True)
class Measured:
    """One run."""

    workers: int
    turns_per_s: float
    """In the middle of the run."""
    most_at_once: int
    """Calls that the endpoint had under way at once."""
    turns: int
    cpu_s: float
    """Of all processes, start-up and shut-down left out."""


def env_seconds(load: Load) -> float:
    """Median time of one command in one environment alone."""
    from skillarena.envs.alfworld import AlfworldBenchmark

    benchmark = AlfworldBenchmark(split="generated_seen", limit=6, max_steps=load.turns)
    env = benchmark.make_env()
    times = []
    try:
        for task in benchmark.tasks():
            env.reset(task)
            for _ in range(20):
                start = time.perf_counter()
                env.step("look")
                times.append(time.perf_counter() - start)
    finally:
        env.close()
    return statistics.median(times)


def run(load: Load, workers: int) -> Measured:
    """Play the load with this many worker processes."""
    with tempfile.TemporaryDirectory(prefix="skillarena-throughput-") as folder:
        provider = subprocess.Popen(
            [sys.executable, str(_PROVIDER), str(load.latency_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert provider.stdout is not None
        port = int(provider.stdout.readline())
        try:
            command = _command(load, workers, port)
            process = subprocess.Popen(
                command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
            with _cpu_of(process.pid) as samples:
                _, err = process.communicate(timeout=900)
        finally:
            seen = json.loads(provider.communicate("", timeout=30)[0])
        if process.returncode:
            raise RuntimeError(f"the run failed with exit code {process.returncode}:\n{err}")
    asked = sorted(seen["asked"])
    first, last = asked[len(asked) // 5], asked[len(asked) * 4 // 5]
    middle = sum(first <= at < last for at in asked)
    used = _between(samples, first, last) + seen["cpu_s"] * middle / len(asked)
    return Measured(workers, middle / (last - first), seen["most"], middle, used)


def _command(load: Load, workers: int, port: int) -> list[str]:
    settings = (
        "benchmark=alfworld",
        f"benchmark.limit={_GAMES}",
        f"seed={','.join(map(str, range(load.episodes // _GAMES)))}",
        f"benchmark.max_steps={load.turns}",
        "selector=none",
        "backbone=openai_compatible",
        f"backbone.base_url=http://127.0.0.1:{port}/v1",
        "backbone.model=slow",
        "backbone.api_key_env=null",
        f"cluster.rollout_workers={workers}",
        f"cluster.min_rollout_workers={workers}",
        f"cluster.episodes_per_worker={-(-load.episodes // workers)}",
        "tracking.enabled=false",
        "run.bootstrap_resamples=100",
    )
    return [sys.executable, "-m", "skillarena.orchestration.cli", "run", "-m", *settings]


@contextmanager
def _cpu_of(pid: int) -> Iterator[list[tuple[float, float]]]:
    """Samples of (monotonic time, CPU seconds so far) of a process and all below it."""
    samples: list[tuple[float, float]] = []
    done = threading.Event()
    used: dict[int, float] = {}

    def sample() -> None:
        while not done.wait(_SAMPLE_S):
            try:
                for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
                    with process.oneshot():
                        times = process.cpu_times()
                    used[process.pid] = times.user + times.system
            except psutil.NoSuchProcess:
                continue  # one ended while it was looked at
            samples.append((time.monotonic(), sum(used.values())))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()


def _between(samples: Sequence[tuple[float, float]], first: float, last: float) -> float:
    inside = [used for at, used in samples if first <= at <= last]
    times = [at for at, _ in samples if first <= at <= last]
    return (inside[-1] - inside[0]) / (times[-1] - times[0]) * (last - first) if len(inside) > 1 else float("nan")


def main(
    workers: Annotated[
        list[int] | None, typer.Option(help="Worker processes of a run; give it again for more runs.")
    ] = None,
    episodes: Annotated[int, typer.Option(help=f"Episodes at once, a multiple of {_GAMES}.")] = 64,
    turns: Annotated[int, typer.Option(help="Turns of each episode.")] = 60,
    latency_ms: Annotated[float, typer.Option(help="Time the endpoint takes for each answer.")] = 200.0,
) -> None:
    """Measure and print; see the top of this file."""
    if episodes % _GAMES:
        raise typer.BadParameter(f"give a multiple of {_GAMES}", param_hint="--episodes")
    load = Load(episodes, turns, latency_ms / 1000)
    cores = len(os.sched_getaffinity(0))
    env_s = env_seconds(load)
    ideal = load.episodes / (load.latency_s + env_s)
    print(f"{episodes} episodes at once, {latency_ms:g} ms latency, {1000 * env_s:.2f} ms env a turn, {cores} cores")
    print(f"ideal: {ideal:.0f} turns/s")
    runs = []
    for count in workers or [1, 4]:
        busy = psutil.getloadavg()[0]
        measured = run(load, count)
        runs.append(measured)
        cpu = measured.cpu_s / measured.turns
        part = measured.turns_per_s / ideal
        print(
            f"{count} workers: {measured.turns_per_s:.0f} turns/s, {part:.0%} of the ideal; at most"
            f" {measured.most_at_once} calls at once; {1000 * cpu:.1f} ms CPU a turn, so these cores allow"
            f" {cores / cpu:.0f} turns/s; load of the machine before: {busy:.1f}"
        )
    rates = [measured.turns_per_s for measured in runs]
    raise typer.Exit(0 if min(rates) >= GOAL * ideal and min(rates) >= GOAL * rates[0] else 1)


if __name__ == "__main__":
    typer.run(main)
