"""SkillDAG: a typed skill graph that the agent searches, reads and edits (arXiv 2606.03056)."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

from skillarena.conf.errors import ConfigError
from skillarena.conf.user_path import user_path
from skillarena.envs.interface import Task
from skillarena.selectors.interface import Indexing, Selection
from skillarena.selectors.live import Lesson
from skillarena.selectors.options import check_choice, check_counts, check_flags
from skillarena.selectors.parts import Parts
from skillarena.selectors.provenance import Provenance, check_unseen
from skillarena.selectors.shortlist import Candidate, check_size, choose
from skillarena.selectors.skilldag.cold_start import CLASSIFIERS, NEEDS_VIEWS
from skillarena.selectors.skilldag.history import History
from skillarena.selectors.skilldag.index import LibraryIndex
from skillarena.selectors.skilldag.journal import check_library, empty_memory, learn, read_episodes, read_memory
from skillarena.selectors.skilldag.llm_cold_start import llm_work
from skillarena.selectors.skilldag.overlay import Overlay
from skillarena.selectors.skilldag.session import DagSession
from skillarena.selectors.skilldag.tools import editing_tools, reading_tools

_RANKED = 50
"""Skills ranked for a task; the initial ones are taken from these."""


class SkillDag:
    """The agent gets tools to search a graph of skills, to read skills and, unless frozen, to edit the graph.

    Args:
        parts: library, embedder, and parser or llm as the options ask for.
        top_k: skills given at the start; the published protocol gives none and lets the agent search.
        search_k: matches of a search in which the agent names no number.
        depth: steps that related skills may be away in such a search.
        max_related: conflicts and related skills listed in one answer, of each; the others are counted.
        needs_view: what says what a skill needs first: ``parser`` or ``llm`` (a call for each skill).
        classifier: what gives pairs of skills their types at the cold start: ``rules`` or ``llm`` (likewise).
        freeze: the graph is read only; nothing is learned.
        memory: file with what an earlier run has learned; None starts from the cold-started graph.
        episodes_per_update: tasks in a batch of learning.

    Raises:
        ConfigError: an option makes no sense, or the memory's file cannot be read.
        LibraryError: the library has fewer than ``top_k`` skills.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        top_k: int = 1,
        search_k: int = 5,
        depth: int = 2,
        max_related: int = 5,
        needs_view: str = "parser",
        classifier: str = "rules",
        freeze: bool = False,
        memory: str | None = None,
        episodes_per_update: int = 8,
    ) -> None:
        check_choice("needs_view", needs_view, NEEDS_VIEWS)
        check_choice("classifier", classifier, CLASSIFIERS)
        check_counts(search_k=search_k, max_related=max_related, episodes_per_update=episodes_per_update)
        for option, value in (("top_k", top_k), ("depth", depth)):
            if value != 0 or isinstance(value, bool):
                check_counts(**{option: value})
        if top_k:
            check_size(parts.library, "top_k", top_k)
        check_flags(freeze=freeze)
        self.learns = not freeze
        self.episodes_per_update = episodes_per_update
        models = {"parser": needs_view == "parser", "llm": "llm" in (needs_view, classifier)}
        self.needs = ("embedder", *(model for model, needed in models.items() if needed))
        self._learned = None if memory is None else _read_file(memory)
        self.identity = "" if self._learned is None else sha256(self._learned).hexdigest()
        self._parts = parts
        self._top_k = top_k
        self._search_k = search_k
        self._depth = depth
        self._max_related = max_related
        self._llm_work = {"needs": needs_view == "llm", "labels": classifier == "llm"}
        self._file = memory
        self._index = LibraryIndex(parts, needs_view, classifier)

    def indexing(self) -> Indexing | None:
        """LLM calls of the cold start; None when it makes none."""
        return llm_work(self._parts.library.skills, **self._llm_work) if any(self._llm_work.values()) else None

    def open(self, task: Task) -> DagSession:
        """The skills nearest to the task, none that conflicts with a nearer one, and the tools.

        Raises ``RerankerError``, ``BackboneError``, ``LibraryError`` or ``DataError`` (memory).
        """
        ranking = self._index.nearest(task.goal, max(_RANKED, self._top_k))
        chosen, pruned = self._without_conflicts(ranking)
        skills = tuple(
            choose(candidate.skill, candidate.cosine, f"Number {rank} by similarity, without conflicting skills.")
            for rank, candidate in enumerate(chosen, start=1)
        )
        ids = [skill.id for skill in skills]
        details: dict[str, Any] = {
            "method": "skilldag",
            "chosen": ids,
            "ranking": [*ids, *(near.skill.id for near in ranking if near.skill.id not in ids)],
            "candidates": [{"id": near.skill.id, "cosine": near.cosine} for near in ranking],
            "conflicting": pruned,
            "revision": self._history.revision,
        }
        return self.attend(task, Selection(skills, details=details))

    def attend(self, task: Task, selection: Selection) -> DagSession:
        """The session for an episode that starts with a selection of :meth:`open`."""
        overlay = Overlay(self._history, self._index, task.id)
        tools = reading_tools(overlay, top_k=self._search_k, depth=self._depth, most=self._max_related)
        if self.learns:
            tools += editing_tools(overlay)
        return DagSession(task, selection, overlay, tools, learns=self.learns)

    def initial_memory(self) -> bytes:
        """The memory file's content, or the memory of a cold start."""
        return empty_memory(self._index.first) if self._learned is None else self._learned

    def with_memory(self, memory: bytes) -> SkillDag:
        """The same method with another memory. Raises ``DataError`` for a damaged or foreign one."""
        other = copy.copy(self)
        other._history = self._replay(memory)
        return other

    def learn(self, memory: bytes, lessons: Sequence[Lesson]) -> bytes:
        """The memory with lessons appended (see ``journal.learn``). Raises ``ConfigError`` when frozen."""
        if not self.learns:
            raise ConfigError("a frozen SkillDAG was asked to learn", "set selector.freeze=false")
        return learn(memory, lessons, self._index.first)

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Whether these tasks may be played.

        Raises:
            ConfigError: the memory's file was learned on some of them or, when frozen, on others of their split.
            DataError: the file is damaged.
        """
        if self._learned is None:
            return
        check_library(self._learned, self._parts.library.fingerprint)
        episodes = read_episodes(self._learned)
        splits = frozenset() if self.learns else frozenset((past.benchmark, past.split) for past in episodes)
        provenance = Provenance(frozenset(past.task_id for past in episodes), splits)
        check_unseen(provenance, tasks, f"the memory {self._file}")

    def graph_json(self, memory: bytes) -> dict[str, Any]:
        """The graph of a memory, for people: edges in force, and the number of episodes and edits behind it."""
        journal = read_memory(memory, self._index.first)
        return {
            "episodes": len(journal.episodes),
            "edits": journal.edits,
            "edits_carried_out": journal.history.revision,
            "edges": [edge.as_json() for edge in journal.history.graph.edges],
        }

    @cached_property
    def _history(self) -> History:
        return self._replay(self.initial_memory())

    def _replay(self, memory: bytes) -> History:
        history = read_memory(memory, self._index.first).history
        if not self.learns:
            history.graph.freeze()
        return history

    def _without_conflicts(self, ranking: Sequence[Candidate]) -> tuple[list[Candidate], list[str]]:
        """The best ``top_k`` that exclude none before them, and the ids of those left out."""
        chosen: list[Candidate] = []
        pruned: list[str] = []
        excluded: set[str] = set()
        for candidate in ranking:
            if len(chosen) == self._top_k:
                break
            if candidate.skill.id in excluded:
                pruned.append(candidate.skill.id)
                continue
            chosen.append(candidate)
            excluded.update(self._history.graph.conflicts(candidate.skill.id))
        return chosen, pruned


def _read_file(path: str) -> bytes:
    try:
        return user_path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"the SkillDAG memory {path} cannot be read ({error.strerror or error})",
            "name a file that a learning run has written, or set selector.memory=null",
        ) from error
