"""Each example is one small package with a guide, a configuration, and the size that the overview says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
OVERVIEW = (EXAMPLES / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["add_selector", "add_environment", "add_backbone"])
def test_an_example_is_complete_and_under_80_lines(name: str) -> None:
    folder = EXAMPLES / name
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in folder.rglob("*.py"))
    said = re.search(rf"\| `{name}/` \|.* (\d+) lines", OVERVIEW)
    assert said is not None
    assert int(said[1]) == lines < 80
    assert (folder / "README.md").is_file()
    assert list((folder / "conf").glob("*/*.yaml"))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("add_*/conf/*/*.yaml")), ids=lambda path: path.stem)
def test_a_configuration_of_an_example_explains_each_key(path: Path) -> None:
    first, *others = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ")
    assert all("  # " in line for line in others)
