"""What a classifier says about a pair of skills."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Label:
    """An edge before it is one; skills by their index in the library."""

    source: int
    target: int
    type: str
    reason: str
    certainty: float = 1.0
    """Of two edges that cannot both be, the more certain one stays."""

    @property
    def pair(self) -> tuple[int, int]:
        """Source and target."""
        return self.source, self.target
