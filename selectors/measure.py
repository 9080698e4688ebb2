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
from skillarena.selectors.live import LiveSelector

if TYPE_CHECKING:
    from skillarena.selectors.llm import CachedLlm
    from skillarena.selectors.parser_cache import CachedParser
    from skillarena.selectors.rerankers import CachedReranker


class CountedParts(Protocol):
    """Parts that know what they have done so far."""

    def cost(self) -> SelectionCost:
        """What :func:`counters` gives for those parts that exist by now; asking must not create one."""


def counters(
    reranker: CachedReranker | None, parser: CachedParser | None, llm: CachedLlm | None = None
) -> SelectionCost:
    """What parts have done since they were made; ``seconds`` is 0, and a part not made yet has done nothing."""
    asking = [part for part in (parser, llm) if part is not None]
    return SelectionCost(
        pairs_scored=reranker.scored if reranker else 0,
        pairs_cached=reranker.cached if reranker else 0,
        prompt_tokens=sum(part.online.prompt_tokens for part in asking),
        completion_tokens=sum(part.online.completion_tokens for part in asking),
        llm_calls=sum(part.online.llm_calls for part in asking),
        offline_tokens=sum(part.offline.prompt_tokens + part.offline.completion_tokens for part in asking),
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
    if is_offline():
        yield
        return
    clock = _MEASURED.get()
    token = _MEASURED.set(clock := clock or _Offline())
    clock.active = True
    start = time.perf_counter()
    try:
        yield
    finally:
        clock.seconds += time.perf_counter() - start
        clock.active = False
        _MEASURED.reset(token)


def is_offline() -> bool:
    """Whether the caller works for the library or the models."""
    clock = _MEASURED.get()
    return clock is not None and clock.active


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
    if session.tools and not isinstance(selector, LiveSelector):
        raise ConfigError(
            f"{method} offers tools inside the episode, but cannot open a session for one",
            "give it a method `attend` (skillarena.selectors.live.LiveSelector)",
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
