from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.core_plugins.file_config_source import FileConfigSource

from skillarena.orchestration import hydra_run
from skillarena.orchestration.settings import Settings

SWEEP = ["-m", "selector=none,vector", "seed=0,1"]


def composed(arguments: Sequence[str]) -> list[Settings]:
    found: list[Settings] = []

    def action(cells: Sequence[Settings]) -> int:
        found.extend(cells)
        return 0

    assert hydra_run.main(arguments, action) == 0
    return found


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    counts: Counter[str] = Counter()
    compose, read = ConfigLoaderImpl._load_configuration_impl, FileConfigSource.load_config

    def count_compose(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        counts["composed"] += 1
        return compose(self, *args, **kwargs)

    def count_read(self, config_path):  # type: ignore[no-untyped-def]
        counts[config_path] += 1
        return read(self, config_path)

    monkeypatch.setattr(ConfigLoaderImpl, "_load_configuration_impl", count_compose)
    monkeypatch.setattr(FileConfigSource, "load_config", count_read)
    return counts


def test_every_cell_of_a_sweep_is_composed_once_from_files_read_once(counted: Counter[str]) -> None:
    assert len(composed(["-m", "seed=0,1,2,3,4,5"])) == 6
    before_the_jobs = 2  # Hydra composes the command itself and what the sweeper needs
    assert counted["composed"] == 6 + before_the_jobs
    assert counted["selector/skillreranker.yaml"] <= 1 + before_the_jobs


def test_cells_are_the_same_as_with_hydras_own_launcher() -> None:
    ours, hydras = composed(SWEEP), composed([*SWEEP, "hydra/launcher=basic"])
    assert ours == hydras
    assert [(cell.selector["name"], cell.seed) for cell in ours] == [
        ("none", 0),
        ("none", 1),
        ("vector", 0),
        ("vector", 1),
    ]


def test_a_mistake_in_one_cell_is_told_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[int] = []
    assert hydra_run.main(["-m", "selector=none,vektor"], lambda cells: ran.append(len(cells)) or 0) == 2
    assert "vector" in capsys.readouterr().err
    assert not ran
