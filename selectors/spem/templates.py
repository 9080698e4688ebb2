"""Skill-DAG Memory: procedures of won episodes by the task they solved (SPEM paper, retrieval and write-back)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skillarena.selectors.spem.procedure import ProcedureStep, length, verbs


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """A Skill-DAG with what it is for and how it fared."""

    source: str
    """Identity of the task whose episode first gave it; names the template for good."""
    goal: str
    """Instruction of the episode that its procedure is from."""
    vector: NDArray[np.float32]
    """float32[d], the goal's embedding as a query, of unit length."""
    procedure: tuple[ProcedureStep, ...]
    uses: int = 1
    """Episodes that were given it, and won ones without it that confirm it; the one it is from counts."""
    successes: int = 1
    """Of these, episodes that were won."""

    def after_use(self, *, won: bool) -> Template:
        """With one more use."""
        return replace(self, uses=self.uses + 1, successes=self.successes + won)

    def refined(self, other: Template) -> Template:
        """With another's procedure, and the goal which that was for, where it is shorter."""
        if length(other.procedure) >= length(self.procedure):
            return self
        return replace(self, goal=other.goal, vector=other.vector, procedure=other.procedure)


def nearest(templates: Sequence[Template], goal: NDArray[np.float32], tau: float) -> tuple[Template, float] | None:
    """The template of the most similar task and the cosine, if that is at least tau.

    Ties go to the higher success rate, then to the order of sources.

    Args:
        templates: the memory.
        goal: float32[d], the task's embedding, of unit length.
        tau: the bound, -1 to 1, inclusive up to rounding at 1e-6.
    """
    scored = [(_cosine(template, goal), template) for template in templates]
    fitting = [(cosine, template) for cosine, template in scored if cosine >= tau]
    if not fitting:
        return None
    cosine, best = min(fitting, key=lambda pair: (-pair[0], -pair[1].successes / pair[1].uses, pair[1].source))
    return best, cosine


def with_use(templates: Sequence[Template], source: str, *, won: bool) -> tuple[Template, ...]:
    """Templates after an episode that was given one of them."""
    return tuple(template.after_use(won=won) if template.source == source else template for template in templates)


def with_success(templates: Sequence[Template], new: Template, *, tau: float, used: str | None) -> tuple[Template, ...]:
    """Templates after a won episode.

    The procedure refines the nearest template, if there is one for a similar task with the same kinds of steps, and
    else becomes a template. *Ours:* that condition. At a similarity of tau, heating a mug and cooling one are the same
    task; an episode that did other things than its template says has not followed it, and teaches something new.

    Args:
        templates: the memory, in which ``used`` has counted this use already.
        new: what the episode taught; without steps it teaches nothing.
        tau: least similarity of tasks.
        used: source of the template that the episode was given.
    """
    if not new.procedure:
        return tuple(templates)
    alike = [template for template in templates if verbs(template.procedure) == verbs(new.procedure)]
    found = nearest(alike, new.vector, tau)
    if found is None and new.source not in {template.source for template in templates}:
        return tuple(sorted([*templates, new], key=lambda template: template.source))
    match = found[0].source if found else new.source
    return tuple(
        (template if match == used else template.after_use(won=True)).refined(new)
        if template.source == match
        else template
        for template in templates
    )


def _cosine(template: Template, goal: NDArray[np.float32]) -> float:
    return round(float(template.vector.astype(np.float64) @ goal.astype(np.float64)), 6)
