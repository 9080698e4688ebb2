"""What runs inside Ray's worker processes: selecting skills and playing episodes.

Both classes are plain Python; ``pools.py`` turns them into actors. Only frozen, plain data goes in and out, and
expected faults come back as ``Failure`` values in an ``Answer``, so that the driver decides what happens next.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import orjson

from skillarena.conf.errors import (
    BackboneError,
    ConfigError,
    DataError,
    EnvError,
    LibraryError,
    ModelHostLost,
    RerankerError,
    SkillArenaError,
)
from skillarena.envs.cache_dir import cache_root
from skillarena.envs.interface import Benchmark, EndReason
from skillarena.orchestration.agent import run_episode
from skillarena.orchestration.assembly import build
from skillarena.orchestration.backbones.errors import BudgetSpent, NoCredit, UnknownModel, WrongKey
from skillarena.orchestration.backbones.gate import Gates
from skillarena.orchestration.backbones.interface import Backbone
from skillarena.orchestration.guarded_env import EnvLane, GuardedEnv
from skillarena.orchestration.jobs import EpisodeJob, LearningJob, SelectionJob
from skillarena.orchestration.remote_session import RemoteSession
from skillarena.orchestration.selection_store import selection_to_json
from skillarena.orchestration.selector_shelf import SelectorShelf
from skillarena.orchestration.settings import digest
from skillarena.orchestration.signs_of_life import Signs
from skillarena.orchestration.trajectory import Trajectory, Turn, record_of
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import LearningSelector, Lesson
from skillarena.selectors.measure import measured, offline

if TYPE_CHECKING:
    from ray.actor import ActorHandle

    from skillarena.orchestration.serving.router import Endpoints

T = TypeVar("T")

_FRAMES_TOLD = 4  # of the calls that led to an unexpected exception

_PERMANENT = (ConfigError, LibraryError, RerankerError, WrongKey, UnknownModel, NoCredit)
"""Errors that every further task would meet too."""


@dataclass(frozen=True)
class Failure:
    """A fault inside a worker, as data."""

    message: str
    """The error's text, with its fix."""
    permanent: bool
    """Trying again cannot help: the configuration or the library is wrong."""
    worker_lost: bool = False
    """The worker holds a call that never returned and must be replaced."""
    wasted_tokens: int = 0
    """Tokens of the agent's calls in the attempt that broke off."""
    budget_spent: bool = False
    """The run may make no further call; nothing was wrong."""


@dataclass(frozen=True)
class Answer:
    """What a worker sends back."""

    result: Any
    """A ``Selection``, a memory (bytes) or a ``Played``, or a ``Failure``."""
    warnings: tuple[str, ...] = ()
    """What the worker's code logged as a warning since the last answer."""


@dataclass(frozen=True)
class Played:
    """An episode that came to its end."""

    trajectory: Trajectory
    lesson: Lesson | None = None
    """What it taught a selector that learns."""


class Warnings(logging.Handler):
    """Keeps warnings of this process until they are taken; a worker has no screen of its own."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._kept: deque[str] = deque(maxlen=50)
        logging.getLogger("skillarena").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one."""
        self._kept.append(record.getMessage())

    def take(self) -> tuple[str, ...]:
        """All kept ones, once."""
        taken = tuple(dict.fromkeys(self._kept))
        self._kept.clear()
        return taken


class SelectionWorker:
    """Runs selectors; models are loaded at first use and kept for every later cell."""

    def __init__(
        self, cache_dir: str | None, secrets: Mapping[str, str], governor: ActorHandle[Any] | None = None
    ) -> None:
        os.environ.update(secrets)
        self._shelf = SelectorShelf(cache_dir, Gates(governor))
        self._warnings = Warnings()

    def work(self, job: SelectionJob | LearningJob) -> Answer:
        """Select for one task or merge lessons: an answer with a ``Selection``, a memory or a ``Failure``."""
        try:
            result = self._learn(job) if isinstance(job, LearningJob) else self._select(job)
            return Answer(result, self._warnings.take())
        except Exception as error:  # becomes data; the driver reports it
            return Answer(failure(error, repeats=True), self._warnings.take())

    def _select(self, job: SelectionJob) -> Selection:
        parts, selector = self._shelf.take(job.method)
        selection = measured(selector, parts, job.task)
        must_be_json(selection_to_json, selection, "the selection's scores, reasons and details", ConfigError)
        return selection

    def _learn(self, job: LearningJob) -> bytes:
        _, selector = self._shelf.take(job.method)
        learner = cast("LearningSelector", selector)
        with offline():
            return learner.learn(job.method.memory or learner.initial_memory(), job.lessons)


class RolloutWorker:
    """Plays episodes, several at a time in threads; environments, benchmarks and backbones are reused."""

    def __init__(
        self,
        cache_dir: str | None,
        secrets: Mapping[str, str],
        governor: ActorHandle[Any] | None = None,
        endpoints: Endpoints | None = None,
    ) -> None:
        os.environ.update(secrets)
        self._cache_dir = str(Path(cache_dir).absolute() if cache_dir else cache_root())
        self._gates = Gates(governor)
        self._endpoints = endpoints
        self._lock = threading.Lock()
        self._lane = EnvLane()
        self._kept: dict[str, Any] = {}
        self._idle: dict[str, list[GuardedEnv]] = defaultdict(list)
        self._warnings = Warnings()
        self.signs = Signs()
        """Of the episodes under way, for the watchdog."""

    def play(self, job: EpisodeJob) -> Answer:
        """Play one episode to its end: an answer with a ``Played`` or a ``Failure``."""
        spent: list[int] = []
        try:
            with self.signs.of(job.episode_id) as beat:
                result: Played | Failure = self._play(job, spent, beat)
        except Exception as error:  # becomes data; the driver reports it
            wasted = sum(spent) + getattr(error, "wasted_tokens", 0)
            result = failure(error, worker_lost=bool(self._lane.stuck_in), wasted_tokens=wasted)
        return Answer(result, self._warnings.take())

    def _play(self, job: EpisodeJob, spent: list[int], beat: Callable[[], None]) -> Played:
        def note(turn: Turn) -> None:
            spent.append(turn.usage.total_tokens + turn.usage.wasted_tokens)
            beat()

        benchmark = self._keep(
            "benchmark", job.benchmark, lambda: build(job.benchmark, "benchmark", cache_dir=self._cache_dir)
        )
        backbone = self._keep("backbone", job.backbone, lambda: self._backbone(job.backbone))
        env = self._take_env(job, benchmark)
        try:
            session = RemoteSession(job.seat, job.task, job.selection) if job.seat is not None else None
            trajectory = run_episode(
                job.task,
                env,
                benchmark,
                backbone,
                job.selection,
                job.agent,
                episode_id=job.episode_id,
                seed=job.seed,
                session=session,
                on_turn=note,
            )
        except (BackboneError, ModelHostLost):
            self._give_back(job, env)  # the environment is sound
            raise
        except BaseException:
            if not env.stuck:
                env.close()
            raise
        finally:
            if hasattr(backbone, "end_episode"):  # one with servers of its own frees the episode's place
                backbone.end_episode(job.episode_id)
        self._give_back(job, env)
        return Played(_sound(trajectory), session.end(record_of(trajectory)) if session is not None else None)

    def _backbone(self, section: dict[str, Any]) -> Backbone:
        gate = self._gates.of(section)
        backbone: Backbone = build(section, "backbone", gate=gate, endpoints=self._endpoints)
        return backbone

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


def _sound(trajectory: Trajectory) -> Trajectory:
    """The trajectory, if it can be scored and written down. Raises ``EnvError``."""
    if trajectory.outcome is EndReason.INFRA_ERROR:
        raise EnvError("the environment reported a fault of its own")
    if not (math.isfinite(trajectory.score) and 0 <= trajectory.reward <= 100):
        raise EnvError(f"reward {trajectory.reward} and score {trajectory.score} are no points from 0 to 100")
    must_be_json(orjson.dumps, trajectory.to_dict(), "the episode's texts and numbers", EnvError)
    return trajectory


def must_be_json(dump: Callable[[T], Any], value: T, what: str, fault: type[SkillArenaError]) -> None:
    """Raise ``fault`` for a value that ``dump`` refuses."""
    try:
        dump(value)
    except (TypeError, ValueError) as error:
        raise fault(f"{what} cannot be written as JSON: {error}") from error


def failure(error: Exception, *, repeats: bool = False, worker_lost: bool = False, wasted_tokens: int = 0) -> Failure:
    """An exception as plain data; an unexpected one tells where it was raised.

    Args:
        error: what was raised.
        repeats: a bug (an unexpected error) or bad data would show again, since the work is deterministic.
        worker_lost: the worker must be replaced.
        wasted_tokens: tokens spent in vain.
    """
    expected = isinstance(error, SkillArenaError)
    permanent = isinstance(error, _PERMANENT) or (repeats and (not expected or isinstance(error, DataError)))
    text = str(error) if expected else _unexpected(error)
    return Failure(text, permanent, worker_lost, wasted_tokens, budget_spent=isinstance(error, BudgetSpent))


def _unexpected(error: BaseException) -> str:
    """What and where, innermost call first; for exceptions that no part of this package foresees."""
    frames = reversed(traceback.extract_tb(error.__traceback__)[-_FRAMES_TOLD:])
    places = [f"  at {frame.filename}:{frame.lineno} in {frame.name}: {frame.line}" for frame in frames]
    told = "\n".join([*traceback.format_exception_only(error), *places]).replace("\n\n", "\n")
    return f"{told}\n  raised from {_unexpected(error.__cause__)}" if error.__cause__ else told
