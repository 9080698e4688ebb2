"""SPEM (arXiv 2610.26995): a remembered procedure where one fits, else skills ranked by a graph network."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from skillarena.conf.errors import ConfigError, DataError
from skillarena.conf.user_path import user_path
from skillarena.envs.interface import Task
from skillarena.selectors.interface import SelectedSkill, Selection
from skillarena.selectors.live import Advice, EpisodeRecord, EpisodeTool, Lesson, Trigger
from skillarena.selectors.measure import offline
from skillarena.selectors.options import check_counts, check_flags
from skillarena.selectors.parts import Parts
from skillarena.selectors.provenance import check_unseen
from skillarena.selectors.shortlist import check_size, choose
from skillarena.selectors.spem.decisions import Decision, Decisions, known_order
from skillarena.selectors.spem.guidance import describe_order, describe_template
from skillarena.selectors.spem.leakage import check_learnable
from skillarena.selectors.spem.learning import Learner
from skillarena.selectors.spem.lessons import make_lesson
from skillarena.selectors.spem.memory import FORMAT, Memory
from skillarena.selectors.spem.procedure import skills as skills_of
from skillarena.selectors.spem.templates import Template, nearest
from skillarena.selectors.spem.warm_start import warm_start


class Spem:
    """Gives the procedure that solved a similar task before, with the skills it uses.

    Without one it gives the skills that the Skill-GNN ranks first among the nearest ones. Once in an episode that does
    not get on, it ranks again.

    Args:
        parts: library and embedder.
        k: candidates that the network ranks.
        top_k: skills to give.
        tau: least cosine of two instructions for which one procedure serves, -1 to 1.
        episodes_per_update: episodes that start from the same memory; 1 learns after each.
        freeze: learn nothing.
        memory: file that a learning run wrote; None begins with what the library's metadata teach.

    Raises:
        ConfigError: an option makes no sense.
        LibraryError: the library has fewer than k or top_k skills.
        DataError: the memory cannot be read, is damaged or of another library.
    """

    needs = ("embedder",)

    def __init__(
        self,
        parts: Parts,
        *,
        k: int = 30,
        top_k: int = 2,
        tau: float = 0.75,
        episodes_per_update: int = 8,
        freeze: bool = False,
        memory: str | Path | None = None,
    ) -> None:
        check_counts(k=k, top_k=top_k, episodes_per_update=episodes_per_update)
        check_flags(freeze=freeze)
        check_size(parts.library, "k", k)
        if top_k > k:
            raise ConfigError(f"top_k={top_k} skills cannot be given out of k={k} candidates", f"set top_k={k} or less")
        if not -1.0 <= tau <= 1.0:
            raise ConfigError(f"tau={tau:g} is no cosine", "give a number from -1 to 1")
        self.learns = not freeze
        self.episodes_per_update = episodes_per_update
        self.identity = ""
        self._parts = parts
        self._k = k
        self._top_k = top_k
        self._tau = tau
        self._decisions = Decisions(parts, k)
        self._stored = None if memory is None else _read(user_path(memory))
        self.identity = "" if self._stored is None else sha256(self._stored).hexdigest()
        self._loaded = None if self._stored is None else self._load(self._stored)

    def initial_memory(self) -> bytes:
        """The file's content, or a memory with a warm-started network and nothing else. Raises ``RerankerError``."""
        if self._stored is not None:
            return self._stored
        library, embedder = self._parts.library, self._parts.embedder
        return self._parts.indexes.get_or_make(
            "spem-start", library.fingerprint, embedder.identity, str(self._k), FORMAT, make=self._cold_start
        )

    def with_memory(self, memory: bytes) -> Spem:
        """The same method with another memory; recall and what is known of skills are shared.

        Raises ``DataError`` for a damaged memory, or one of another library or embedder.
        """
        loaded = self._load(memory)
        if loaded.embedder != self._parts.embedder.identity:
            raise DataError(
                f"the SPEM memory was made with the embedder {loaded.embedder}, not {self._parts.embedder.identity}",
                "choose that embedder, or learn the memory anew",
            )
        other = copy.copy(self)
        other._loaded = loaded
        return other

    def learn(self, memory: bytes, lessons: Sequence[Lesson]) -> bytes:
        """The memory after lessons, which come in task order.

        Raises:
            ConfigError: the selector is frozen, or a lesson is of an evaluation split.
            DataError: the memory or a lesson is damaged.
            RerankerError: the embedder fails.
        """
        if not self.learns:
            raise ConfigError("a frozen SPEM was told to learn", "set selector.freeze=false")
        with offline():
            learner = Learner(self._parts.library, self._decisions, self._tau)
            return learner.learned(self.with_memory(memory).memory, lessons).to_bytes()

    def check_tasks(self, tasks: Sequence[Task]) -> None:
        """Preflight against leakage.

        Raises ``ConfigError``: learning from an evaluation split, or evaluation on what the memory has learned from.
        """
        if self.learns:
            check_learnable(tasks)
        elif self._loaded is not None:
            check_unseen(self._loaded.provenance, tasks)

    def open(self, task: Task) -> SpemSession:
        """Choose a procedure or skills. Raises ``RerankerError``."""
        memory = self.memory
        vector = self._decisions.vectors([task.goal], "query")[0]
        found = nearest(memory.templates, vector, self._tau)
        return self.attend(task, self._from_template(*found) if found else self._ranked(task))

    def attend(self, task: Task, selection: Selection) -> SpemSession:
        """The session for an episode that starts with a selection."""
        return SpemSession(self, task, selection)

    def rerank(self, task: Task, observation: str, actions: Sequence[str], given: set[str]) -> Advice:
        """The best skills for the present state that were not given yet. Raises ``RerankerError``."""
        decision = self._decide(task, (observation, actions))
        ranking = [
            (at, score)
            for at, score in decision.ranking(self.memory.weights)
            if decision.candidates[at].id not in given
        ]
        best = ranking[: self._top_k]
        return Advice(self._order(decision, best), self._chosen(decision, best))

    @property
    def memory(self) -> Memory:
        """What it goes by: the memory that it was given, or else the initial one. Raises ``RerankerError``."""
        if self._loaded is None:
            with offline():
                self._loaded = self._load(self.initial_memory())
        return self._loaded

    def _load(self, data: bytes) -> Memory:
        memory = Memory.from_bytes(data)
        if memory.library != self._parts.library.fingerprint:
            raise DataError(
                "the SPEM memory is of another skill library", "choose that library, or learn the memory anew"
            )
        return memory

    def _cold_start(self) -> bytes:
        library = self._parts.library
        weights = warm_start(library, self._decisions).weights
        return Memory(library.fingerprint, self._parts.embedder.identity, weights).to_bytes()

    def _decide(self, task: Task, state: tuple[str, Sequence[str]] | None) -> Decision:
        memory = self.memory
        return self._decisions.decide(
            task.goal, self._decisions.recall(task.goal), memory.statistics, known_order(memory.templates), state
        )

    def _from_template(self, template: Template, cosine: float) -> Selection:
        library = self._parts.library
        used = [library.by_id[skill] for skill in skills_of(template.procedure) if skill in library.by_id]
        skills = tuple(
            choose(skill, cosine, f"Part of the procedure for: {template.goal}") for skill in used[: self._top_k]
        )
        return Selection(
            skills=skills,
            guidance=describe_template(template, library),
            marks=("template",),
            details={
                "method": "spem",
                "template": {
                    "source": template.source,
                    "goal": template.goal,
                    "cosine": cosine,
                    "uses": template.uses,
                    "successes": template.successes,
                    "steps": [step.action for step in template.procedure],
                },
                "ranking": [skill.id for skill in used],
                "chosen": [skill.id for skill in skills],
            },
        )

    def _ranked(self, task: Task) -> Selection:
        decision = self._decide(task, None)
        ranking = decision.ranking(self.memory.weights)
        best = ranking[: self._top_k]
        return Selection(
            skills=self._chosen(decision, best),
            guidance=self._order(decision, best),
            details={
                "method": "spem",
                "template": None,
                "candidates": [
                    {
                        "id": decision.candidates[at].id,
                        "name": decision.candidates[at].name,
                        "cosine": float(decision.graph.similarity[at]),
                        "utility": utility,
                    }
                    for at, utility in ranking
                ],
                "ranking": [decision.candidates[at].id for at, _ in ranking],
                "chosen": [decision.candidates[at].id for at, _ in best],
            },
        )

    def _chosen(self, decision: Decision, best: Sequence[tuple[int, float]]) -> tuple[SelectedSkill, ...]:
        size = len(decision.candidates)
        return tuple(
            choose(decision.candidates[at], utility, f"Rank {rank} of {size} candidates by the Skill-GNN.")
            for rank, (at, utility) in enumerate(best, start=1)
        )

    def _order(self, decision: Decision, best: Sequence[tuple[int, float]]) -> str:
        positions = [at for at, _ in best]
        return describe_order([decision.candidates[at] for at in positions], decision.links, positions)


class SpemSession:
    """One episode with SPEM."""

    trigger: Trigger | None = Trigger(stale_steps=5, invalid_in_a_row=3, times=1)
    review = ""
    tools: tuple[EpisodeTool, ...] = ()

    def __init__(self, selector: Spem, task: Task, selection: Selection) -> None:
        self.selection = selection
        self._selector = selector
        self._task = task
        self._given = {skill.id for skill in selection.skills}

    def advise(self, observation: str, actions: Sequence[str]) -> Advice:
        """Rank once more with the present state; gives only skills that were not given before."""
        advice = self._selector.rerank(self._task, observation, actions, self._given)
        self._given |= {skill.id for skill in advice.skills}
        return advice

    def close(self, episode: EpisodeRecord | None = None) -> Lesson | None:
        """What the episode taught; nothing when frozen."""
        if episode is None or not self._selector.learns:
            return None
        return make_lesson(self._task, self.selection, episode)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            f"the SPEM memory {path} cannot be read ({error.strerror or error})",
            "name a memory file that a learning run wrote, or set selector.memory=null",
        ) from error
