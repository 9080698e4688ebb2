"""A sweep shares what its cells have in common: model processes, selections, the endpoint."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command import cells, rows_of, run_command
from stand_in_server import alive, pids

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TWELVE = (
    "run",
    "-m",
    "selector=vector,skillreranker,without_edges",
    "benchmark=alfworld,scienceworld",
    "benchmark.limit=2",
)
PROCESSES_OF_A_SERVER = 3


def served(folder: Path, name: str) -> list[str]:
    """A backbone on a server that the run starts: a program that answers after 50 ms in place of vLLM."""
    model = folder / name
    model.mkdir()
    (model / "config.json").write_text('{"num_attention_heads": 8}')
    return [
        "backbone=smollm2",
        "backbone._target_=stand_in_server.StandInBackbone",
        f"backbone.name={name}",
        f"backbone.model={model}",
        f"+backbone.folder={model}",
        "+backbone.latency_s=0.05",
        "agent.max_turns=6",
    ]


def test_twelve_cells_start_each_server_once_and_compute_each_selection_once(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    here = {"PYTHONPATH": str(Path(__file__).parent)}
    first = run_command(*TWELVE, *served(tmp_path, "one"), "seed=0,1", cache=cache, cwd=tmp_path, **here)
    assert first.returncode == 0, first.stderr
    folders = cells(tmp_path / "outputs")
    assert len(folders) == 12
    rows = [row for folder in folders for row in rows_of(folder)]
    assert len(rows) == 24
    assert _counts(first.stderr) == {"computed": 12, "embedder minilm": 1, "server one": 1}
    assert len(pids(tmp_path / "one")) == PROCESSES_OF_A_SERVER
    assert sum(not row.selection_reused for row in rows) == 12
    assert {row.outcome for row in rows} == {"step_limit"}

    other = run_command(*TWELVE, *served(tmp_path, "two"), "seed=0,1", cache=cache, cwd=tmp_path, **here)
    assert other.returncode == 0, other.stderr
    assert len(cells(tmp_path / "outputs")) == 24
    assert _counts(other.stderr) == {"computed": 0, "server two": 1}
    assert not alive(tmp_path / "one") and not alive(tmp_path / "two")


def test_a_server_that_cannot_start_stops_its_own_cell_only(tmp_path: Path) -> None:
    done = run_command(
        "run",
        "-m",
        *served(tmp_path, "one"),
        "+backbone.behaviour=well,ends at once",
        "selector=none",
        "benchmark.limit=2",
        cache=tmp_path / "cache",
        cwd=tmp_path,
        PYTHONPATH=str(Path(__file__).parent),
    )
    assert done.returncode == 1, done.stderr
    assert "the KV cache does not fit" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(len(rows_of(folder)) for folder in cells(tmp_path / "outputs")) == [0, 2]
    assert not alive(tmp_path / "one")


def _counts(said: str) -> dict[str, int]:
    line = re.search(r"selections: (\d+) computed.*", said)
    assert line, said
    started = re.findall(r", (\w+ \w+)(?:-[0-9a-f]{8})? started (\d+)x", line.group())
    return {"computed": int(line.group(1)), **{name: int(times) for name, times in started}}
