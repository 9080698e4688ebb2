"""Hours of load: does memory, the number of files or of threads grow while hundreds of episodes are under way?

    python benchmarks/soak.py --minutes 30 --at-once 256

A sweep plays against an endpoint whose answers take between half a second and a minute. Every process of it is looked
at every few seconds; after the time is over it is asked to stop, which it has to do cleanly. The first third of the
samples is left out: until then games are loaded and pools fill up.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from plain_runners import SPLIT
from scipy.stats import linregress
from slow_provider import END_TOKENS

_HERE = Path(__file__).parent
_LATENCY = "0.5:60"
_TURNS = (5, 40)
_SAMPLE_S = 5.0
_WARM_UP = 1 / 3  # of the samples
_START_S = 300.0
_STOP_S = 180.0
_WORKERS = 2
_GAMES = 24
_MOST_A_MINUTE = 0.6  # episodes that one place can play in a minute, with room to spare

ROLES = {
    "driver": "skillarena.orchestration.cli",
    "rollout workers": "ray::RolloutWorker",
    "governor": "ray::Governor",
    "raylet": "/raylet/raylet",
    "gcs": "gcs_server",
}


@dataclass(frozen=True)
class Sample:
    """All processes of a role at one moment."""

    at_s: float
    """Seconds since the first sample."""
    mib: float
    """Resident memory."""
    files: int
    """Open file descriptors."""
    threads: int


@dataclass(frozen=True)
class Growth:
    """What became of a role's processes after the warm-up."""

    role: str
    first: Sample
    last: Sample
    mib_per_minute: float
    """Slope of a straight line through resident memory."""
    error: float
    """Half of the slope's 95 % interval, samples taken as independent."""


def soak(minutes: float, at_once: int) -> tuple[list[Growth], int, int]:
    """Play for some minutes.

    Args:
        minutes: from the first finished episode on.
        at_once: episodes under way.

    Returns:
        Growth by role, finished episodes, and those of them without a result.
    """
    with TemporaryDirectory(prefix="skillarena-soak-") as folder, _provider() as port:
        log = Path(folder) / "log"
        with log.open("w") as file:
            process = subprocess.Popen(_command(at_once, minutes, port), cwd=folder, stdout=file, stderr=file)
        try:
            _wait_for_episodes(process, Path(folder), log)
            samples = _sample(process, minutes * 60)
            process.send_signal(signal.SIGINT)
            if process.wait(_STOP_S) != 130:
                raise RuntimeError(f"the run did not stop cleanly:\n{log.read_text()[-3000:]}")
        finally:
            process.kill()
        lines = [line for path in _ledgers(Path(folder)) for line in path.read_bytes().splitlines()]
    lost = sum(b'"outcome":"infra_error"' in line for line in lines)
    return [_growth(role, found) for role, found in samples.items()], len(lines), lost


def _command(at_once: int, minutes: float, port: int) -> list[str]:
    seeds = 2 + int((minutes + 2) * at_once * _MOST_A_MINUTE / _GAMES)
    settings = (
        "benchmark=alfworld",
        f"benchmark.split={SPLIT}",
        f"benchmark.limit={_GAMES}",
        f"seed=range(0,{seeds})",
        f"agent.max_tokens={END_TOKENS}",
        "selector=none",
        "backbone=openai_compatible",
        f"backbone.base_url=http://127.0.0.1:{port}/v1",
        "backbone.model=slow",
        "backbone.api_key_env=null",
        f"backbone.max_concurrency={at_once}",
        f"cluster.rollout_workers={_WORKERS}",
        f"cluster.min_rollout_workers={_WORKERS}",
        f"cluster.episodes_per_worker={at_once // _WORKERS}",
        "tracking.enabled=false",
        "run.bootstrap_resamples=100",
    )
    return [sys.executable, "-m", "skillarena.orchestration.cli", "run", "-m", *settings]


@contextmanager
def _provider() -> Iterator[int]:
    command = [sys.executable, str(_HERE / "slow_provider.py"), _LATENCY, *map(str, _TURNS)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()


def _ledgers(folder: Path) -> list[Path]:
    return list(folder.glob("outputs/cells/*/episodes.jsonl"))


def _wait_for_episodes(process: subprocess.Popen[bytes], folder: Path, log: Path) -> None:
    ends = time.monotonic() + _START_S
    while not any(path.stat().st_size for path in _ledgers(folder)):
        if process.poll() is not None or time.monotonic() > ends:
            raise RuntimeError(f"no episode came to its end:\n{log.read_text()[-3000:]}")
        time.sleep(1)


def _sample(process: subprocess.Popen[bytes], seconds: float) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = defaultdict(list)
    started = time.monotonic()
    while (now := time.monotonic() - started) < seconds:
        own = psutil.Process(process.pid)
        for role, members in _by_role([own, *own.children(recursive=True)]).items():
            samples[role].append(_look_at(members, now))
        time.sleep(_SAMPLE_S)
    return samples


def _by_role(processes: Sequence[psutil.Process]) -> dict[str, list[psutil.Process]]:
    found: dict[str, list[psutil.Process]] = defaultdict(list)
    for process in processes:
        try:
            words = " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        for role, mark in ROLES.items():
            if mark in words:
                found[role].append(process)
    return found


def _look_at(members: Sequence[psutil.Process], now: float) -> Sample:
    mib = sum(member.memory_info().rss for member in members) / 2**20
    return Sample(now, mib, sum(m.num_fds() for m in members), sum(m.num_threads() for m in members))


def _growth(role: str, samples: Sequence[Sample]) -> Growth:
    kept = samples[int(len(samples) * _WARM_UP) :]
    line = linregress([sample.at_s / 60 for sample in kept], [sample.mib for sample in kept])
    return Growth(role, kept[0], kept[-1], line.slope, 1.96 * line.stderr)


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--at-once", type=int, default=256)
    given = parser.parse_args()
    growths, episodes, lost = soak(given.minutes, given.at_once)
    print(
        f"{given.at_once} episodes at once for {given.minutes:g} minutes: {episodes:,} finished, {lost} of them lost\n"
    )
    print("| processes | MiB after the warm-up | at the end | MiB per minute | open files | threads |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for growth in growths:
        first, last = growth.first, growth.last
        print(
            f"| {growth.role} | {first.mib:.0f} | {last.mib:.0f} | {growth.mib_per_minute:+.2f} ± {growth.error:.2f} |"
            f" {first.files} → {last.files} | {first.threads} → {last.threads} |"
        )


if __name__ == "__main__":
    main()
