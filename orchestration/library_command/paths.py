"""Which documents a command is about: paths, or the library of a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from skillarena.conf.errors import ConfigError


def library_paths(arguments: Sequence[str], config_dir: Path | None) -> list[str]:
    """The paths that arguments name, be it as such or as overrides.

    Args:
        arguments: paths, or overrides as for ``run``; an argument is an override when it has a ``=`` and is no path
            that exists.
        config_dir: folder of further configuration files.

    Raises:
        ConfigError: there are both, or a mistake in an override.
    """
    overrides = [argument for argument in arguments if "=" in argument and not Path(argument).exists()]
    if not overrides and arguments:
        return list(arguments)
    if len(overrides) < len(arguments):
        raise ConfigError(
            "some arguments are paths and some are overrides", "give paths only, or overrides with library.paths=[…]"
        )
    from skillarena.orchestration.hydra_run import compose

    return [str(path) for path in compose(overrides, config_dir).library.get("paths", [])]
