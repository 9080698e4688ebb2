"""The example environment keeps the contract of all environments."""

from __future__ import annotations

import pytest
from chests import Chests
from env_contract import EnvContract


class TestChests(EnvContract):
    @pytest.fixture(scope="class")
    @classmethod
    def benchmark(cls) -> Chests:
        return Chests()
