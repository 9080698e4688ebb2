"""Lends the rows of ``tests/orchestration``, and the games and parts of ``tests/envs`` and ``tests/selectors``."""

import sys
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / area) for area in ("orchestration", "envs", "selectors")]
