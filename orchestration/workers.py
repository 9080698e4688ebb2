"""What runs inside Ray's worker processes: selecting skills and playing episodes.

Both classes are plain Python; ``pools.py`` turns them into actors. Only frozen, plain data goes in and out, and
expected faults come back as ``Failure`` values, so that the driver decides what happens next.
"""

from __future__ import annotations

import threading
import traceback
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from skillarena.conf.errors import BackboneError, ConfigError, LibraryError, SkillArenaError
from skillarena.envs.interface import Benchmark, Task
from skillarena.orchestration.agent import run_episode
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.assembly import AssembledParts, build, build_selector, load_library
from skillarena.orchestration.backbones.errors import RequestRefused
from skillarena.orchestration.guarded_env import EnvLane, GuardedEnv
from skillarena.orchestration.settings import digest
from skillarena.orchestration.trajectory import Trajectory
from skillarena.selectors.interface import Selection, Selector
from skillarena.selectors.measure import measured

T = TypeVar("T")

_PERMANENT = (ConfigError, LibraryError, RequestRefused)


@dataclass(frozen=True)
class Failure:
    """A fault inside a worker, as data."""

    kind: str
    """Type of the error."""
    message: str
    """The error's text, with its fix."""
    permanent: bool
    """Trying again cannot help: the configuration or the library is wrong."""
    worker_lost: bool = False
    """The worker holds a call that never returned and must be replaced."""


@dataclass(frozen=True)
class SelectionJob:
    """What a selection worker needs."""

    sections: dict[str, dict[str, Any]]
    """Sections library, embedder, reranker, parser and selector."""
    fingerprint: str
    """The library as the driver read it."""
    task: Task


@dataclass(frozen=True)
class EpisodeJob:
    """What a rollout worker needs."""

    benchmark: dict[str, Any]
    backbone: dict[str, Any]
    agent: AgentSettings
    task: Task
    selection: Selection
    episode_id: str
    seed: int


class SelectionWorker:
    """Runs selectors; models are loaded at first use and kept for every later cell."""

    def __init__(self, cache_dir: str) -> None:
        self._cache_dir = Path(cache_dir)
        self._parts: dict[str, AssembledParts] = {}
        self._selectors: dict[str, Selector] = {}

    def select(self, job: SelectionJob) -> Selection | Failure:
        """Choose skills for one task and measure what it took."""
        try:
            parts, selector = self._assemble(job)
            return measured(selector, parts, job.task)
        except Exception as error:  # becomes data; the driver reports it
            return failure(error)

    def _assemble(self, job: SelectionJob) -> tuple[AssembledParts, Selector]:
        models = {part: section for part, section in job.sections.items() if part != "selector"}
        models_key, key = digest(models), digest(job.sections)
        if models_key not in self._parts:
            library = load_library(job.sections["library"])
            if library.fingerprint != job.fingerprint:
                raise LibraryError("the skill library changed while the run was going on", "run the command again")
            self._parts[models_key] = AssembledParts(models, library, self._cache_dir)
        if key not in self._selectors:
            self._selectors[key] = build_selector(job.sections["selector"], self._parts[models_key])
        return self._parts[models_key], self._selectors[key]


class RolloutWorker:
    """Plays episodes, several at a time in threads; environments, benchmarks and backbones are reused."""

    def __init__(self, cache_dir: str) -> None:
        self._cache_dir = cache_dir
        self._lock = threading.Lock()
        self._lane = EnvLane()
        self._kept: dict[str, Any] = {}
        self._idle: dict[str, list[GuardedEnv]] = defaultdict(list)

    def play(self, job: EpisodeJob) -> Trajectory | Failure:
        """Play one episode to its end."""
        try:
            benchmark = self._keep(
                "benchmark", job.benchmark, lambda: build(job.benchmark, "benchmark", cache_dir=self._cache_dir)
            )
            backbone = self._keep("backbone", job.backbone, lambda: build(job.backbone, "backbone"))
            env = self._take_env(job, benchmark)
        except Exception as error:  # becomes data; the driver reports it
            return failure(error)
        try:
            trajectory = run_episode(
                job.task,
                env,
                benchmark,
                backbone,
                job.selection,
                job.agent,
                episode_id=job.episode_id,
                seed=job.seed,
            )
        except BackboneError as error:
            self._give_back(job, env)
            return failure(error)
        except Exception as error:  # becomes data; the environment may be broken, so it is not used again
            if not env.stuck:
                env.close()
            return failure(error, worker_lost=env.stuck)
        self._give_back(job, env)
        return trajectory

    def _give_back(self, job: EpisodeJob, env: GuardedEnv) -> None:
        with self._lock:
            self._idle[digest(job.benchmark)].append(env)

    def _take_env(self, job: EpisodeJob, benchmark: Benchmark) -> GuardedEnv:
        with self._lock:
            idle = self._idle[digest(job.benchmark)]
            if idle:
                return idle.pop()
        return GuardedEnv(benchmark.make_env, deadline_s=job.agent.env_deadline_s, lane=self._lane)

    def _keep(self, kind: str, section: dict[str, Any], make: Callable[[], T]) -> T:
        key = f"{kind}:{digest(section)}"
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            kept: T = self._kept[key]
            return kept


def failure(error: Exception, *, worker_lost: bool = False) -> Failure:
    """An exception as plain data; an unexpected one keeps its traceback."""
    if isinstance(error, SkillArenaError):
        return Failure(type(error).__name__, str(error), isinstance(error, _PERMANENT), worker_lost)
    return Failure(type(error).__name__, "".join(traceback.format_exception(error)).strip(), False, worker_lost)
