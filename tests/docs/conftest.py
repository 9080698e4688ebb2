"""Lends the browser of the report's tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "orchestration" / "report"))
