"""`skillarena select`: what it refuses before anything is loaded."""

from __future__ import annotations

import pytest

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.explain import explain


@pytest.mark.parametrize("goal", ["", "  \n", "mug \udc80"])
def test_a_task_that_is_no_text_is_refused(goal: str) -> None:
    with pytest.raises(ConfigError, match="task"):
        explain(goal, "alfworld", [], config_dir=None, everything=False, as_json=True)
