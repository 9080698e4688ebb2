"""The cost of a selection, taken the same way for every method: differences of its parts' counters, and wall time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Protocol

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.interface import SelectedSkill, Selection, SelectionCost, Selector

if TYPE_CHECKING:
    from skillarena.selectors.parser_cache import CachedParser
    from skillarena.selectors.rerankers import CachedReranker


class CountedParts(Protocol):
    """Parts that know what they have done so far."""

    def cost(self) -> SelectionCost:
        """What :func:`counters` gives for those parts that exist by now; asking must not create one."""


def counters(reranker: CachedReranker | None, parser: CachedParser | None) -> SelectionCost:
    """What parts have done since they were made; ``seconds`` is 0, and a part not made yet has done nothing."""
    online, skills = (parser.online, parser.offline) if parser else (None, None)
    return SelectionCost(
        pairs_scored=reranker.scored if reranker else 0,
        pairs_cached=reranker.cached if reranker else 0,
        prompt_tokens=online.prompt_tokens if online else 0,
        completion_tokens=online.completion_tokens if online else 0,
        llm_calls=online.llm_calls if online else 0,
        offline_tokens=skills.prompt_tokens + skills.completion_tokens if skills else 0,
    )


@dataclass(slots=True)
class _Offline:
    """Time within one measurement that is not the selection's own."""

    seconds: float = 0.0
    active: bool = False


_MEASURED: ContextVar[_Offline | None] = ContextVar("measured", default=None)


@contextmanager
def offline() -> Iterator[None]:
    """Work inside belongs to the library or the models, not to one task: loading, indexing, parsing skills.

    :func:`measured` leaves its time out of ``SelectionCost.seconds``, whichever task happens to come first.
    """
    clock = _MEASURED.get()
    if clock is None or clock.active:
        yield
        return
    clock.active = True
    start = time.perf_counter()
    try:
        yield
    finally:
        clock.seconds += time.perf_counter() - start
        clock.active = False


def measured(selector: Selector, parts: CountedParts, task: Task) -> Selection:
    """The selection for a task with its ``cost`` filled in.

    Counts in the selector's own cost (of a method that itself calls a model) are kept and added to.
    Selections that share ``parts`` must not run at the same time, as they would count each other's work.

    Raises:
        ConfigError: the selector breaks its contract.
        SkillArenaError: whatever the selector raises.
    """
    clock = _Offline()
    token = _MEASURED.set(clock)
    before, start = parts.cost(), time.perf_counter()
    try:
        selection = _selection_of(selector, task)
        seconds = time.perf_counter() - start - clock.seconds
    finally:
        _MEASURED.reset(token)
    after, own = parts.cost(), selection.cost
    counts = {
        field.name: getattr(own, field.name) + getattr(after, field.name) - getattr(before, field.name)
        for field in fields(SelectionCost)
        if field.name != "seconds"
    }
    return replace(selection, cost=SelectionCost(seconds=seconds, **counts))


def _selection_of(selector: Selector, task: Task) -> Selection:
    """What the selector chose, if it is a selection of whole skills without repeats, made before the episode."""
    session, method = selector.open(task), type(selector).__name__
    selection = session.selection
    if session.tools:
        raise ConfigError(
            f"{method} offers tools inside the episode, which the agent cannot call yet",
            "choose a selector that decides before the episode",
        )
    if not isinstance(selection, Selection) or not all(isinstance(skill, SelectedSkill) for skill in selection.skills):
        raise ConfigError(
            f"{method} gave {type(selection).__name__} where a Selection of SelectedSkill is due",
            "let SelectorSession.selection be a skillarena.selectors.interface.Selection",
        )
    ids = [skill.id for skill in selection.skills]
    if len(set(ids)) < len(ids):
        raise ConfigError(f"{method} chose a skill twice: {', '.join(ids)}", "let it choose each skill once")
    return selection
