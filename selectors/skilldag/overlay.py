"""One session's view of the graph: the memory, and the edits that the session has made itself."""

from __future__ import annotations

from typing import Any

from skillarena.selectors.interface import Skill
from skillarena.selectors.skilldag.edges import unknown_skill
from skillarena.selectors.skilldag.graph import SkillGraph
from skillarena.selectors.skilldag.history import Edit, Entry, History
from skillarena.selectors.skilldag.index import LibraryIndex
from skillarena.selectors.skilldag.search import search


class Overlay:
    """What tools work on. Nobody else sees its edits before they are merged.

    Args:
        history: of the memory; it is not changed.
        index: of the library.
        task_id: the task being played, noted with every edit.
    """

    def __init__(self, history: History, index: LibraryIndex, task_id: str) -> None:
        self.history = history.fork()
        self.edits: list[tuple[str, Edit]] = []
        """Edits made, each with the name that it has in this session."""
        self.base = history.revision
        """Revision of the memory."""
        self._index = index
        self._task_id = task_id

    @property
    def graph(self) -> SkillGraph:
        """The graph with the session's edits."""
        return self.history.graph

    def commit(self, edit: Edit) -> Entry:
        """Make an edit. Raises ``GraphError``."""
        name = f"own{len(self.edits) + 1}"
        entry = self.history.commit(edit, name, self._task_id)
        self.edits.append((name, edit))
        return entry

    def try_out(self, edit: Edit) -> None:
        """Make an edit on a copy. Raises ``GraphError`` as ``commit`` would."""
        self.history.fork().commit(edit, "tried", self._task_id)

    def search(self, query: str, *, top_k: int, depth: int, most: int) -> dict[str, Any]:
        """See ``search.search``."""
        return search(query, self._index.nearest, self.graph, self._index.skills, top_k=top_k, depth=depth, most=most)

    def skill(self, skill_id: str) -> Skill:
        """A skill by its id. Raises ``GraphError``."""
        if skill_id not in self._index.skills:
            raise unknown_skill(skill_id)
        return self._index.skills[skill_id]

    def suggest(self, skill_id: str) -> list[str]:
        """Ids that may be meant by an unknown one, the likeliest first."""
        return self._index.suggest(skill_id)
