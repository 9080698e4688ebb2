"""Cold start: the network learns from skill metadata alone, before any episode (SPEM paper).

Each skill of a seeded sample asks with its own description and should find itself among its nearest neighbours. No
outcome of any task is used. The sample keeps the work bounded, whatever the size of the library (ours); its skills
compete only with each other, so that each is as often right as any, and the rest of the library is not trained away.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.nearest import greatest
from skillarena.selectors.spem.decisions import Decisions
from skillarena.selectors.spem.gnn import initial_weights
from skillarena.selectors.spem.training import Example, Fit, fit

SAMPLE = 256
"""Most skills that ask."""
EPOCHS = 30
RATE = 2e-3
_SEED = 20261026


def warm_start(library: SkillLibrary, decisions: Decisions) -> Fit:
    """Train new weights on pseudo-queries. Raises ``RerankerError``."""
    examples = pseudo_examples(sampled(library), decisions)
    return fit(initial_weights(decisions.dimension), examples, epochs=EPOCHS, rate=RATE)


def pseudo_examples(skills: Sequence[Skill], decisions: Decisions) -> list[Example]:
    """One decision a skill, among its nearest neighbours of these skills. Raises ``RerankerError``."""
    queries = [pseudo_query(skill) for skill in skills]
    cosines = (
        decisions.vectors(queries, "query") @ decisions.vectors([skill.metadata for skill in skills], "document").T
    )
    size = min(decisions.size, len(skills))
    examples = []
    for number, (query, nearest) in enumerate(zip(queries, greatest(cosines, size), strict=True)):
        candidates = with_target([skills[at] for at in nearest], skills[number])
        examples.append(Example(decisions.decide(query, candidates, {}, set()).graph, candidates.index(skills[number])))
    return examples


def sampled(library: SkillLibrary) -> list[Skill]:
    """At most ``SAMPLE`` skills in the library's order, the same each time."""
    count = len(library.skills)
    chosen = Random(_SEED).sample(range(count), min(SAMPLE, count))  # noqa: S311 (no secret)
    return [library.skills[index] for index in sorted(chosen)]


def pseudo_query(skill: Skill) -> str:
    """What somebody who needs the skill might ask: its description without its name, or else its name."""
    return skill.description or skill.name


def with_target(candidates: list[Skill], target: Skill) -> list[Skill]:
    """Candidates among which the target is, if need be in the last one's place."""
    return candidates if target in candidates else [*candidates[:-1], target]
