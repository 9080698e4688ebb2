"""ScienceWorld against its stock wrapper: steps, resets, start-up, memory, and what must not change.

    python benchmarks/bench_scienceworld.py            all of it, some minutes
    python benchmarks/bench_scienceworld.py --quick    fewer steps and repeats

Both simulators run at once and get the same actions in turns, so that whatever else the machine does slows both. The
stock wrapper starts Java as it always does; the one it is compared with for equality gets the flag without which its
own traces do not repeat (``-XX:hashCode=2``).

``step`` is what an agent waits for. Our simulator goes on for a while after it has answered, as it draws the random
numbers that the stock wrapper's list of valid actions draws. It is given the time for that which the fastest model
takes to reply, so that it slows neither its own next step nor the stock wrapper's. ``steps in a row`` has no pause.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import psutil
import typer
from harness import REPEATS, Result, machine, ratio, report, seconds

from skillarena.envs.interface import Task, TextEnv
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.envs.scienceworld_tasks import SPLITS, Scene

REPEATABLE = "-XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
TYPES = (
    "boil",
    "chemistry-mix",
    "find-animal",
    "grow-fruit",
    "grow-plant",
    "inclined-plane-determine-angle",
    "lifespan-longest-lived",
    "mendelian-genetics-known-plant",
    "power-component",
    "use-thermometer",
)
THINKING_S = 0.03
ENVS = 8
"""Environments of one Java process whose memory is measured."""
MIB = 1024**2


def bench(*, quick: bool) -> Iterator[Result]:
    """All results, one after the other."""
    steps, repeats = (8, 2) if quick else (25, REPEATS)
    yield from measure(_tasks(), steps, repeats)


def measure(tasks: Sequence[Task], steps: int, repeats: int) -> Iterator[Result]:
    """All results for any tasks, numbers of steps, and repeats."""
    plans = _plans(tasks, steps)
    yield from _speed(tasks, plans, repeats)
    yield from _start_up(tasks[0], repeats)
    yield from _memory(tasks, plans)
    yield _orphans(tasks[0])
    yield _equality(tasks, plans)
    yield _isolation(tasks, plans)


def _tasks() -> list[Task]:
    every = [task for split in SPLITS for task in ScienceWorldBenchmark(split=split).tasks()]
    return [next(task for task in every if task.task_type == wanted) for wanted in TYPES]


def _plans(tasks: Sequence[Task], steps: int) -> dict[str, list[str]]:
    """The beginning of each task's gold path, by the task's id."""
    plans = {}
    with _ours() as env:
        for task in tasks:
            env.reset(task)
            plans[task.id] = env.plan()[:steps]
    return plans


@contextmanager
def _ours() -> Iterator[TextEnv]:
    env = ScienceWorldBenchmark(max_steps=10_000).make_env()
    try:
        yield env
    finally:
        env.close()


@contextmanager
def _stock(flags: str = "") -> Iterator[Any]:
    from scienceworld import ScienceWorldEnv

    options = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} {flags}".strip()
    with mock.patch.dict(os.environ, {"JAVA_TOOL_OPTIONS": options} if flags else {}):
        env = ScienceWorldEnv("", envStepLimit=10**9)
    try:
        yield env
    finally:
        env.close()


def _stock_reset(stock: Any, task: Task) -> str:
    scene = Scene.of(task)
    stock.load(scene.task, scene.variation, scene.simplifications)
    return str(stock.reset()[0])


def _speed(tasks: Sequence[Task], plans: dict[str, list[str]], repeats: int) -> Iterator[Result]:
    steps: dict[str, tuple[list[float], list[float]]] = {task.task_type: ([], []) for task in tasks}
    rows: tuple[list[float], list[float]] = ([], [])
    resets: tuple[list[float], list[float]] = ([], [])
    with _stock() as stock, _ours() as env:
        for repeat in range(repeats + 1):  # the first one warms the Java processes up
            for task in tasks:
                reset = seconds(partial(_stock_reset, stock, task)), seconds(partial(env.reset, task))
                step = [_step(stock, env, action) for action in plans[task.id]]
                env.reset(task)
                row = seconds(partial(list, map(env.step, plans[task.id])))
                if repeat:
                    for part in (0, 1):
                        resets[part].append(reset[part])
                        steps[task.task_type][part].extend(one[part] for one in step)
                    rows[0].append(sum(one[0] for one in step))
                    rows[1].append(row)
    by_type = {name: ratio(*one) for name, one in steps.items()}
    medians = {name: [statistics.median(part) for part in one] for name, one in steps.items()}
    detail = {"by_type": by_type, "stock_and_our_s": medians, "repeats": repeats}
    worst = min(by_type, key=lambda name: by_type[name])
    name = f"step, median over {len(tasks)} task types"
    yield Result("scienceworld", name, statistics.median(by_type.values()), "x", 5, detail=detail)
    yield Result("scienceworld", f"step, worst task type ({worst})", by_type[worst], "x", 4, detail=detail)
    in_a_row = [stock_s / our_s for stock_s, our_s in zip(*rows, strict=True)]
    yield Result("scienceworld", "steps in a row, median", statistics.median(in_a_row), "x", detail={"all": in_a_row})
    yield Result("scienceworld", "load and reset", ratio(*resets), "x", detail={"stock": resets[0], "ours": resets[1]})


def _step(stock: Any, env: TextEnv, action: str) -> tuple[float, float]:
    """Seconds of the same step of both, and a pause as long as a model thinks."""
    took = seconds(lambda: stock.step(action)), seconds(lambda: env.step(action))
    time.sleep(THINKING_S)
    return took


def _start_up(task: Task, repeats: int) -> Iterator[Result]:
    def stock() -> None:
        with _stock() as env:
            _stock_reset(env, task)

    def ours() -> None:
        with _ours() as env:
            env.reset(task)

    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        times[0].append(seconds(stock))
        times[1].append(seconds(ours))
    yield Result("scienceworld", "start-up to the first observation", ratio(*times), "x", detail={"s": times})


def _java(parent: psutil.Process) -> list[psutil.Process]:
    return [child for child in parent.children(recursive=True) if "java" in child.name()]


def _memory(tasks: Sequence[Task], plans: dict[str, list[str]]) -> Iterator[Result]:
    """Resident memory of the Java processes after the same play; the other one is not running then."""
    me = psutil.Process()

    def resident() -> float:
        return sum(java.memory_info().rss for java in _java(me)) / MIB

    with _stock() as stock:
        for task in tasks:
            _stock_reset(stock, task)
            for action in plans[task.id]:
                stock.step(action)
        stock_mib = resident()
    benchmark = ScienceWorldBenchmark(max_steps=10_000)
    envs = [benchmark.make_env() for _ in range(ENVS)]
    try:
        sizes = []
        for env in envs:
            for task in tasks:
                env.reset(task)
                for action in plans[task.id]:
                    env.step(action)
            sizes.append(resident())
    finally:
        for env in envs:
            env.close()
    detail = {"stock_mib": stock_mib, "ours_mib": sizes}
    yield Result("scienceworld", "Java memory, one environment", stock_mib / sizes[0], "x less", 3, detail=detail)
    further = (sizes[-1] - sizes[0]) / (len(sizes) - 1)
    yield Result("scienceworld", "Java memory, each further one", further, "MiB", 100, at_least=False, detail=detail)


_CHILD = """
import sys, time
from skillarena.envs.scienceworld import ScienceWorldBenchmark
benchmark = ScienceWorldBenchmark(task_ids=[sys.argv[1]])
env = benchmark.make_env()
env.reset(benchmark.tasks()[0])
print("playing", flush=True)
time.sleep(600)
"""


def _orphans(task: Task) -> Result:
    """Java processes that are still there 5 s after kill -9 of their parent."""
    with subprocess.Popen([sys.executable, "-c", _CHILD, task.id], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        java = _java(psutil.Process(child.pid))
        child.kill()
    time.sleep(5)
    left = sum(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in java)
    return Result(
        "scienceworld",
        "Java processes 5 s after kill -9 of their parent",
        left,
        "left",
        0,
        at_least=False,
        detail={"before": len(java)},
    )


Trace = list[tuple[str, float, bool]]


def _trace(env: TextEnv, task: Task, actions: Sequence[str]) -> Trace:
    trace = [(env.reset(task).text, 0.0, False)]
    for action in actions:
        result = env.step(action)
        trace.append((result.observation, result.score, result.done))
        if result.done:
            break
    return trace


def _stock_trace(stock: Any, task: Task, actions: Sequence[str]) -> Trace:
    trace = [(_stock_reset(stock, task), 0.0, False)]
    for action in actions:
        observation, _, done, info = stock.step(action)
        trace.append((observation, float(info["score"]), bool(done)))
        if done:
            break
    return trace


def _differences(one: Trace, other: Trace) -> int:
    return sum(a != b for a, b in zip(one, other, strict=False)) + abs(len(one) - len(other))


def _equality(tasks: Sequence[Task], plans: dict[str, list[str]]) -> Result:
    """Observations, scores and ends of gold play against the stock wrapper, which lists the valid actions each step."""
    with _stock(REPEATABLE) as stock, _ours() as env:
        pairs = [(_stock_trace(stock, t, plans[t.id]), _trace(env, t, plans[t.id])) for t in tasks]
    different = sum(_differences(*pair) for pair in pairs)
    compared = sum(len(ours) for _, ours in pairs)
    name = f"steps of {len(tasks)} tasks that differ from the stock wrapper's"
    return Result("scienceworld", name, different, "steps", 0, at_least=False, detail={"compared": compared})


def _isolation(tasks: Sequence[Task], plans: dict[str, list[str]]) -> Result:
    """Eight environments of one Java process, staggered and in threads, against each one's play alone."""
    chosen = [t for t in tasks if t.task_type not in ("boil", "find-animal")]
    with _ours() as env:
        solo = {task.id: _trace(env, task, plans[task.id]) for task in chosen}
    benchmark = ScienceWorldBenchmark(max_steps=10_000)
    envs = [benchmark.make_env() for _ in chosen]
    try:
        different = _staggered(envs, chosen, plans, solo)
        with ThreadPoolExecutor(len(envs)) as pool:
            traces = pool.map(lambda pair: _trace(pair[0], pair[1], plans[pair[1].id]), zip(envs, chosen, strict=True))
            different += sum(_differences(solo[t.id], trace) for t, trace in zip(chosen, traces, strict=True))
    finally:
        for env in envs:
            env.close()
    detail = {"tasks": [task.name for task in chosen], "steps": sum(map(len, solo.values()))}
    name = f"{len(envs)} environments at once, staggered and threaded: steps that differ from solo play"
    return Result("scienceworld", name, different, "steps", 0, at_least=False, detail=detail)


def _staggered(
    envs: Sequence[TextEnv], tasks: Sequence[Task], plans: dict[str, list[str]], solo: dict[str, Trace]
) -> int:
    """Each environment starts two steps after the one before it."""
    traces: list[Trace] = [[] for _ in envs]
    for tick in range(max(len(plan) for plan in plans.values()) + 2 * len(envs) + 1):
        for index, (env, task) in enumerate(zip(envs, tasks, strict=True)):
            at = tick - 2 * index
            if at == 0:
                traces[index].append((env.reset(task).text, 0.0, False))
            elif 0 < at <= len(plans[task.id]) and not traces[index][-1][2]:
                result = env.step(plans[task.id][at - 1])
                traces[index].append((result.observation, result.score, result.done))
    return sum(_differences(solo[task.id], trace) for task, trace in zip(tasks, traces, strict=True))


def main(
    quick: Annotated[bool, typer.Option(help="Fewer steps and repeats.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Measure; exit code 1 when a bound is missed."""
    where = machine()
    raise typer.Exit(report(bench(quick=quick), where, out))


if __name__ == "__main__":
    typer.run(main)
