"""What was broken, and how long it took until the sweep went on.

python tests/chaos/injections.py FILE...        prints the table of files that CHAOS_DIARY named
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median


@dataclass
class Injection:
    """One fault."""

    scenario: str
    fault: str
    recovery_s: float
    """Until the next episode was finished, or until the sweep had ended, whichever came first."""


DIARY: list[Injection] = []
"""Faults of this session, those of sweeps that were right at their end."""


def survived(injections: Sequence[Injection]) -> None:
    """Keep the faults of a sweep that was right at its end; ``CHAOS_DIARY`` names a file that gets them, too."""
    DIARY.extend(injections)
    if path := os.environ.get("CHAOS_DIARY"):
        with Path(path).open("a") as file:
            file.writelines(json.dumps(asdict(injection)) + "\n" for injection in injections)


def table(injections: Sequence[Injection]) -> str:
    """A Markdown table of faults."""
    kinds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for injection in injections:
        kinds[injection.scenario, injection.fault].append(injection.recovery_s)
    lines = [
        "| sweep | fault | times | seconds until the next episode: median | longest |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for (scenario, fault), seconds in sorted(kinds.items()):
        lines.append(f"| {scenario} | {fault} | {len(seconds)} | {median(seconds):.1f} | {max(seconds):.1f} |")
    lines.append(f"| all | | {len(injections)} | {median(i.recovery_s for i in injections):.1f} | |")
    return "\n".join(lines)


if __name__ == "__main__":
    written = [line for name in sys.argv[1:] for line in Path(name).read_text().splitlines()]
    print(table([Injection(**json.loads(line)) for line in written]))
