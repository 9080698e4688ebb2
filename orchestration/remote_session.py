"""A session at a ``SessionDesk``, seen from a rollout worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from skillarena.conf.errors import ModelHostLost, SkillArenaError
from skillarena.envs.interface import Task
from skillarena.orchestration.jobs import Seat
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import Advice, EpisodeRecord, Lesson, ToolResult

_TIMEOUT_S = 300.0
"""For one call, the wait for others included."""
_RETRY = "the episode is tried again; if it fails for good, look for the cause in Ray's logs (lack of memory?)"


class RemoteSession:
    """An ``AgentSession`` in another process.

    Args:
        seat: where it is opened.
        task: the episode's task.
        selection: what the episode starts with.

    Raises:
        ModelHostLost: here and in every method: the process died or hangs.
        SkillArenaError: whatever the selector raises.
    """

    def __init__(self, seat: Seat, task: Task, selection: Selection) -> None:
        self._desk = seat.desk
        opened = self._ask("open", seat.method, task, selection, seat.governor, timeout_s=seat.timeout_s)
        self._token: str = opened.token
        self.info = opened.info

    def call(self, name: str, arguments: dict[str, Any] | None) -> ToolResult:
        """See ``AgentSession.call``."""
        return cast("ToolResult", self._ask("call", self._token, name, arguments))

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        """See ``LiveSession.advise``."""
        return cast("Advice", self._ask("advise", self._token, observation, list(actions)))

    def end(self, record: EpisodeRecord) -> Lesson | None:
        """What the episode taught. The session of an episode that breaks off ends with the desk's process."""
        return cast("Lesson | None", self._ask("close", self._token, record))

    def _ask(self, method: str, *arguments: Any, timeout_s: float = _TIMEOUT_S) -> Any:
        import ray
        from ray.exceptions import GetTimeoutError, RayError, RayTaskError

        try:
            return ray.get(getattr(self._desk, method).remote(*arguments), timeout=timeout_s)
        except RayTaskError as error:
            if isinstance(error.cause, SkillArenaError):
                raise error.cause from None
            raise
        except GetTimeoutError:
            raise ModelHostLost(f"the selector's session gave no answer in {timeout_s:g} s", _RETRY) from None
        except RayError as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise ModelHostLost(f"the process with the selector's session died: {reason}", _RETRY) from None
