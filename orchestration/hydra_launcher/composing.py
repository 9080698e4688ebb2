"""Composing the cells of a sweep: each once, and each file read once.

Hydra's sweeper composes all jobs to find mistakes before the first one starts, its launchers compose them again, and
every time all files are parsed anew. For a table of 144 cells that is most of a minute before anything is seen.
"""

from __future__ import annotations

import copy
import sys
import time
from typing import Any

from hydra._internal.config_repository import CachingConfigRepository
from hydra.core.config_loader import ConfigLoader
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig

_TELL_EVERY_S = 5.0


class _ReadOnce(CachingConfigRepository):
    """Hands out copies, because composing writes into what it loads; its own copies share what was read."""

    def __deepcopy__(self, memo: dict[int, Any]) -> _ReadOnce:
        twin = _ReadOnce(self.delegate)
        twin.cache = self.cache
        return twin

    def load_config(self, config_path: str) -> ConfigResult | None:
        """The parsed file, or None where there is none."""
        return copy.deepcopy(super().load_config(config_path))


def compose_once(loader: ConfigLoader) -> None:
    """Let a loader remember what it has read and composed, for as long as the sweep lasts."""
    loader.repository = _ReadOnce(loader.repository)  # type: ignore[attr-defined]
    compose = loader.load_sweep_config
    composed: dict[tuple[str, ...], DictConfig] = {}
    told = time.monotonic()

    def load_sweep_config(master_config: DictConfig, sweep_overrides: list[str]) -> Any:
        nonlocal told
        key = tuple(sweep_overrides)
        if key not in composed:
            composed[key] = compose(master_config, list(sweep_overrides))
            if time.monotonic() - told > _TELL_EVERY_S:
                told = time.monotonic()
                print(f"{len(composed)} cells composed", file=sys.stderr)
        return composed[key]

    loader.load_sweep_config = load_sweep_config  # type: ignore[method-assign]
