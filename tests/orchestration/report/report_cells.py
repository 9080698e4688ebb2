"""Cell folders for tests of reports: real ones, written by the ledger, in which every number is chosen by the test."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml

import skillarena.conf
from skillarena.envs.interface import EndReason, Task
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.cells import Cell
from skillarena.orchestration.ledger import EpisodeRow, Ledger
from skillarena.orchestration.settings import Facts, Settings, digest, label
from skillarena.orchestration.trajectory import Trajectory, Turn

CONF = Path(skillarena.conf.__file__).parent
TYPES = {"alfworld": ("pick_and_place_simple", "look_at_obj_in_light"), "scienceworld": ("boil", "melt")}
LOST: Literal["lost"] = "lost"
"""In ``rewards``: an infrastructure error."""

AS_PUBLISHED: Mapping[str, Any] = {
    "backbone": "deepseek_v4_flash",
    "simulated": False,
    "embedder": "qwen3_embedding_0_6b",
    "reranker": "qwen3_reranker_0_6b",
    "parser": "deepseek_v4_flash",
    "llm": "mimo_v2_5_pro",
    "library_size": 67884,
    "rewards": [100.0] * 140,
    "trajectories": False,
}
"""Arguments of a cell with the settings of arXiv 2607.06283."""

_NEEDS = {
    "none": (),
    "random": (),
    "oracle": (),
    "vanilla": (),
    "vector": ("embedder",),
    "spem": ("embedder",),
    "graph_of_skills": ("embedder",),
    "llm_selector": ("embedder", "llm"),
    "skillrouter": ("embedder", "reranker"),
    "without_parsing": ("embedder", "reranker"),
}
_SCALE = {"alfworld": 1.0, "scienceworld": 100.0}


def make_cell(
    root: Path,
    *,
    selector: str = "skillreranker",
    backbone: str = "simulated",
    benchmark: str = "alfworld",
    split: str | None = None,
    rewards: Sequence[float | Literal["lost"] | None] = (100.0, 0.0),
    steps: int | list[int] = 5,
    tokens: int | list[int] = 1000,
    top_k: int | None = None,
    k: int | None = None,
    seed: int = 0,
    simulated: bool = True,
    embedder: str = "minilm",
    reranker: str = "similarity",
    parser: str = "heuristic",
    llm: str = "none",
    library: str = "bundled",
    library_size: int | None = 40,
    options: Mapping[str, Any] | None = None,
    code: str = "0" * 64,
    fields: Mapping[str, Any] | None = None,
    texts: Mapping[str, str] | None = None,
    trajectories: bool = True,
) -> Path:
    """Write one cell's folder below ``root/cells`` and return it.

    Args:
        root: an output folder.
        selector: a file of ``conf/selector``, for example ``vector_top2``; ``backbone``, ``benchmark``, ``embedder``,
            ``reranker``, ``parser`` and ``llm`` likewise.
        split: None for ``valid_seen`` and ``seen``.
        rewards: points of each task; None leaves it without an episode, ``LOST`` makes an infrastructure error.
            A task is solved with 100 points.
        steps: env steps of each task, or of all.
        tokens: total tokens of each task's agent, or of all; a tenth of them is completion.
        top_k: the selector's, in place of its file's.
        k: the selector's, in place of its file's.
        seed: of the cell.
        simulated: what the cell says of its backbone.
        library: what the library's fingerprint is made from.
        library_size: skills in it, as the folder says.
        options: further settings by dotted key, for example ``{"benchmark.max_steps": 50}``.
        code: digest of the selector's source file.
        fields: further fields of the rows; a list has one value a task, anything else holds for all.
        texts: what trajectories say in place of the usual, by ``goal``, ``observation``, ``reply``, ``thought`` or
            ``action``.
        trajectories: write them.
    """
    settings = _settings(
        benchmark=_section("benchmark", benchmark) | {"split": split or _split(benchmark)},
        embedder=_section("embedder", embedder),
        reranker=_section("reranker", reranker),
        parser=_section("parser", parser),
        llm=_section("llm", llm),
        selector=_section("selector", selector) | _given(top_k=top_k, k=k),
        backbone=_section("backbone", backbone),
        seed=seed,
        output_dir=str(root.absolute()),
        options=options or {},
    )
    cell = _cell(root, settings, _tasks(settings, len(rewards)), simulated, library, code)
    about = {
        "cell": {
            "id": cell.id,
            "name": cell.name,
            "axes": cell.axes,
            "simulated": simulated,
            "library_size": library_size,
        },
        "settings": settings.model_dump(mode="json"),
        "left_out_of_library": (),
    }
    with Ledger(cell.directory, cell.identity, about, cell.tasks) as ledger:
        for number, (task, reward) in enumerate(zip(cell.tasks, rewards, strict=True)):
            if reward is None:
                continue
            episode = _trajectory(cell, task, reward, _at(steps, number), _at(tokens, number), dict(texts or {}))
            changes = {name: _at(value, number) for name, value in (fields or {}).items()}
            times = {"finished_at": 1_700_000_000.0 + number}
            row = replace(_row(episode, lost=reward == LOST), **(times | changes))
            ledger.append(row, episode.to_dict() if trajectories and reward != LOST else None)
    return cell.directory


@cache
def _read(group: str, choice: str) -> dict[str, Any]:
    plain: dict[str, Any] = yaml.safe_load((CONF / group / f"{choice}.yaml").read_text())
    whole: dict[str, Any] = {}
    for base in plain.pop("defaults", []):
        where, name = next(iter(base.items())) if isinstance(base, dict) else (group, base)
        whole |= _read(where.strip("/").partition("@")[0], name)
    return {key: "any" if value == "???" else value for key, value in (whole | plain).items()}


def _section(group: str, choice: str) -> dict[str, Any]:
    return dict(_read(group, choice))


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _split(benchmark: str) -> str:
    return {"alfworld": "valid_seen", "scienceworld": "seen"}.get(benchmark) or str(
        _section("benchmark", benchmark)["split"]
    )


def _settings(*, options: Mapping[str, Any], **sections: Any) -> Settings:
    plain = {
        "library": _section("library", "bundled"),
        "agent": _section("agent", "react"),
        "run": {"bootstrap_resamples": 1000},
        "cluster": {},
        "tracking": {"enabled": False},
        **sections,
    }
    for key, value in options.items():
        *path, last = key.split(".")
        section = plain
        for step in path:
            section[step] = dict(section[step])
            section = section[step]
        section[last] = value
    return Settings.model_validate(plain)


def _tasks(settings: Settings, count: int) -> tuple[Task, ...]:
    name, split = label(settings.benchmark), str(settings.benchmark["split"])
    types = TYPES[name]
    return tuple(
        Task(
            benchmark=name,
            split=split,
            id=hashlib.sha256(f"{name} {split} {number}".encode()).hexdigest(),
            name=f"{types[number % len(types)]}/{number}",
            task_type=types[number % len(types)],
            goal=f"do task {number}",
        )
        for number in range(count)
    )


def _cell(root: Path, settings: Settings, tasks: tuple[Task, ...], simulated: bool, library: str, code: str) -> Cell:
    method = label(settings.selector)
    needs = _NEEDS.get(method, ("embedder", "reranker", "parser"))
    facts = Facts(
        library=hashlib.sha256(library.encode()).hexdigest(),
        tasks=digest(sorted(task.id for task in tasks)),
        models={part: label(getattr(settings, part)) for part in needs},
        weights="",
        selector_code=code,
    )
    identity = settings.identity(facts)
    cell_id = digest(identity)
    sizes = "".join(f" {key}={size}" for key in ("k", "top_k") if (size := settings.selector.get(key)) is not None)
    name = (
        f"{label(settings.benchmark)}/{settings.benchmark['split']} {method}{sizes} "
        f"{label(settings.backbone)} seed={settings.seed}"
    )
    folder = root / "cells" / f"{re.sub(r'[^A-Za-z0-9_.]+', '-', name)}-{cell_id[:12]}"
    return Cell(cell_id, name, folder, settings, identity, tasks, simulated)


def _trajectory(
    cell: Cell, task: Task, reward: float | str, steps: int, tokens: int, texts: dict[str, str]
) -> Trajectory:
    points = 0.0 if reward == LOST else float(reward)
    score = points / 100 * _SCALE[task.benchmark]
    completion = tokens // 10
    turns = tuple(
        Turn(
            reply=texts.get("reply", f"Thought: step {number}.\nAction: look"),
            thought=texts.get("thought", f"step {number}."),
            action=texts.get("action", "look"),
            normalised=False,
            valid=True,
            observation=texts.get("observation", f"You are in room {number}."),
            score=score if number == steps - 1 else 0.0,
            usage=Usage(_share(tokens - completion, steps, number), 0, _share(completion, steps, number)),
            finish_reason="stop",
            llm_seconds=0.25,
            env_seconds=0.125,
        )
        for number in range(steps)
    )
    solved = points == 100.0
    return Trajectory(
        episode_id=cell.episode_id(task),
        seed=cell.settings.seed,
        benchmark=task.benchmark,
        split=task.split,
        task_id=task.id,
        task_name=task.name,
        task_type=task.task_type,
        goal=texts.get("goal", task.goal),
        backbone=label(cell.settings.backbone),
        simulated=cell.simulated,
        skills=("set/first", "set/second"),
        first_observation=texts.get("observation", "You are in a room."),
        turns=turns,
        outcome=EndReason.SOLVED if solved else EndReason.STEP_LIMIT,
        reward=points,
        score=score,
        won=solved,
        seconds=1.0 + 0.375 * steps,
        reset_seconds=1.0,
    )


def _share(whole: int, parts: int, number: int) -> int:
    return whole // parts + (whole % parts if number == parts - 1 else 0)


def _row(episode: Trajectory, lost: bool) -> EpisodeRow:
    usage = Usage() if lost else episode.usage
    return EpisodeRow(
        episode_id=episode.episode_id,
        task_id=episode.task_id,
        task_name=episode.task_name,
        task_type=episode.task_type,
        outcome=EndReason.INFRA_ERROR.value if lost else episode.outcome.value,
        reward=None if lost else episode.reward,
        success=None if lost else episode.won,
        score=None if lost else episode.score,
        env_steps=0 if lost else episode.env_steps,
        llm_turns=0 if lost else episode.llm_turns,
        invalid_actions=0,
        skill_lookups=0,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=0,
        completion_tokens=usage.completion_tokens,
        wasted_tokens=0,
        tokens_estimated=False,
        skills=() if lost else episode.skills,
        selection_seconds=0.0 if lost else 0.5,
        selection_reused=False,
        selector_prompt_tokens=0,
        selector_completion_tokens=0,
        offline_tokens=0,
        pairs_scored=0 if lost else 30,
        pairs_cached=0,
        marks=(),
        wall_seconds=0.0 if lost else episode.seconds,
        llm_seconds=0.0 if lost else episode.llm_seconds,
        env_seconds=0.0 if lost else episode.env_seconds,
        attempts=3 if lost else 1,
        finished_at=0.0,
        error="worker died" if lost else "",
    )


def _at(value: Any, number: int) -> Any:
    """A list has one value a task."""
    return value[number] if isinstance(value, list) else value
