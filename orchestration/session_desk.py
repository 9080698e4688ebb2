"""The process that holds the sessions of selectors which take part in episodes: one for a whole sweep.

A library, its vectors and graphs are in memory once, however many episodes are under way. A session whose process died
is lost; its episode breaks off and is tried again.
"""

from __future__ import annotations

import os
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillarena.conf.errors import ConfigError, ModelHostLost
from skillarena.envs.interface import Task
from skillarena.orchestration.agent_session import LocalSession, SessionInfo
from skillarena.orchestration.backbones.gate import Gates
from skillarena.orchestration.jobs import Method
from skillarena.orchestration.selector_shelf import SelectorShelf
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import Advice, EpisodeRecord, Lesson, LiveSelector, LiveSession, ToolResult

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_MOST_SESSIONS = 10_000  # those of episodes that broke off are never closed; the oldest go


@dataclass(frozen=True)
class OpenSession:
    """A session that the desk has opened."""

    token: str
    info: SessionInfo


class SessionDesk:
    """Opens, serves and closes sessions, one call at a time. Plain Python; ``crew.py`` makes it an actor.

    Methods raise ``SkillArenaError`` as the selectors do, and ``ModelHostLost`` for a session of an earlier process.
    """

    def __init__(self, cache_dir: str | None, secrets: Mapping[str, str]) -> None:
        os.environ.update(secrets)
        self._cache_dir = cache_dir
        self._shelf: SelectorShelf | None = None
        self._sessions: OrderedDict[str, tuple[LiveSession, LocalSession]] = OrderedDict()

    def open(
        self, method: Method, task: Task, selection: Selection, governor: ActorHandle[Any] | None = None
    ) -> OpenSession:
        """A session for an episode that starts with ``selection``; calls to language models obey the governor."""
        # It is no argument of the constructor, as Ray cannot restart an actor that was made with another's handle.
        self._shelf = self._shelf or SelectorShelf(self._cache_dir, Gates(governor))
        _, selector = self._shelf.take(method)
        if not isinstance(selector, LiveSelector):
            raise ConfigError(f"{type(selector).__name__} takes no part in episodes", "let it have a method `attend`")
        session = selector.attend(task, selection)
        token = uuid.uuid4().hex
        self._sessions[token] = (session, LocalSession(session))
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return OpenSession(token, self._sessions[token][1].info)

    def call(self, token: str, name: str, arguments: dict[str, Any] | None) -> ToolResult:
        """See ``AgentSession.call``."""
        return self._session(token)[1].call(name, arguments)

    def advise(self, token: str, observation: str, actions: Sequence[str]) -> Advice:
        """See ``LiveSession.advise``."""
        return self._session(token)[1].advise(observation, actions)

    def close(self, token: str, record: EpisodeRecord) -> Lesson | None:
        """See ``SelectorSession.close``."""
        session, _ = self._session(token)
        del self._sessions[token]
        return session.close(record)

    def _session(self, token: str) -> tuple[LiveSession, LocalSession]:
        if token not in self._sessions:
            raise ModelHostLost(
                "the process with the selector's sessions was started anew", "the episode is tried again"
            )
        return self._sessions[token]
