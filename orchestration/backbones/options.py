"""Checks of constructor options that backbones share."""

from __future__ import annotations

from skillarena.conf.errors import ConfigError


def check_ranges(**ranges: tuple[object, float, float]) -> None:
    """Check that numeric options lie in their (closed) ranges; None passes.

    Args:
        ranges: option name to (value, lowest, highest).

    Raises:
        ConfigError: naming every option that is no number or out of range.
    """
    wrong = [
        f"backbone.{name} is {value!r}, not a number from {low:g} to {high:g}"
        for name, (value, low, high) in ranges.items()
        if value is not None and not (isinstance(value, int | float) and low <= value <= high)
    ]
    if wrong:
        raise ConfigError("; ".join(wrong), "correct these keys")
