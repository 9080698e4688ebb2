"""What the tests of environments share."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from skillarena.envs.alfworld_generator_package import AlfworldPackage

pytest.register_assert_rewrite("env_contract")  # or its failed assertions would show no values

REAL_GAMES = Path(__file__).parents[3] / "shared" / "data" / "alfworld_games.tar.xz"


@pytest.fixture(scope="session")
def alfworld_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A cache folder that all ALFWorld tests share, so that each game is translated once."""
    return str(tmp_path_factory.mktemp("alfworld_cache"))


@pytest.fixture(scope="module")
def package() -> AlfworldPackage:
    """What the installed ALFWorld brings for making games."""
    from skillarena.envs.alfworld_generator_package import load_package

    return load_package()


@pytest.fixture(scope="session")
def generated_alfworld(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data folder with one generated game of each type, as split ``generated_seen``."""
    from skillarena.envs.alfworld_generator import generate

    root = tmp_path_factory.mktemp("generated_alfworld")
    generate(root, "generated_seen", games_per_type=1, seed=3)
    return str(root)


@pytest.fixture(scope="session")
def real_alfworld(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A data folder with the real evaluation splits of ALFWorld; skips where they are not at hand."""
    if not REAL_GAMES.exists():
        pytest.skip(f"no real ALFWorld games at {REAL_GAMES}")
    root = tmp_path_factory.mktemp("real_alfworld")
    with tarfile.open(REAL_GAMES) as archive:
        archive.extractall(root, filter="data")
    return str(root)
