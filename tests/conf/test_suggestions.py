"""Whatever is misspelt on the command line, the nearest right word is suggested, in one message."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_command

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (["run", "selector=vectr"], "'vector'"),
        (["run", "-m", "selector=none,vectr"], "'vector'"),
        (["run", "selectr=vector"], "'selector'"),
        (["run", "selectr.k=3"], "'selector'"),
        (["run", "outputdir=x"], "'output_dir'"),
        (["run", "run.max_cots=3"], "'max_cost'"),
        (["run", "selector=vector", "selector.topk=2"], "'top_k'"),
        (["run", "-m", "selector=vector,random", "selector.topk=2"], "'top_k'"),
        (["run", "benchmark=scienceworld", "benchmark.simplification=x"], "'simplifications'"),
        (["run", "experiment=tabel1"], "'table1'"),
        (["run", "experiment=[table1,laptp]"], "'laptop'"),
        (["plan", "experiment=[table1,laptp]"], "'laptop'"),
        (["run", "--confg-dir", "x"], "'--config-dir'"),
        (["run", "--config-dir", str(ROOT / "examples/add_selector/conf"), "selector=rare_wrds"], "'rare_words'"),
        (
            ["run", "--config-dir", str(ROOT / "examples/add_selector/conf"), "selector=rare_words", "selector.topk=2"],
            "'top_k'",
        ),
        (["select", "put a mug in the sink", "selector=vectr"], "'vector'"),
        (["retrieve-eval", "selector=vectr"], "'vector'"),
        (["rnu"], "'run'"),
        (["report", "--baselin", "vector"], "--baseline"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_nearest_word_is_suggested(arguments: list[str], wanted: str, tmp_path: Path) -> None:
    done = run_command(*arguments, cache=tmp_path, cwd=tmp_path)
    assert done.returncode == 2
    assert wanted in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
