"""From lessons to the next memory: statistics, templates, network (SPEM paper, write-back)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, Lesson
from skillarena.selectors.spem.decisions import Decisions, context_texts, known_order, nearest_skill
from skillarena.selectors.spem.leakage import check_learnable
from skillarena.selectors.spem.lessons import TaughtEpisode, prefix_state, read_lesson
from skillarena.selectors.spem.memory import Memory
from skillarena.selectors.spem.procedure import ProcedureStep
from skillarena.selectors.spem.slicing import extract_procedure
from skillarena.selectors.spem.statistics import updated
from skillarena.selectors.spem.templates import Template, with_success, with_use
from skillarena.selectors.spem.training import Example, fit
from skillarena.selectors.spem.warm_start import with_target

MOST_EXAMPLES = 512
"""Prefixes that one update trains on; of more, evenly spread ones (ours)."""
EPOCHS = 10
RATE = 1e-3


class Learner:
    """Merges lessons into memories.

    Args:
        library: what skill ids stand for.
        decisions: how candidates are found and graphs are made.
        tau: least similarity of tasks that share a template.
    """

    def __init__(self, library: SkillLibrary, decisions: Decisions, tau: float) -> None:
        self._library = library
        self._decisions = decisions
        self._tau = tau

    def learned(self, memory: Memory, lessons: Sequence[Lesson]) -> Memory:
        """The memory after lessons, which come in task order.

        Statistics and templates change from episode to episode; the network is then trained once, on the won ones.

        Raises:
            ConfigError: a lesson is of an evaluation split; nothing is learned then.
            DataError: a lesson is none of SPEM's.
            RerankerError: the embedder fails.
        """
        check_learnable(lessons)
        episodes = [read_lesson(lesson) for lesson in lessons]
        memory = replace(memory, provenance=memory.provenance.after(lessons))
        for episode in episodes:
            memory = self._remember(memory, episode)
        examples = _spread([example for episode in episodes for example in self._examples(memory, episode)])
        return replace(memory, weights=fit(memory.weights, examples, epochs=EPOCHS, rate=RATE).weights)

    def _remember(self, memory: Memory, episode: TaughtEpisode) -> Memory:
        record = episode.record
        statistics = updated(memory.statistics, self._read(record), won=record.won, tokens=record.total_tokens)
        templates = memory.templates
        if episode.template is not None:
            templates = with_use(templates, episode.template, won=record.won)
        if record.won:
            templates = with_success(templates, self._template(episode), tau=self._tau, used=episode.template)
        return replace(memory, statistics=statistics, templates=templates)

    def _template(self, episode: TaughtEpisode) -> Template:
        procedure = extract_procedure(episode.record)
        skills = self._executed([step.action for step in procedure], episode.record)
        covered: tuple[ProcedureStep, ...] = tuple(
            replace(step, skill=skill) for step, skill in zip(procedure, skills, strict=True)
        )
        vector = self._decisions.vectors([episode.goal], "query")[0]
        return Template(episode.task_id, episode.goal, vector, covered)

    def _examples(self, memory: Memory, episode: TaughtEpisode) -> list[Example]:
        """Each prefix of a won episode as a state, with the skill of the command that came next as the answer."""
        record = episode.record
        if not record.won or not self._read(record):
            return []
        executed = self._executed([step.action for step in record.steps], record)
        prefixes = [number for number, step in enumerate(record.steps) if step.valid]
        states = {number: prefix_state(record, number) for number in prefixes}
        self._decisions.vectors([text for state in states.values() for text in context_texts(*state)], "query")
        order, recalled = known_order(memory.templates), self._decisions.recall(episode.goal)
        examples = []
        for number in prefixes:
            target = self._library.by_id[executed[number]]
            candidates = with_target(recalled, target)
            decision = self._decisions.decide(episode.goal, candidates, memory.statistics, order, states[number])
            examples.append(Example(decision.graph, candidates.index(target)))
        return examples

    def _executed(self, actions: Sequence[str], record: EpisodeRecord) -> list[str]:
        """Which skill each command carries out: of those read, the one whose metadata is nearest to its text (ours)."""
        ids = self._read(record)
        if not ids or not actions:
            return [""] * len(actions)
        skills = self._decisions.vectors([self._library.by_id[skill].metadata for skill in ids], "document")
        return nearest_skill(self._decisions.vectors(list(actions), "query"), dict(zip(ids, skills, strict=True)))

    def _read(self, record: EpisodeRecord) -> list[str]:
        """Skills of this library that the agent read."""
        return [skill for skill in dict.fromkeys(record.skills) if skill in self._library.by_id]


def _spread(examples: Sequence[Example]) -> list[Example]:
    count = min(len(examples), MOST_EXAMPLES)
    return [examples[at * len(examples) // count] for at in range(count)]
