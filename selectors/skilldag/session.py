"""One task's use of SkillDAG."""

from __future__ import annotations

from collections.abc import Sequence

from skillarena.envs.interface import Task
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import Advice, EpisodeRecord, Lesson, Trigger
from skillarena.selectors.skilldag.journal import lesson_content
from skillarena.selectors.skilldag.overlay import Overlay
from skillarena.selectors.skilldag.tools import GraphTool

REVIEW = (
    "The episode is over. If it showed how two skills relate to each other, or that a relation in the graph is wrong,"
    " record that now: look at the pair with propose_edge, then use edit_edge or rollback. Failure and success count"
    " alike. Give what happened in this task as the reason, and leave out what was chance. If there is nothing to"
    " record, say so."
)


class DagSession:
    """Offers the tools, and remembers the edits as a lesson.

    Args:
        task: what is played.
        selection: what the episode starts with.
        overlay: the session's graph.
        tools: for the agent.
        learns: whether the agent may edit the graph.
    """

    trigger: Trigger | None = None

    def __init__(
        self, task: Task, selection: Selection, overlay: Overlay, tools: tuple[GraphTool, ...], *, learns: bool
    ) -> None:
        self.selection = selection
        self.tools = tools
        self.review = REVIEW if learns else ""
        self._task = task
        self._overlay = overlay
        self._learns = learns

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        """Nothing: the agent asks by itself."""
        return Advice()

    def close(self, episode: EpisodeRecord | None = None) -> Lesson | None:
        """The edits of a finished episode with its outcome; an episode without edits is noted too."""
        if episode is None or not self._learns:
            return None
        content = lesson_content(self._overlay.base, episode.won, episode.reward, self._overlay.edits)
        return Lesson(self._task.benchmark, self._task.split, self._task.id, content)
