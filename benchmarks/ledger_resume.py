"""How long a cell with very many finished episodes takes until it can go on.

    python benchmarks/ledger_resume.py [ROWS]

Writes a ledger (1,000,000 rows unless told otherwise) and opens it again, as the command does before it plays.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from skillarena.orchestration.ledger import EpisodeRow, Ledger

ROWS = 1_000_000
_IDENTITY = {"benchmark": "a ledger alone"}
_ROW = EpisodeRow(
    episode_id="EPISODE",
    task_id="TASK",
    task_name="pick_and_place_simple-Lettuce-None-SinkBasin-30/trial_G1_8fc91246da8c",
    task_type="pick_and_place_simple",
    outcome="solved",
    reward=100.0,
    success=True,
    score=1.0,
    env_steps=18,
    llm_turns=20,
    invalid_actions=2,
    skill_lookups=0,
    prompt_tokens=23_549,
    cached_tokens=22_144,
    completion_tokens=376,
    wasted_tokens=0,
    tokens_estimated=False,
    skills=("put-a-thing-somewhere",),
    selection_seconds=0.211,
    selection_reused=True,
    selector_prompt_tokens=0,
    selector_completion_tokens=0,
    offline_tokens=0,
    pairs_scored=30,
    pairs_cached=0,
    marks=(),
    wall_seconds=6.9,
    llm_seconds=6.1,
    env_seconds=0.5,
    attempts=1,
    finished_at=1_700_000_000.0,
    node="ca0a2341233bf8abee8f97efdccb0e8c596c896584f00abaf7d76a17",
)
"""As long as usual ones are."""


def write_ledger(folder: Path, rows: int) -> None:
    """A cell folder whose rows differ in their ids."""
    with Ledger(folder, _IDENTITY, {"cell": {}, "settings": {}}, []):
        pass
    line = orjson.dumps(asdict(_ROW)) + b"\n"
    with (folder / "episodes.jsonl").open("wb", buffering=2**20) as file:
        for number in range(rows):
            file.write(line.replace(b"EPISODE", b"%064x" % number).replace(b"TASK", b"task-%d" % number))


def resume(folder: Path) -> tuple[float, int]:
    """CPU seconds until a cell's ledger is open, and its rows."""
    started = time.process_time()
    with Ledger(folder, _IDENTITY, {"cell": {}, "settings": {}}, []) as ledger:
        return time.process_time() - started, len(ledger.rows)


def main() -> None:
    """Print a line."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    with TemporaryDirectory(prefix="skillarena-ledger-") as folder:
        write_ledger(Path(folder) / "cell", rows)
        size = (Path(folder) / "cell" / "episodes.jsonl").stat().st_size
        started = time.perf_counter()
        cpu_s, found = resume(Path(folder) / "cell")
        wall_s = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{found:,} rows, {size / 2**20:.0f} MiB: open in {wall_s:.1f} s ({cpu_s:.1f} s of CPU), {memory:.1f} GiB")


if __name__ == "__main__":
    main()
