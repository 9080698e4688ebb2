"""Gold paths of the standard tasks, shipped with the project: finding all 525 takes a core most of an hour.

``python -m skillarena.envs.scienceworld_gold_data FILE`` finds them again with the installed simulator and writes the
data file; paths found earlier on this machine are taken from the cache folder, so it can be stopped and continued.
"""

from __future__ import annotations

import gzip
import json
import sys
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("data") / "scienceworld_gold.json.gz"


@cache
def shipped_paths() -> dict[str, list[str]]:
    """Gold actions by task id. The id names the simulator's version, so another version finds its own paths."""
    with gzip.open(_FILE, "rt", encoding="utf-8") as file:
        paths: dict[str, list[str]] = json.load(file)
    return paths


def write_paths(file: Path, paths: dict[str, list[str]]) -> None:
    """Write the data file; equal paths give equal bytes."""
    text = json.dumps(dict(sorted(paths.items())), separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


def main(file: Path) -> None:
    """Find the gold path of every standard task and write the data file."""
    from skillarena.envs.cache_dir import cache_root
    from skillarena.envs.scienceworld import ScienceWorldBenchmark
    from skillarena.envs.scienceworld_gold import GoldPaths
    from skillarena.envs.scienceworld_jvm import JvmOptions
    from skillarena.envs.scienceworld_tasks import SPLITS

    tasks = [task for split in SPLITS for task in ScienceWorldBenchmark(split=split).tasks()]
    gold = GoldPaths(cache_root() / "scienceworld" / "gold", JvmOptions(), deadline_s=600.0, shipped={})
    found: dict[str, list[str]] = {}
    for task in tasks:
        found[task.id] = gold.path(task)
        print(f"{len(found)}/{len(tasks)} {task.name}: {len(found[task.id])} actions", flush=True)
    gold.close()
    write_paths(file, found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
