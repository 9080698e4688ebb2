"""Lends the rows of ``tests/orchestration``."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "orchestration"))
