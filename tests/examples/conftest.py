"""Lends the shared contracts and the command-line helpers, and makes the examples' modules importable."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
for folder in ("tests/envs", "tests/orchestration", "tests/selectors"):
    sys.path.append(str(ROOT / folder))
for example in ("add_backbone", "add_environment", "add_selector"):
    sys.path.append(str(ROOT / "examples" / example))
pytest.register_assert_rewrite("backbone_contract", "env_contract", "selector_contract")
