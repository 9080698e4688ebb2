"""How long a report takes, and how much memory.

    python benchmarks/report_size.py                               700 cells of 143 episodes
    python benchmarks/report_size.py --cells 70 --seeds 1          fewer; every cell a method of its own
    python benchmarks/report_size.py --trajectories 1 --keep DIR   every episode with its turns; the cells stay there

Cells are written with random results, in the form in which `skillarena run` leaves them; then `skillarena report` reads
them in a process of its own. Exit code 0: under 30 seconds and 2 GB.
"""

from __future__ import annotations

import hashlib
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count, islice, product
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from skillarena.envs.interface import EndReason
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.ledger import EpisodeRow
from skillarena.orchestration.settings import Facts, Settings, digest, label
from skillarena.orchestration.trajectory import Trajectory, Turn

SECONDS = 30.0
MEGABYTES = 2000.0

_BACKBONES = ("deepseek_v4_flash", "gpt_5_4_mini", "qwen3_6_27b")
_SPLITS = ("alfworld_seen", "alfworld_unseen", "scienceworld_seen", "scienceworld_unseen")
_METHODS = ("none", "skillreranker", "without_split", "llm_selector", "llm_selector_top2", "skillrouter", "vector")
_TYPES = 12
_WORDS = ("cabinet", "drawer", "mug", "plate", "sink", "stove", "thermometer", "water", "you", "see", "on", "in", "a")
_TEXT = 60  # words of an observation


def main(
    cells: Annotated[int, typer.Option(help="Cells to make.")] = 700,
    tasks: Annotated[int, typer.Option(help="Episodes of each.")] = 143,
    seeds: Annotated[int, typer.Option(help="Cells of each method in each setting.")] = 3,
    trajectories: Annotated[float, typer.Option(help="Part of the cells that keep their episodes' turns.")] = 0.1,
    keep: Annotated[
        Path | None, typer.Option(help="Folder for the cells and the report; default: a passing one.")
    ] = None,
) -> None:
    """Make cells, report on them, print what that took."""
    with tempfile.TemporaryDirectory(prefix="skillarena-report-size-") as passing:
        root = keep or Path(passing)
        rows = sum(
            _write_cell(root, settings, tasks, with_turns=number < trajectories * cells)
            for number, settings in enumerate(islice(_all_settings(seeds), cells))
        )
        files = sum(file.stat().st_size for file in root.glob("cells/*/*"))
        print(f"{cells} cells, {rows:,} episodes, {files / 1e6:,.0f} MB")
        seconds, megabytes = _report(root)
        written = sum(file.stat().st_size for file in (root / "report").rglob("*") if file.is_file())
    print(f"report: {seconds:.1f} s, at most {megabytes:,.0f} MB of memory, {written / 1e6:,.1f} MB of files")
    raise typer.Exit(int(seconds > SECONDS or megabytes > MEGABYTES))


def _report(root: Path) -> tuple[float, float]:
    """Seconds and megabytes of the command."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "skillarena.orchestration.cli", "report", str(root)]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"skillarena report ended with {done.returncode}")
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6


def _all_settings(seeds: int) -> Iterator[Settings]:
    """Method by method, each in every setting and with every seed; without end."""
    settings = [
        (compose([f"backbone={backbone}"]), compose([f"benchmark={split}"]))
        for backbone, split in product(_BACKBONES, _SPLITS)
    ]
    for method in _methods():
        for (backbone, benchmark), seed in product(settings, range(seeds)):
            yield method.model_copy(
                update={"backbone": backbone.backbone, "benchmark": benchmark.benchmark, "seed": seed}
            )


def _methods() -> Iterator[Settings]:
    for name in _METHODS:
        yield compose([f"selector={name}", "llm=mimo_v2_5_pro"])
    for top_k in count(2):
        yield compose(["selector=vector", f"selector.top_k={top_k}"])


def _write_cell(root: Path, settings: Settings, tasks: int, *, with_turns: bool) -> int:
    """One cell's folder; returns its rows."""
    benchmark = label(settings.benchmark)
    split = str(settings.benchmark["split"])
    ids = [hashlib.sha256(f"{benchmark} {split} {number}".encode()).hexdigest() for number in range(tasks)]
    models = {part: label(getattr(settings, part)) for part in ("embedder", "reranker", "parser")}
    identity = settings.identity(Facts("0" * 64, digest(ids), models, "", "0" * 64))
    selector = {
        "selector": label(settings.selector),
        "k": settings.selector.get("k"),
        "top_k": settings.selector.get("top_k"),
    }
    axes = {
        "benchmark": benchmark,
        "split": split,
        "backbone": label(settings.backbone),
        **{key: "" if value is None else str(value) for key, value in selector.items()},
        **{part: label(getattr(settings, part)) for part in ("reranker", "parser", "library")},
        "seed": str(settings.seed),
    }
    name = " ".join(f"{key}={value}" for key, value in axes.items())
    cell = {"id": digest(identity), "name": name, "axes": axes, "simulated": False, "library_size": 67884}
    kinds = [f"kind_{number % _TYPES}" for number in range(tasks)]
    listed = [{"id": task, "name": f"{kind}/{task[:12]}", "type": kind} for task, kind in zip(ids, kinds, strict=True)]
    config = {"identity": identity, "cell": cell, "settings": settings.model_dump(mode="json"), "tasks": listed}
    folder = root / "cells" / cell["id"]
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes(orjson.dumps(config, option=orjson.OPT_INDENT_2))
    chance = random.Random(cell["id"])  # noqa: S311 (no secret)
    with (folder / "episodes.jsonl").open("wb") as rows, (folder / "trajectories.jsonl").open("wb") as turns:
        for task in listed:
            episode = _episode(chance, task, cell, settings.seed)
            offset = turns.tell() if with_turns else -1
            if with_turns:
                turns.write(orjson.dumps(episode.to_dict()) + b"\n")
            rows.write(orjson.dumps(asdict(_row(episode, offset))) + b"\n")
    return tasks


def _episode(chance: random.Random, task: dict[str, str], cell: dict[str, Any], seed: int) -> Trajectory:
    won = chance.random() < 0.6
    turns = tuple(
        Turn(
            reply="Thought: the mug may be there.\nAction: go to cabinet 1",
            thought="the mug may be there.",
            action="go to cabinet 1",
            normalised=False,
            valid=True,
            observation=" ".join(chance.choices(_WORDS, k=_TEXT)),
            score=0.0,
            usage=Usage(1500 + 90 * number, 1400, 30),
            finish_reason="stop",
            llm_seconds=0.5 + chance.random(),
            env_seconds=0.01,
        )
        for number in range(chance.randint(4, 30))
    )
    return Trajectory(
        episode_id=hashlib.sha256(f"{cell['id']} {task['id']}".encode()).hexdigest(),
        seed=seed,
        benchmark=cell["axes"]["benchmark"],
        split=cell["axes"]["split"],
        task_id=task["id"],
        task_name=task["name"],
        task_type=task["type"],
        goal="put a clean mug in a cabinet",
        backbone=cell["axes"]["backbone"],
        simulated=False,
        skills=("alfworld/alfworld-clean-object",),
        first_observation="You are in the middle of a room.",
        turns=turns,
        outcome=EndReason.SOLVED if won else EndReason.STEP_LIMIT,
        reward=100.0 * won,
        score=float(won),
        won=won,
        seconds=20.0,
        reset_seconds=0.1,
    )


def _row(episode: Trajectory, offset: int) -> EpisodeRow:
    usage = episode.usage
    return EpisodeRow(
        episode_id=episode.episode_id,
        task_id=episode.task_id,
        task_name=episode.task_name,
        task_type=episode.task_type,
        outcome=episode.outcome.value,
        reward=episode.reward,
        success=episode.won,
        score=episode.score,
        env_steps=episode.env_steps,
        llm_turns=episode.llm_turns,
        invalid_actions=0,
        skill_lookups=0,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        wasted_tokens=0,
        tokens_estimated=False,
        skills=episode.skills,
        selection_seconds=episode.seconds / 100,
        selection_reused=False,
        selector_prompt_tokens=0,
        selector_completion_tokens=0,
        offline_tokens=0,
        pairs_scored=30,
        pairs_cached=0,
        marks=(),
        wall_seconds=episode.seconds,
        llm_seconds=episode.llm_seconds,
        env_seconds=episode.env_seconds,
        attempts=1,
        finished_at=1_700_000_000.0,
        trajectory_offset=offset,
        node="0" * 56,
    )


if __name__ == "__main__":
    typer.run(main)
