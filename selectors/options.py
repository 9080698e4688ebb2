"""Checks of option values that several parts share."""

from __future__ import annotations

from skillarena.conf.errors import ConfigError, nearest

DTYPES = ("float32", "bfloat16", "float16")
"""Number formats of weights and activations."""


def check_counts(**options: int) -> None:
    """Raise ``ConfigError`` for an option that is no whole number of at least 1."""
    for option, value in options.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(
                f"{option} must be a whole number of at least 1, got {value!r}", f"set {option}=1 or more"
            )


def check_optional_counts(**options: int | None) -> None:
    """Likewise, for options that may also be null."""
    check_counts(**{option: value for option, value in options.items() if value is not None})


def check_flags(**options: bool) -> None:
    """Raise ``ConfigError`` for an option that is neither true nor false (YAML's ``no`` is a word in Hydra)."""
    for option, value in options.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{option} must be true or false, got {value!r}", f"set {option}=true or {option}=false")


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ``ConfigError`` for a word that is none of the choices."""
    if value not in choices:
        raise ConfigError(
            f"{option}={value!r} is no choice{nearest(str(value), choices)}", f"use one of: {', '.join(choices)}"
        )
