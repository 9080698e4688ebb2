"""The words of skill selection: skills in, a selection with its reasons and costs out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from skillarena.envs.interface import Task

if TYPE_CHECKING:
    from skillarena.selectors.live import EpisodeRecord, EpisodeTool, Lesson


@dataclass(frozen=True, slots=True)
class Skill:
    """One ``SKILL.md`` document."""

    id: str
    """Unique in its library."""
    name: str
    """Name from the front matter; several skills may share it."""
    description: str
    """Short description from the front matter; may be empty."""
    body: str
    """The document without its front matter."""
    source: str = ""
    """Where it was read from (path or ``file:line``)."""
    fields: tuple[tuple[str, str], ...] = ()
    """Other entries of the front matter, keys in lower case, lists and mappings as YAML; most methods ignore them."""

    @property
    def metadata(self) -> str:
        """m_i of the SkillReranker paper: name and description, what recall is computed on."""
        return f"{self.name}: {self.description}" if self.description else self.name

    @property
    def text(self) -> str:
        """c_i of the SkillReranker paper: the full text, what scoring and agents read."""
        return f"# {self.name}\n{self.description}\n\n{self.body}".strip()


@dataclass(frozen=True, slots=True)
class SelectedSkill:
    """A skill chosen for a task, complete enough to be shown to an agent on another machine."""

    id: str
    name: str
    description: str
    text: str
    """Full text for the prompt."""
    score: float
    """The selector's own score of this choice; higher is better within one selection."""
    reason: str
    """One sentence for people."""


MARKS = {
    "parse_fallback": "the task could not be parsed and counts as one sub-task",
    "skill_parse_fallback": "a candidate could not be parsed",
    "empty_graph": "no candidate fits between the task's states",
    "library_truncated": "the whole library did not fit into the prompt",
    "bodies_trimmed": "skill texts were cut to fit the selecting model",
    "ranking_repaired": "the selecting model's list was asked for again or completed",
    "ranking_fallback": "the selecting model named no candidate, so recall order stands",
    "unlinked": "the graph of this library has no edge",
    "links_missing": "a model gave no usable answer about the relations of a chosen skill",
    "not_labelled": "the task's type has no labelled skills in this library",
    "template": "a remembered procedure was given",
}
"""What can be unusual about a selection, with what it means."""


@dataclass(frozen=True, slots=True)
class SelectionCost:
    """What one selection took, as computed (a reused selection keeps the cost of its computation)."""

    seconds: float = 0.0
    """Wall time of the selection, offline work (skill parsing, indexing) not included."""
    pairs_scored: int = 0
    """Query-document pairs the reranker model scored (cache hits not included)."""
    pairs_cached: int = 0
    """Query-document pairs answered by the score cache."""
    prompt_tokens: int = 0
    """Prompt tokens of online LLM calls (task parsing, LLM selection)."""
    completion_tokens: int = 0
    """Completion tokens of online LLM calls."""
    llm_calls: int = 0
    """Online LLM calls."""
    offline_tokens: int = 0
    """Prompt and completion tokens of skill parses that this selection was the first to need. They belong to the
    library and are paid once, so they are no part of a task's cost."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The outcome of a selector for one task."""

    skills: tuple[SelectedSkill, ...] = ()
    """Chosen skills in the order the agent should read them."""
    guidance: str = ""
    """Text of the method's own that the agent reads before the skills (a procedure, a list of names); may be empty."""
    marks: tuple[str, ...] = ()
    """What was unusual: one of ``MARKS``."""
    details: dict[str, Any] = field(default_factory=dict)
    """JSON-able working of the method for explanation and figures (states, edges, flows, stages, scores)."""
    cost: SelectionCost = SelectionCost()


@runtime_checkable
class Selector(Protocol):
    """A method that chooses skills for a task. Deterministic for a given configuration, library and task.

    An attribute ``needs`` names the models it reads from its parts, out of ``embedder``, ``reranker``, ``parser`` and
    ``llm``; without one it counts as needing all but ``llm``. Preflight builds just these, and a selection is computed
    anew only when one of these changes. An attribute ``identity`` stands for the content of files that its options
    name. A method ``indexing() -> Indexing`` says what LLM calls its first use of a library takes.
    """

    def open(self, task: Task) -> SelectorSession:
        """Choose skills. Raises ``RerankerError``, ``BackboneError`` or ``LibraryError``."""


@runtime_checkable
class SelectorSession(Protocol):
    """One task's use of a selector."""

    selection: Selection
    tools: tuple[EpisodeTool, ...]
    """What the agent may call inside the episode; empty for most methods."""

    def close(self, episode: EpisodeRecord | None = None) -> Lesson | None:
        """End the session; a learning selector says what the episode taught."""


@dataclass(slots=True)
class FixedSession:
    """The session of every selector that decides once, before the episode."""

    selection: Selection
    tools: tuple[EpisodeTool, ...] = ()

    def close(self, episode: EpisodeRecord | None = None) -> Lesson | None:
        """Nothing to learn."""
        return None


@dataclass(frozen=True, slots=True)
class Indexing:
    """LLM work on a whole library that is done once and kept."""

    calls: int
    """Calls at most."""
    prompt_tokens: int
    """Their prompt tokens, estimated."""
    completion_tokens: int = 0
    """Their completion tokens, estimated; 0 where nothing is known."""


@runtime_checkable
class Embedder(Protocol):
    """Maps texts to unit vectors."""

    identity: str
    """Model, revision and template: the cache key's first part."""

    def encode(self, texts: Sequence[str], kind: Literal["query", "document"]) -> NDArray[np.float32]:
        """float32[n, d], rows of unit length. Raises ``RerankerError``."""


@runtime_checkable
class Reranker(Protocol):
    """Scores how relevant a document is to a query."""

    identity: str
    """Model, revision and template: the cache key's first part."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """float32[n] of raw logits (never probabilities) for (query, document) pairs. Raises ``RerankerError``."""


@dataclass(frozen=True, slots=True)
class ParsedTask:
    """A task as sub-tasks t_0..t_{m-1} and states s_0..s_m (one more state than sub-tasks)."""

    subtasks: tuple[str, ...]
    states: tuple[str, ...]
    fallback: bool = False
    """True when the parser gave up and the task counts as one sub-task."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    llm_calls: int = 0


@dataclass(frozen=True, slots=True)
class ParsedSkill:
    """A skill's precondition state p_k (None: nothing required) and completion state e_k."""

    precondition: str | None
    completion: str
    fallback: bool = False
    prompt_tokens: int = 0
    completion_tokens: int = 0
    llm_calls: int = 0


@runtime_checkable
class Parser(Protocol):
    """Turns instructions and skills into states."""

    identity: str
    """Parser, model and prompt version: the cache key's first part."""

    def parse_task(self, task: Task) -> ParsedTask:
        """Never raises for odd text: falls back and says so. Raises ``BackboneError`` when its model is unreachable."""

    def parse_skill(self, skill: Skill) -> ParsedSkill:
        """Likewise, for one skill."""
