"""Light statistics of skills over episodes: the changing half of the Atomic Skill Memory (SPEM paper)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import log1p

import numpy as np
from numpy.typing import NDArray

FEATURES = 3
"""Numbers that a statistic adds to a node of the decision graph."""
_USUAL_USES = 100.0
_USUAL_COST = 100_000.0
"""Tokens; both only bring features near 1, they bound nothing."""


@dataclass(frozen=True, slots=True)
class SkillStatistics:
    """What became of the episodes in which a skill was read."""

    uses: int = 0
    """Episodes in which the agent read the skill's text."""
    successes: int = 0
    """Of these, episodes that were won."""
    cost: float = 0.0
    """Mean of the agent's prompt plus completion tokens over these episodes."""

    @property
    def success_rate(self) -> float:
        """0 to 1, drawn towards one half while uses are few: (successes + 1) / (uses + 2)."""
        return (self.successes + 1) / (self.uses + 2)

    def after(self, *, won: bool, tokens: int) -> SkillStatistics:
        """With one more use."""
        uses = self.uses + 1
        return SkillStatistics(uses, self.successes + won, self.cost + (tokens - self.cost) / uses)

    def features(self) -> tuple[float, float, float]:
        """Use count, success rate and mean cost, each about 0 to 1."""
        return (
            log1p(self.uses) / log1p(_USUAL_USES),
            self.success_rate,
            log1p(self.cost) / log1p(_USUAL_COST),
        )


Statistics = Mapping[str, SkillStatistics]
"""By skill id; a skill without an entry has not been used."""


def updated(statistics: Statistics, skills: Iterable[str], *, won: bool, tokens: int) -> dict[str, SkillStatistics]:
    """Statistics after an episode in which the agent read these skills."""
    changed = dict(statistics)
    for skill in dict.fromkeys(skills):
        changed[skill] = changed.get(skill, SkillStatistics()).after(won=won, tokens=tokens)
    return changed


def features(statistics: Statistics, skills: Iterable[str]) -> NDArray[np.float32]:
    """float32[n, FEATURES], one row a skill."""
    rows = [statistics.get(skill, SkillStatistics()).features() for skill in skills]
    return np.array(rows, dtype=np.float32).reshape(-1, FEATURES)
