"""Lends the servers, commands and cells of ``tests/orchestration``."""

import sys
from pathlib import Path

_LENT = Path(__file__).parents[1] / "orchestration"
sys.path += [str(_LENT), str(_LENT / "report")]
