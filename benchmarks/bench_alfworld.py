"""ALFWorld against its stock stack: resets, steps, new workers, memory, and what must not change.

    python benchmarks/bench_alfworld.py            all of it, some minutes
    python benchmarks/bench_alfworld.py --quick    fewer games

Stock is TextWorld's gym with the wrappers and requested infos of ALFWorld's own evaluation. Its reset loads the next
game and starts it, and tells the admissible commands, as each of its steps does; ours is asked for them wherever time
is measured. Both play the same games and commands in turns, so that whatever else the machine does slows both. Games
are those in ``ALFWORLD_DATA`` where that is set, else generated ones, which are smaller.

A process of ours keeps the translations of its last games in memory; for ``on disk`` it forgets them, and for ``never
seen`` it finds an empty folder besides. Stock keeps none.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice, zip_longest
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated

import psutil
import typer
from alfworld_games import official
from harness import REPEATS, Result, interleaved, machine, ratio, report, seconds
from stock_alfworld import StockGames, stock_alfworld

from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.alfworld_env import AlfworldEnv
from skillarena.envs.alfworld_translation import translation_of
from skillarena.envs.cache_dir import cache_root
from skillarena.envs.interface import Task

OFFICIAL = ("valid_seen", "valid_unseen", "valid_train")
"""They hold 474 games."""
GENERATED = ("generated_seen", "generated_unseen", "generated_train")
GARBAGE = ("", "  look  ", "LOOK", "look.", "help", "inventory", "put mug 1 in/on desk 1", "go to nowhere 3", "go to")
MIB = 1024**2


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    speed: int
    """Games whose resets and steps are timed."""
    steps: int
    """Steps timed in each of them."""
    starts: int
    """New workers."""
    games: int | None
    """Games of the one worker; None for all there are."""
    resets: int
    """Resets of the one worker."""
    stock_resets: int
    """The same for stock, which takes over a second for each."""
    equality: int
    """Games played in three ways beside stock."""


FULL = Size(speed=12, steps=15, starts=REPEATS, games=None, resets=500, stock_resets=60, equality=40)
QUICK = Size(speed=6, steps=5, starts=2, games=60, resets=80, stock_resets=12, equality=4)


def bench(*, quick: bool) -> Iterator[Result]:
    """All results, one after the other."""
    return measure(_tasks(), QUICK if quick else FULL)


def measure(tasks: Sequence[Task], size: Size) -> Iterator[Result]:
    """All results for any games and size."""
    yield from _speed(tasks[: size.speed + 1], size.steps)
    yield _new_workers(tasks[0], size.starts)
    yield from _memory(tasks[: size.games], size)
    yield _equality(tasks[: size.equality])


def _part() -> str:
    return "alfworld" if official() else "alfworld, generated games"


def _tasks() -> list[Task]:
    """Games of all splits in turn, and of all types in turn."""
    splits = OFFICIAL if official() else GENERATED
    by_split = [AlfworldBenchmark(split=split, allow_partial=True).tasks() for split in splits]
    return [task for turn in zip_longest(*by_split) for task in turn if task is not None]


def _env(max_steps: int = 10_000, cache: Path | None = None) -> AlfworldEnv:
    return AlfworldEnv(max_steps=max_steps, cache_dir=cache or _translations(), deadline_s=60)


def _translations() -> Path:
    return cache_root() / "alfworld" / "translations"


def _path(task: Task) -> str:
    return str(task.source["path"])


def _speed(tasks: Sequence[Task], steps: int) -> Iterator[Result]:
    stock_resets: list[float] = []
    our_resets: dict[str, list[float]] = {"in memory": [], "on disk": [], "never seen": []}
    step_cpu: dict[str, tuple[list[float], list[float]]] = {}
    with stock_alfworld(), tempfile.TemporaryDirectory() as empty, closing(_env(cache=Path(empty))) as env:
        for number, task in enumerate(tasks):
            stock = StockGames([_path(task)], 10_000)
            if number % 2:
                took, ours = seconds(stock.reset), _our_resets(env, task)
            else:
                ours, took = _our_resets(env, task), seconds(stock.reset)
            if number:  # the first game loads libraries and grammars
                stock_resets.append(took)
                for name, value in ours.items():
                    our_resets[name].append(value)
                step_cpu[task.name] = _step_cpu(stock, env, task, steps)
    for name, bound in (("in memory", 50), ("on disk", 50), ("never seen", 4)):
        ratios = [theirs / ours for theirs, ours in zip(stock_resets, our_resets[name], strict=True)]
        detail = {"stock_s": stock_resets, "ours_s": our_resets[name], "worst_game": min(ratios)}
        game = "game never seen" if name == "never seen" else f"translation {name}"
        yield Result(_part(), f"load and reset, {game}", median(ratios), "x", bound, detail=detail)
    cpu = [[second for one in step_cpu.values() for second in one[part]] for part in (0, 1)]
    detail = {"stock_s": median(cpu[0]), "ours_s": median(cpu[1]), "steps": len(cpu[0])}
    detail["worst_game"] = min(ratio(*one) for one in step_cpu.values())
    yield Result(_part(), "step with admissible commands, CPU", ratio(*cpu), "x", 100, detail=detail)


def _our_resets(env: AlfworldEnv, task: Task) -> dict[str, float]:
    """Seconds of a reset of a game that ``env`` has never seen, then of one from disk, then of one from memory."""

    def reset() -> None:
        env.reset(task)
        env.admissible_commands()

    times = {}
    for name in ("never seen", "on disk", "in memory"):
        if name != "in memory":
            translation_of.cache_clear()
        times[name] = seconds(reset)
    return times


def _step_cpu(stock: StockGames, env: AlfworldEnv, task: Task, steps: int) -> tuple[list[float], list[float]]:
    """CPU seconds of each step of random play from the start, first all of stock's, then all of ours."""

    def step(command: str) -> None:
        env.step(command)
        env.admissible_commands()

    rng = Random(task.id)  # noqa: S311 (no secret)
    commands = []
    env.reset(task)
    for _ in range(steps):
        commands.append(rng.choice(env.admissible_commands()))
        env.step(commands[-1])
    theirs = [seconds(partial(stock.step, command), time.process_time) for command in commands]
    env.reset(task)
    gc.collect()  # what stock left behind
    ours = [seconds(partial(step, command), time.process_time) for command in commands]
    return theirs, ours


_OUR_WORKER = """
import json, sys
from pathlib import Path
from skillarena.envs.alfworld_env import AlfworldEnv
from skillarena.envs.interface import Task
env = AlfworldEnv(max_steps=30, cache_dir=Path(sys.argv[2]), deadline_s=60)
env.reset(Task(**json.loads(sys.argv[1])))
env.admissible_commands()
"""
_STOCK_WORKER = """
import sys
from stock_alfworld import StockGames, stock_alfworld
with stock_alfworld():
    StockGames([sys.argv[1]], 30).reset()
"""


def _new_workers(task: Task, starts: int) -> Result:
    """From the start of a process to its end after the first reset; what replacing a worker takes."""

    def worker(code: str, *arguments: str) -> Callable[[], object]:
        command = [sys.executable, "-c", code, *arguments]
        return lambda: subprocess.run(command, cwd=Path(__file__).parent, check=True, timeout=300)

    with closing(_env()) as env:
        env.reset(task)  # so that it is on disk
    ours = worker(_OUR_WORKER, json.dumps(asdict(task)), str(_translations()))
    times = interleaved([worker(_STOCK_WORKER, _path(task)), ours], starts)
    name = "new worker: start and first reset, translation on disk"
    return Result(_part(), name, ratio(*times), "x", detail={"stock_s": times[0], "ours_s": times[1]})


def _memory(tasks: Sequence[Task], size: Size) -> Iterator[Result]:
    """Resident memory of a worker that goes on to the next game with each reset."""
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        stock = pool.submit(_stock_memory, [_path(task) for task in tasks], size.stock_resets)
        ours = pool.submit(_our_memory, tasks, size.resets).result(1200)
        theirs = stock.result(1200)
    name, detail = f"one worker through {len(tasks)} games: most memory", {"mib": ours}
    yield Result(_part(), name, max(ours), "MiB", 200, at_least=False, detail=detail)
    name = f"memory growth in {len(ours)} resets"
    yield Result(_part(), name, _growth(ours), "MiB", 10, at_least=False, detail=detail)
    name = f"memory growth in {len(theirs)} resets of stock"
    yield Result(_part(), name, _growth(theirs), "MiB", detail={"mib": theirs})


def _growth(sizes: Sequence[float]) -> float:
    """From the first quarter to the last one."""
    quarter = max(1, len(sizes) // 4)
    return median(sizes[-quarter:]) - median(sizes[:quarter])


def _our_memory(tasks: Sequence[Task], resets: int) -> list[float]:
    """MiB after each reset and some steps, what translates new games included."""
    me, rng, sizes = psutil.Process(), Random(0), []  # noqa: S311 (no secret)
    with closing(_env()) as env:
        for task in islice(cycle(tasks), resets):
            env.reset(task)
            for _ in range(3):
                env.step(rng.choice(env.admissible_commands()))
            sizes.append(sum(one.memory_info().rss for one in (me, *me.children())) / MIB)
    return sizes


def _stock_memory(paths: Sequence[str], resets: int) -> list[float]:
    """The same for stock, with one environment for all games."""
    me, rng, sizes = psutil.Process(), Random(0), []  # noqa: S311 (no secret)
    with stock_alfworld():
        stock = StockGames(paths, 10_000)
        for _ in range(resets):
            now = stock.reset()
            for _ in range(3):
                now = stock.step(rng.choice(now.commands))
            sizes.append(me.memory_info().rss / MIB)
    return sizes


Record = tuple[str, float, float, bool, bool, list[str], list[tuple[str, ...]]]
"""What is compared after each action, with the names in ``FIELDS``; nothing is admissible once an episode is over."""
FIELDS = ("observation", "score", "reward", "done", "won", "admissible", "facts")


def _equality(tasks: Sequence[Task]) -> Result:
    """Reference, random and garbage play, each up to its last action, which is the last one allowed."""
    plays = [(_path(task), *play) for task in tasks for play in _our_plays(task)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        stock = list(pool.map(_stock_play, *zip(*((path, actions) for path, actions, _ in plays), strict=True)))
    different = dict.fromkeys(("length", *FIELDS), 0)
    for theirs, (_, _, ours) in zip(stock, plays, strict=True):
        different["length"] += len(theirs) != len(ours)
        for one, other in zip(theirs, ours, strict=False):
            for field, a, b in zip(FIELDS, one, other, strict=True):
                different[field] += a != b
    steps = sum(len(records) for _, _, records in plays)
    name = f"{len(tasks)} games in reference, random and garbage play: values that differ from stock"
    detail = {"different": different, "compared": steps * len(FIELDS), "observations": steps}
    return Result(_part(), name, sum(different.values()), "values", 0, at_least=False, detail=detail)


def _our_plays(task: Task) -> Iterator[tuple[list[str], list[Record]]]:
    """The three ways of play: their actions and what they led to."""
    with closing(_env()) as env:
        env.reset(task)
        reference = env.plan()
        rng = Random(task.id)  # noqa: S311 (no secret)
        plays = [reference, *(_random(env, task, rng, share) for share in (0.0, 0.6))]
    for actions in plays:
        yield actions, _our_play(task, actions)


def _random(env: AlfworldEnv, task: Task, rng: Random, garbage: float) -> list[str]:
    """Twelve actions, fewer where they win by chance; this share of them is garbage."""
    env.reset(task)
    actions: list[str] = []
    while len(actions) < 12:
        actions.append(rng.choice(GARBAGE if rng.random() < garbage else env.admissible_commands()))
        if env.step(actions[-1]).done:
            break
    return actions


def _our_play(task: Task, actions: Sequence[str]) -> list[Record]:
    with closing(_env(len(actions))) as env:
        first = env.reset(task).text
        records: list[Record] = [(first, 0.0, 0.0, False, False, env.admissible_commands(), _facts(env))]
        for action in actions:
            now = env.step(action)
            commands = [] if now.done else env.admissible_commands()
            records.append((now.observation, now.score, now.reward, now.done, now.won, commands, _facts(env)))
    return records


def _facts(env: AlfworldEnv) -> list[tuple[str, ...]]:
    """Predicate and visible names of every fact, sorted; ours keeps them, but no player is told."""
    assert env._engine is not None
    scene = env._engine.scene
    return sorted(
        (predicate, *(scene.entities[thing].name for thing in things))
        for predicate, facts in scene._facts.items()
        for things in facts
    )


def _stock_play(path: str, actions: Sequence[str]) -> list[Record]:
    with stock_alfworld():
        stock = StockGames([path], len(actions), facts=True)
        now = stock.reset()
        records: list[Record] = [(now.observation, 0.0, 0.0, False, now.won, now.commands, now.facts)]
        for action in actions:
            before, now = now, stock.step(action)
            commands = [] if now.done else now.commands
            reward = now.score - before.score
            records.append((now.observation, now.score, reward, now.done, now.won, commands, now.facts))
            if now.done:
                break
    return records


def main(
    quick: Annotated[bool, typer.Option(help="Fewer games.")] = False,
    out: Annotated[Path | None, typer.Option(help="JSON file for the results.")] = None,
) -> None:
    """Measure; exit code 1 when a bound is missed."""
    where = machine()
    raise typer.Exit(report(bench(quick=quick), where, out))


if __name__ == "__main__":
    typer.run(main)
