"""The environment contract on real ScienceWorld."""

from __future__ import annotations

import pytest
from env_contract import EnvContract

from skillarena.envs.interface import Task
from skillarena.envs.scienceworld import ScienceWorldBenchmark


@pytest.mark.slow
class TestScienceWorld(EnvContract):
    replans = False

    @pytest.fixture(scope="class")
    @classmethod
    def benchmark(cls, tmp_path_factory: pytest.TempPathFactory) -> ScienceWorldBenchmark:
        return ScienceWorldBenchmark(
            task_ids=[
                "chemistry-mix-paint-secondary-color/19",
                "lifespan-longest-lived/92",
                "lifespan-shortest-lived/69",
            ],
            cache_dir=str(tmp_path_factory.mktemp("cache")),
        )

    @classmethod
    def sample(cls, tasks: list[Task]) -> list[Task]:
        return tasks
