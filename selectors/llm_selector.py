"""A language model as the selector (baseline of arXiv 2607.06283): it reads all candidates and ranks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from skillarena.conf.errors import ConfigError, ContextOverflow
from skillarena.envs.interface import Task
from skillarena.selectors.interface import FixedSession, Selection, Skill
from skillarena.selectors.llm import Answer, CachedLlm
from skillarena.selectors.llm_ranking import (
    IDS,
    PROMPT_VERSION,
    Ids,
    Ranking,
    body_limits,
    complaint,
    make_ids,
    question,
    read_ranking,
    spoken,
)
from skillarena.selectors.options import check_choice, check_counts
from skillarena.selectors.parts import Parts
from skillarena.selectors.shortlist import Candidate, Shortlist, choose

_LONGEST_ECHO = 1000
"""Characters of an answer that is shown to the model again."""


class LlmSelector:
    """Puts the full text of all candidates into one prompt and takes the model's ranking.

    A usable answer names at least half of the candidates, no fewer than ``top_k``, and nothing unknown. Any other is
    asked for once more, saying what was wrong with it; when that does not help, the answer that names more counts.
    Skills that were not named follow in recall order. Where the bodies do not fit into the model's context, all are
    cut to one length; names and descriptions never are.

    Args:
        parts: library, embedder and language model.
        k: candidates from coarse recall.
        top_k: skills to choose (the paper reports the mean of 1 and 2).
        ids: what candidates are called in the prompt, ``letters`` or ``numbers``.

    Raises:
        ConfigError: an option makes no sense, or more skills to choose than candidates.
        LibraryError: the library has fewer than k skills.
    """

    needs = ("embedder", "llm")
    identity = f"prompt {PROMPT_VERSION}"

    def __init__(self, parts: Parts, *, k: int = 30, top_k: int = 1, ids: Ids = "letters") -> None:
        check_counts(top_k=top_k)
        check_choice("ids", ids, IDS)
        self._shortlist = Shortlist(parts, k)
        if top_k > k:
            raise ConfigError(f"top_k={top_k} asks for more skills than the k={k} candidates", "set top_k to k or less")
        self._parts = parts
        self._top_k = top_k
        self._ids: Ids = ids

    def open(self, task: Task) -> FixedSession:
        """Choose skills. Raises ``RerankerError``; ``BackboneError``, also when not even names fit into the model."""
        found = self._shortlist.candidates(task)
        candidates = dict(zip(make_ids(len(found), self._ids), found, strict=True))
        skills = {label: candidate.skill for label, candidate in candidates.items()}
        chat = _Chat(self._parts.llm, task.goal, skills)
        ranking, problems = chat.rank(least=max(self._top_k, (len(found) + 1) // 2))
        return FixedSession(_Outcome(candidates, ranking, problems, chat.body_chars).selection(self._top_k))


class _Chat:
    """One task's ranking asked of a model, with bodies cut as far as its context demands.

    Args:
        llm: the model.
        goal: the task's instruction.
        skills: the candidates by id, in recall order.
    """

    def __init__(self, llm: CachedLlm, goal: str, skills: Mapping[str, Skill]) -> None:
        self._llm = llm
        self._goal = goal
        self._skills = skills
        self._limits = body_limits([len(skill.body) for skill in skills.values()])
        self.body_chars = next(self._limits)
        """Characters kept of each body; None: all."""

    def rank(self, least: int) -> tuple[Ranking, list[str]]:
        """The model's ranking, and what was wrong with each answer that could not be used.

        Args:
            least: ids that a usable answer names.
        """
        answer = self._fitting_answer()
        first, problem = self._read(answer, least)
        if problem is None:
            return first, []
        if answer.cut and self.body_chars:
            # Servers let a context end an answer: bodies that only just fitted may have left no room for one.
            self.body_chars = next(self._limits, self.body_chars)
        again = self._fitting_answer(
            {"role": "assistant", "content": spoken(answer.text)[:_LONGEST_ECHO] or "(no answer)"},
            {"role": "user", "content": complaint(problem, list(self._skills))},
        )
        second, still = self._read(again, least)
        if still is None:
            return second, [problem]
        return max(second, first, key=lambda ranking: len(ranking.named)), [problem, still]

    def _read(self, answer: Answer, least: int) -> tuple[Ranking, str | None]:
        """What an answer says, and what is wrong with it."""
        ids = list(self._skills)
        ranking = read_ranking(answer.text, ids)
        problem = ranking.problem(ids, least)
        if problem and answer.cut:
            problem = f"it became too long and was cut off, and {problem}"
        return ranking, problem

    def _fitting_answer(self, *said_since: Mapping[str, str]) -> Answer:
        """What the model says to the longest prompt that fits; bodies stay cut for the next one."""
        ids, skills = list(self._skills), list(self._skills.values())
        while True:
            prompt = question(self._goal, skills, ids, self.body_chars)
            try:
                return self._llm.ask([{"role": "user", "content": prompt}, *said_since])
            except ContextOverflow as error:
                shorter = next(self._limits, None)
                if shorter is None:
                    raise ContextOverflow(
                        f"names and descriptions of {len(ids)} skills alone do not fit into {self._llm.identity}",
                        "lower selector.k, or choose a model with a longer context",
                    ) from error
                self.body_chars = shorter


@dataclass(frozen=True, slots=True)
class _Outcome:
    """A model's ranking told as a selection."""

    candidates: Mapping[str, Candidate]
    """By id, in recall order."""
    ranking: Ranking
    problems: Sequence[str]
    body_chars: int | None

    def selection(self, top_k: int) -> Selection:
        named = self.ranking.named
        order = [self.candidates[label] for label in dict.fromkeys([*named, *self.candidates])]
        chosen = [
            choose(candidate.skill, 1.0 / rank, self._reason(rank))
            for rank, candidate in enumerate(order[:top_k], start=1)
        ]
        return Selection(
            skills=tuple(chosen),
            marks=self._marks(),
            details={
                "method": "llm_selector",
                "prompt_version": PROMPT_VERSION,
                "candidates": [
                    {"label": label, "id": candidate.skill.id, "name": candidate.skill.name, "cosine": candidate.cosine}
                    for label, candidate in self.candidates.items()
                ],
                "body_chars": self.body_chars,
                "answers": 1 + bool(self.problems),
                "problems": list(self.problems),
                "named": list(named),
                "repeated": list(self.ranking.repeated),
                "ranking": [candidate.skill.id for candidate in order],
                "chosen": [skill.id for skill in chosen],
            },
        )

    def _reason(self, rank: int) -> str:
        place = f"Rank {rank} of {len(self.candidates)}"
        if rank <= len(self.ranking.named):
            return f"{place} by the language model."
        return f"{place}: the language model did not name it, and it is next in recall order."

    def _marks(self) -> tuple[str, ...]:
        complete = len(self.ranking.named) == len(self.candidates)
        unusual = {
            "bodies_trimmed": self.body_chars is not None,
            "ranking_repaired": bool(self.problems) or not complete or bool(self.ranking.repeated),
            "ranking_fallback": not self.ranking.named,
        }
        return tuple(mark for mark, present in unusual.items() if present)
