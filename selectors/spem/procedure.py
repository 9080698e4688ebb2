"""The steps of a Skill-DAG template."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProcedureStep:
    """A node of a Skill-DAG."""

    action: str
    """The command as it was given in the source episode."""
    times: int = 1
    """How often it was given in a row."""
    after: tuple[int, ...] = ()
    """Positions of the steps it depends on, all smaller than its own."""
    skill: str = ""
    """Id of the skill that covers it; empty when the agent had read none."""

    @property
    def verb(self) -> str:
        """What is done, whatever to."""
        return self.action.lower().split()[0] if self.action.strip() else ""


def length(procedure: Sequence[ProcedureStep]) -> int:
    """Commands to give."""
    return sum(step.times for step in procedure)


def commands(procedure: Sequence[ProcedureStep]) -> list[str]:
    """All commands in order."""
    return [step.action for step in procedure for _ in range(step.times)]


def verbs(procedure: Sequence[ProcedureStep]) -> frozenset[str]:
    """The kinds of steps it has."""
    return frozenset(step.verb for step in procedure)


def skills(procedure: Sequence[ProcedureStep]) -> list[str]:
    """Ids of the skills it uses, in order of first use."""
    return list(dict.fromkeys(step.skill for step in procedure if step.skill))


def skill_order(procedure: Sequence[ProcedureStep]) -> set[tuple[str, str]]:
    """Pairs of skills of which the second builds on what the first did."""
    return {
        (procedure[source].skill, step.skill)
        for step in procedure
        for source in step.after
        if procedure[source].skill and step.skill and procedure[source].skill != step.skill
    }
