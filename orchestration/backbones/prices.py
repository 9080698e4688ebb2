"""What tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from skillarena.conf.errors import ConfigError, nearest
from skillarena.orchestration.backbones.interface import Usage

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Money for a million tokens, in the currency that the configuration's author chose."""

    prompt: float
    """Of prompt tokens that the server had to read."""
    cached: float
    """Of prompt tokens out of the server's prefix cache."""
    completion: float
    """Of generated tokens, reasoning included."""

    def cost(self, usage: Usage) -> float:
        """Money for prompt and completion tokens (``wasted_tokens`` stand apart and are not in it)."""
        read = usage.prompt_tokens - usage.cached_tokens
        priced = read * self.prompt + usage.cached_tokens * self.cached + usage.completion_tokens * self.completion
        return priced / _MILLION


FREE = Price(0.0, 0.0, 0.0)
"""Of models on machines of one's own."""


def read_price(given: Mapping[str, Any] | None) -> Price | None:
    """A configuration's ``price`` key: three numbers, or null (all or one of them) for an unknown price.

    Raises:
        ConfigError: a key is missing or unknown, or a value is no number from 0 up.
    """
    if given is None:
        return None
    names = [field.name for field in fields(Price)]
    for key in given:
        if key not in names:
            raise ConfigError(
                f"backbone.price.{key}: unknown key{nearest(str(key), names)}", f"give {', '.join(names)}"
            )
    values = {name: given.get(name) for name in names}
    if None in values.values():
        return None
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ConfigError(f"backbone.price.{name} is {value!r}, not an amount of money", "give a number from 0 up")
    return Price(**{name: float(value) for name, value in values.items()})  # type: ignore[arg-type]
