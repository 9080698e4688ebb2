"""Lets shared contracts report their failed assertions in full; lends the small environment of ``tests/envs``, the
cells of ``tests/orchestration/report``, and the key that clients of stub servers send."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "envs"))
sys.path.append(str(Path(__file__).parent / "report"))
pytest.register_assert_rewrite("backbone_contract")


@pytest.fixture
def stub_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable in which ``stub_client.client`` looks for its key."""
    from stub_client import KEY

    monkeypatch.setenv("STUB_KEY", KEY)
