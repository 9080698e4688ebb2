"""Lets shared contracts report their failed assertions in full, and lends the small environment of ``tests/envs`` and
the cells of ``tests/orchestration/report``."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "envs"))
sys.path.append(str(Path(__file__).parent / "report"))
pytest.register_assert_rewrite("backbone_contract")
