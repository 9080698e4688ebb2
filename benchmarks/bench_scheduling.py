"""Scheduling: `skillarena run` against what the endpoint's latency allows, and against plain ways to do the same.

    python benchmarks/bench_scheduling.py            all of it, some ten minutes
    python benchmarks/bench_scheduling.py --quick    fewer episodes, one repeat
    python benchmarks/bench_scheduling.py --out FILE

Real ALFWorld games (those of ALFWORLD_DATA where that is set, else generated ones) are played against a chat endpoint
in a process of its own that answers after a fixed time and ends each episode after 5 to 30 turns, drawn from its seed
and its opening, so every runner plays the same episodes. All runners use the same agent, HTTP client and environments
and are timed from the first reset to the last end, start-up left out:

* ideal: the same episodes in the same order when nothing is ever lost, each turn taking the latency and the time of
  one command in one environment alone. At the end slots run dry while the last episodes go on: no order that does not
  know the lengths avoids that tail, so it belongs to this ideal; the figure without it, and the tail, are given too;
* lockstep: batches turn by turn, everyone waiting for the slowest of the batch;
* threads, processes: a thread pool and a process pool, with as many members as there are episodes at once.

With 256 episodes at once the endpoint takes longer to answer: at 200 ms two cores could not do the work of any runner.

The driver's cost is measured twice: 100,000 units through its real loop without processes (``queue_run.py``), and
2,000 one-turn episodes through real Ray processes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from harness import REPEATS, Result, machine, report
from real_runs import Run, data_used, env_seconds, plain_run, skillarena_run
from uneven_episodes import Episode, Load, ideal, per_hour, span, tail, without_tail

PART = "scheduling"
GOAL = 0.9
WORKERS = 2
_QUEUE_TIMEOUT_S = 900
_ONE = Load(games=3, seeds=1, at_once=1, latency_s=0.2)
_FEW = Load(games=24, seeds=1, at_once=8, latency_s=0.2)
_MAIN = Load(games=24, seeds=8, at_once=64, latency_s=0.2)
_MANY = Load(games=24, seeds=22, at_once=256, latency_s=0.5)
_QUICK = Load(games=24, seeds=4, at_once=64, latency_s=0.2)


def bench(*, quick: bool) -> Iterator[Result]:
    """All results, one after the other."""
    with _empty_cache():
        yield _start_up_cold()
        if quick:
            yield from compare(_QUICK, ("lockstep", "threads"), goal=GOAL)
        else:
            yield from compare(_MAIN, ("lockstep", "threads"), once=("processes",), repeats=REPEATS, goal=GOAL)
            yield from compare(_ONE, ("threads",))
            yield from compare(_FEW, ("lockstep", "threads", "processes"))
            yield from compare(_MANY, ("lockstep", "threads"))
        yield from queue(10_000 if quick else 100_000)
        yield from through_ray(480 if quick else 2_000)


def _start_up_cold() -> Result:
    run = skillarena_run(Load(games=1, seeds=1, at_once=1, latency_s=0.0, shortest=1, longest=1), 1)
    return Result(PART, "start-up to the first question, nothing cached", run.first_question_s, "s")


def compare(
    load: Load, others: tuple[str, ...], *, once: tuple[str, ...] = (), repeats: int = 1, goal: float | None = None
) -> Iterator[Result]:
    """`skillarena run` against the ideal and the other runners.

    Args:
        load: what all of them play.
        others: names of plain runners.
        once: names of plain runners that play in the first turn only.
        repeats: turns in which all play, one after the other.
        goal: the part of the ideal that has to be reached.
    """
    reset_s, step_s = env_seconds(load)
    runs: list[Run] = []
    plain: dict[str, list[list[Episode]]] = {name: [] for name in (*others, *once)}
    for turn in range(repeats):
        runs.append(skillarena_run(load, min(WORKERS, load.at_once)))
        for name in plain if turn == 0 else others:
            plain[name].append(plain_run(name, load))
    for name, played in plain.items():
        _check_same(runs[0].episodes, played[0], name)
    yield from _ours(load, runs, load.latency_s + step_s, reset_s, goal)
    for name, played in plain.items():
        ratios = [per_hour(run.episodes) / per_hour(other) for run, other in zip(runs, played, strict=False)]
        detail = {"episodes_per_hour": [per_hour(other) for other in played], "ratios": ratios}
        bound = 1.5 if name == "lockstep" and goal is not None else None
        yield Result(PART, f"{_shown(load)}: against {name}", median(ratios), "x", bound, detail=detail)


def _ours(load: Load, runs: list[Run], turn_s: float, reset_s: float, goal: float | None) -> Iterator[Result]:
    best = [ideal(run.episodes, load.at_once, turn_s, reset_s) for run in runs]
    parts = [span(episodes) / span(run.episodes) for episodes, run in zip(best, runs, strict=True)]
    detail: dict[str, Any] = {
        "games": data_used(),
        "episodes": load.episodes,
        "repeats": len(runs),
        "parts": parts,
        "turn_ms": 1000 * turn_s,
        "reset_ms": 1000 * reset_s,
        "seconds": [span(run.episodes) for run in runs],
        "ideal_s": [span(episodes) for episodes in best],
        "ideal_without_tail_s": without_tail(best[0], load.at_once, turn_s, reset_s),
        "calls_at_once": [run.most_at_once for run in runs],
        "cpu_ms_a_turn": [1000 * run.cpu_s / run.questions for run in runs],
        "driver_cpu_ms_an_episode": [1000 * run.driver_cpu_s / load.episodes for run in runs],
        "load_after": os.getloadavg()[0],
    }
    yield Result(PART, f"{_shown(load)}: episodes", median(per_hour(r.episodes) for r in runs), "/h", detail=detail)
    yield Result(PART, f"{_shown(load)}: part of the ideal", median(parts), "", goal, detail=detail)
    lost = [tail(run.episodes, load.at_once) for run in runs]
    least = tail(best[0], load.at_once)
    name = f"{_shown(load)}: slots running dry at the end, {least:.1f} s in the ideal"
    yield Result(PART, name, median(lost), "s", detail={"all": lost})
    if goal is not None:
        starts = [run.first_question_s for run in runs]
        name = "start-up to the first question, games known"
        yield Result(PART, name, median(starts), "s", detail={"all": starts})


def _shown(load: Load) -> str:
    return f"{load.at_once} at once, {1000 * load.latency_s:g} ms"


def _check_same(ours: list[Episode], others: list[Episode], name: str) -> None:
    one, other = (sorted(episode.turns for episode in episodes) for episodes in (ours, others))
    if one != other:
        raise RuntimeError(f"{name} played other episodes: {one} turns here, {other} there")


def queue(units: int) -> Iterator[Result]:
    """What very many units take of the driver."""
    script = Path(__file__).with_name("queue_run.py")
    done = subprocess.run(
        [sys.executable, str(script), str(units)], capture_output=True, text=True, timeout=_QUEUE_TIMEOUT_S
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed with exit code {done.returncode}:\n{done.stderr}")
    found = json.loads(done.stdout)
    each = 1000 * found["cpu_s"] / units
    queued = f"{units:,} queued units"
    yield Result(PART, f"{queued}: driver CPU for each", each, "ms", 1, at_least=False, detail=found)
    yield Result(PART, f"{queued}: driver memory", found["memory_mib"], "MiB", 1000, at_least=False, detail=found)
    yield Result(PART, f"{found['rows']:,} finished episodes: read again to resume", found["resume_s"], "s")


def through_ray(units: int) -> Iterator[Result]:
    """What one-turn episodes take of the driver when Ray's processes play them."""
    games = 20
    load = Load(games, -(-units // games), at_once=16, latency_s=0.0, shortest=1, longest=1)
    run = skillarena_run(load, WORKERS)
    detail = {"memory_mib": run.driver_mib, "episodes_per_hour": per_hour(run.episodes)}
    each = 1000 * run.driver_cpu_s / load.episodes
    name = f"{load.episodes:,} units through Ray: driver CPU for each"
    yield Result(PART, name, each, "ms", detail=detail)
    yield Result(PART, f"{load.episodes:,} units through Ray: driver memory", run.driver_mib, "MiB", detail=detail)


@contextmanager
def _empty_cache() -> Iterator[None]:
    before = os.environ.get("SKILLARENA_CACHE")
    with TemporaryDirectory(prefix="skillarena-bench-cache-") as folder:
        os.environ["SKILLARENA_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("SKILLARENA_CACHE")
            if before is not None:
                os.environ["SKILLARENA_CACHE"] = before


def main(
    quick: Annotated[bool, typer.Option(help="Fewer episodes, one repeat.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Measure; exit code 1 when a bound is missed."""
    where = machine()
    raise typer.Exit(report(bench(quick=quick), where, out))


if __name__ == "__main__":
    typer.run(main)
