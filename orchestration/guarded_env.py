"""Environment calls with a deadline, one at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from skillarena.conf.errors import EnvError, SkillArenaError
from skillarena.envs.interface import Observation, StepResult, Task, TextEnv

T = TypeVar("T")


class EnvLane:
    """The one thread of a process that environments run in.

    Simulators are not thread-safe, so every environment of a process shares one lane: calls from any thread run one
    after the other. A Python call cannot be stopped from outside; when one misses its deadline, the lane is stuck for
    good, and this call and all later ones raise ``EnvError``. The process is then due for replacement.
    """

    def __init__(self, name: str = "env") -> None:
        self.stuck_in = ""
        """The call that missed its deadline; empty while the lane works."""
        self._turn = threading.Lock()
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        # A daemon: a stuck simulator must not keep the interpreter from ending, as an executor's thread would.
        threading.Thread(target=self._run, name=f"{name} lane", daemon=True).start()

    def call(self, what: str, function: Callable[[], T], deadline_s: float) -> T:
        """Run ``function`` in the lane and return its result; waiting for earlier calls is not counted.

        Args:
            what: the call in words, for messages.
            function: what to run.
            deadline_s: seconds it may take.

        Raises:
            EnvError: it took longer, an earlier call did, or it raised anything but a ``SkillArenaError``.
        """
        with self._turn:  # held no longer than one deadline, so nobody waits for ever
            if self.stuck_in:
                raise EnvError(f"{what}: the environment process still hangs in {self.stuck_in}", _REPLACE)
            future: Future[T] = Future()
            self._jobs.put((future, function))
            if not wait([future], timeout=deadline_s).done:
                self.stuck_in = what
                raise EnvError(f"{what}: no answer within {deadline_s:g} s", _REPLACE)
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, SkillArenaError):
            raise error
        raise EnvError(f"{what}: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """End the thread after the call that runs now. Safe to call twice."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function = job
            try:
                future.set_result(function())
            except BaseException as error:  # handed to the waiting caller
                future.set_exception(error)


_REPLACE = "the worker is replaced and the episode tried again; raise the deadline if the machine is just slow"


class GuardedEnv:
    """A ``TextEnv`` made and used in a lane, every call under a deadline.

    Args:
        make: builds the inner environment (``Benchmark.make_env``); called in the lane, because a simulator process may
            be tied to the thread that started it.
        deadline_s: seconds any one call may take, building included.
        lane: the process's lane.

    Raises:
        EnvError: on building and in every method: late, stuck or failed (see ``EnvLane.call``).
    """

    def __init__(self, make: Callable[[], TextEnv], *, deadline_s: float, lane: EnvLane) -> None:
        self._lane = lane
        self._deadline_s = deadline_s
        self._env = self._call("making the environment", make)

    @property
    def stuck(self) -> bool:
        """True when the lane can never be used again; the process should be replaced."""
        return bool(self._lane.stuck_in)

    def reset(self, task: Task) -> Observation:
        """See ``TextEnv.reset``."""
        return self._call(f"reset to {task.name}", lambda: self._env.reset(task))

    def step(self, action: str) -> StepResult:
        """See ``TextEnv.step``."""
        return self._call(f"step {action!r}", lambda: self._env.step(action))

    def admissible_commands(self) -> list[str]:
        """See ``TextEnv.admissible_commands``."""
        return self._call("admissible_commands", self._env.admissible_commands)

    def plan(self) -> list[str]:
        """See ``TextEnv.plan``."""
        return self._call("plan", self._env.plan)

    def close(self) -> None:
        """Free the simulator; from a thread of its own when the lane is stuck, as that may be what frees the lane."""
        if not self.stuck:
            return self._call("close", self._env.close)
        lane = EnvLane("closing")
        try:
            return lane.call("close", self._env.close, self._deadline_s)
        finally:
            lane.close()

    def _call(self, what: str, function: Callable[[], T]) -> T:
        return self._lane.call(what, function, self._deadline_s)
