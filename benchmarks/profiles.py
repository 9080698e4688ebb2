"""Where the time goes in what is left: a profile of one part, by the functions that take most of it themselves.

    python benchmarks/profiles.py alfworld-step        an ALFWorld step with its admissible commands
    python benchmarks/profiles.py alfworld-reset       the reset of a game that was never seen
    python benchmarks/profiles.py scienceworld-step    a ScienceWorld step, in Java (needs a JDK: jcmd and jfr)
    python benchmarks/profiles.py driver               the driver, an episode without any being played

A reset is profiled by time, as it waits for the process that grounds games; Python elsewhere by CPU. Its profiler slows
small functions more than large ones, so shares are a hint where to look and no measurement.
"""

from __future__ import annotations

import cProfile
import pstats
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import bench_alfworld
import bench_scienceworld
import typer
from harness import machine
from queue_run import queue_run
from rich import box
from rich.console import Console
from rich.table import Table

from skillarena.envs.interface import TextEnv
from skillarena.envs.scienceworld_env import ScienceWorldEnv

ROWS = 14
_GAMES = 12
_STEPS = 15
_UNITS = 5_000
_ROUNDS = 8
"""Of ScienceWorld play; Java is slow at first."""
_SAMPLE = re.compile(r"stackTrace = \[\n(.*?)\n\s*\]", re.DOTALL)

Shares = dict[str, float]
"""Part of the time by function."""


def alfworld_step() -> Shares:
    """Random play of some games, all of whose texts are new."""
    tasks = bench_alfworld._tasks()[:_GAMES]
    with closing(bench_alfworld._env()) as env, _profiled() as shares:
        for task in tasks:
            env.reset(task)
            rng = Random(task.id)  # noqa: S311 (no secret)
            commands = env.admissible_commands()
            for _ in range(_STEPS):
                command = rng.choice(commands)
                shares.go_on()
                env.step(command)
                commands = env.admissible_commands()
                shares.pause()
    return shares.found


def alfworld_reset() -> Shares:
    """Games whose translations are nowhere."""
    with (
        TemporaryDirectory() as empty,
        closing(bench_alfworld._env(cache=Path(empty))) as env,
        _profiled(time.perf_counter) as shares,
    ):
        for task in bench_alfworld._tasks()[:_GAMES]:
            shares.go_on()
            env.reset(task)
            shares.pause()
    return shares.found


def driver() -> Shares:
    """Many units through the real loop."""
    with TemporaryDirectory() as folder, _profiled() as shares:
        shares.go_on()
        queue_run(_UNITS, Path(folder))
        shares.pause()
    return shares.found


def scienceworld_step() -> Shares:
    """Gold play of ten task types; of Java's samples those in which a step was under way."""
    for tool in ("jcmd", "jfr"):
        if shutil.which(tool) is None:
            raise typer.BadParameter(f"{tool} is not on PATH; a JDK has it")
    tasks = bench_scienceworld._tasks()
    plans = bench_scienceworld._plans(tasks, _STEPS)
    with bench_scienceworld._ours() as env, TemporaryDirectory() as folder:
        file = Path(folder) / "recording.jfr"
        for number in range(_ROUNDS):
            for task in tasks:
                env.reset(task)
                if number == 2 and task is tasks[0]:
                    _command("jcmd", str(_java(env)), "JFR.start", "settings=profile")
                for action in plans[task.id]:
                    env.step(action)
        _command("jcmd", str(_java(env)), "JFR.dump", f"filename={file}")
        printed = _command("jfr", "print", "--events", "jdk.ExecutionSample", "--stack-depth", "64", str(file))
    own: Counter[str] = Counter()
    for sample in _SAMPLE.findall(printed):
        frames = [frame.strip().partition("(")[0] for frame in sample.splitlines()]
        if any(frame.endswith("AgentInterface.step") for frame in frames):
            own[frames[0]] += 1
    return {name: count / own.total() for name, count in own.most_common()}


def _java(env: TextEnv) -> int:
    assert isinstance(env, ScienceWorldEnv)
    assert env._world is not None
    return env._world._jvm.pid


def _command(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True, timeout=120).stdout


class _Profile:
    """A profiler that is on only while it is told to be."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._profiler = cProfile.Profile(clock)
        self.found: Shares = {}

    def go_on(self) -> None:
        self._profiler.enable()

    def pause(self) -> None:
        self._profiler.disable()

    def finish(self) -> None:
        stats = pstats.Stats(self._profiler)
        own: Counter[str] = Counter()
        for (file, line, name), row in stats.stats.items():  # type: ignore[attr-defined]  # the only way to the files
            own[f"{Path(file).name}:{line} {name}"] += row[2]
        whole = sum(own.values())
        self.found = {name: seconds / whole for name, seconds in own.most_common()}


@contextmanager
def _profiled(clock: Callable[[], float] = time.process_time) -> Iterator[_Profile]:
    profile = _Profile(clock)
    yield profile
    profile.finish()


PARTS = {
    "alfworld-step": alfworld_step,
    "alfworld-reset": alfworld_reset,
    "scienceworld-step": scienceworld_step,
    "driver": driver,
}


def main(part: str) -> None:
    """Print the functions that take most of PART's time themselves."""
    if part not in PARTS:
        raise typer.BadParameter(f"{part!r} is none of {', '.join(PARTS)}")
    shares = PARTS[part]()
    table = Table(box=box.SIMPLE_HEAD, title=part, title_justify="left")
    table.add_column("own time", justify="right")
    table.add_column("function", overflow="fold")
    for name, share in list(shares.items())[:ROWS]:
        table.add_row(f"{share:.1%}", name)
    console = Console(highlight=False, file=sys.stdout)
    console.print(table)
    where = machine()
    console.print(f"{where['cores']} cores of {where['cpu']}, Python {where['python']}", markup=False)


if __name__ == "__main__":
    typer.run(main)
