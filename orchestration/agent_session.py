"""A selector's session as the agent loop sees it, wherever it lives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from skillarena.conf.errors import nearest
from skillarena.selectors.live import Advice, LiveSession, ToolResult, Trigger


@dataclass(frozen=True, slots=True)
class ToolInfo:
    """What the agent is told of a tool (see ``EpisodeTool``)."""

    name: str
    usage: str
    description: str


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """What does not change during a session."""

    tools: tuple[ToolInfo, ...] = ()
    trigger: Trigger | None = None
    review: str = ""


class AgentSession(Protocol):
    """A session during an episode. Methods raise ``SkillArenaError`` when the session is lost."""

    info: SessionInfo

    def call(self, name: str, arguments: dict[str, Any] | None) -> ToolResult:
        """Answer a tool call; ``arguments`` is None when they were no JSON object."""

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        """See ``LiveSession.advise``."""


class LocalSession:
    """A session in this process."""

    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._tools = {tool.name: tool for tool in session.tools}
        tools = tuple(ToolInfo(tool.name, tool.usage, tool.description) for tool in session.tools)
        self.info = SessionInfo(tools, session.trigger, session.review)

    def call(self, name: str, arguments: dict[str, Any] | None) -> ToolResult:
        """Answer a tool call, also one that makes no sense."""
        tool = self._tools.get(name)
        if tool is None:
            hint = nearest(name, list(self._tools))
            return refusal("UNKNOWN_TOOL", f"there is no tool {name!r}{hint}; there are: {', '.join(self._tools)}")
        if arguments is None:
            form = f"the arguments must be one JSON object of reasonable size, as in: Tool: {name} {tool.usage}"
            return refusal("INVALID_JSON", form)
        return tool.call(arguments)

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        """See ``LiveSession.advise``."""
        return self._session.advise(observation, actions)


def refusal(code: str, message: str) -> ToolResult:
    """The answer to a call that cannot be carried out."""
    return ToolResult(orjson.dumps({"ok": False, "error": {"code": code, "message": message}}).decode(), ok=False)
