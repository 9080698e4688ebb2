"""How long a cell with very many finished episodes takes until it can go on.

    python benchmarks/ledger_resume.py [ROWS]

Writes a ledger (1,000,000 rows unless told otherwise) and opens it again, as the command does before it plays.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
from queue_run import sample_row

from skillarena.orchestration.ledger import Ledger

ROWS = 1_000_000
_IDENTITY = {"benchmark": "a ledger alone"}


def write_ledger(folder: Path, rows: int) -> None:
    """A cell folder whose rows differ in their ids."""
    with Ledger(folder, _IDENTITY, {"cell": {}, "settings": {}}, []):
        pass
    line = orjson.dumps(asdict(replace(sample_row(), episode_id="EPISODE", task_id="TASK"))) + b"\n"
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
