"""What the agent reads of SPEM's memories: a procedure, or in which order skills build on each other."""

from __future__ import annotations

from collections.abc import Sequence

from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.spem.links import Links
from skillarena.selectors.spem.templates import Template


def describe_template(template: Template, library: SkillLibrary) -> str:
    """Ordered steps with their dependencies and the skills that cover them."""
    lines = [
        f"These steps solved a similar task, {template.goal!r}, and helped in {template.successes} of"
        f" {template.uses} episodes.",
        "Names and places may differ here, but what a step needs has to come before it:",
    ]
    for number, step in enumerate(template.procedure, start=1):
        notes = [f"{step.times} times"] if step.times > 1 else []
        if step.after:
            notes.append(f"needs {', '.join(str(source + 1) for source in step.after)}")
        if step.skill in library.by_id:
            notes.append(f"skill: {library.by_id[step.skill].name}")
        lines.append(f"{number}. {step.action}" + (f" ({'; '.join(notes)})" if notes else ""))
    return "\n".join(lines)


def describe_order(skills: Sequence[Skill], links: Links, positions: Sequence[int]) -> str:
    """Which of the given skills come before which; empty when nothing is known.

    Args:
        skills: those that are given.
        links: what ties the candidates to each other.
        positions: of the given skills among the candidates.
    """
    cues = []
    for skill, at in zip(skills, positions, strict=True):
        for other, its in zip(skills, positions, strict=True):
            if links.known[at, its] > links.known[its, at]:
                cues.append(f"{skill.name} comes before {other.name}, which builds on it.")
            elif links.schema[at, its] > links.schema[its, at]:
                cues.append(f"{skill.name} leads to what {other.name} needs.")
    return "\n".join(dict.fromkeys(cues))
