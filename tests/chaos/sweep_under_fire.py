"""A sweep by the real command that is disturbed, started again where it ends early, and looked at afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from command import cells, command, comparable, environment, finished_rows, rows_of
from processes import MARK, Family

RECOVERY_LIMIT_S = 420.0
_CLEAN_WITHIN_S = 90.0  # Ray's agents look for their raylet twice a minute
_LOOK_EVERY_S = 0.05


@dataclass
class SweepUnderFire:
    """One sweep in a folder of its own.

    Args:
        folder: where the command runs.
        arguments: of the command; ``{sweep}`` in them becomes the folder's name.
        cache: its cache folder.
        env: further environment variables.
        is_disturbed: it may end early, and is then started again.
    """

    folder: Path
    arguments: Sequence[str]
    cache: Path
    env: dict[str, str] = field(default_factory=dict)
    is_disturbed: bool = True
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.family = Family(self.folder)
        self.log = self.folder / "log"

    def start(self) -> None:
        """Run the command."""
        self.starts += 1
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command(*[argument.replace("{sweep}", self.folder.name) for argument in self.arguments]),
                cwd=self.folder,
                env=environment(self.cache, **{MARK: self.family.mark(self.starts)}, **self.env),
                stdout=log,
                stderr=log,
            )

    @property
    def code(self) -> int | None:
        """Exit code of the command; None while it runs."""
        assert self.process is not None
        return self.process.poll()

    @property
    def done(self) -> bool:
        """The command has ended well: nothing is left to play."""
        return self.code == 0

    def processes(self, role: str) -> list[psutil.Process]:
        """Those of the present command that have a role."""
        return self.family.of(role, self.starts)

    def lines(self) -> int:
        """Lines of all ledgers."""
        return finished_rows(self.folder)

    def wait_for_lines(self, more_than: int, within_s: float = RECOVERY_LIMIT_S) -> None:
        """Until the ledgers have more lines or the sweep is done; starts the command again where it has ended."""
        ends = time.monotonic() + within_s
        while self.lines() <= more_than and not self.done:
            if self.code is not None:
                assert self.is_disturbed, self.said()
                self.start()
            assert time.monotonic() < ends, f"no episode within {within_s:g} s\n{self.said()}"
            time.sleep(_LOOK_EVERY_S)

    def finish(self, within_s: float = RECOVERY_LIMIT_S) -> None:
        """Let it come to its end, undisturbed."""
        while not self.done:
            self.wait_for_lines(self.lines(), within_s)

    def said(self) -> str:
        """The end of what the command printed."""
        return self.log.read_text(errors="replace")[-6000:]

    def check(self, reference: dict[str, Any]) -> None:
        """One final row for each task, equal to the undisturbed run's, and no process left."""
        assert self.family.is_gone(_CLEAN_WITHIN_S), self.family.members()
        assert self.results() == reference, self.said()
        assert "Traceback" not in self.log.read_text(errors="replace"), self.said()
        for cell in cells(self.folder / "outputs"):
            final = Counter(
                row["episode_id"] for row in _plain_rows(cell / "episodes.jsonl") if row["outcome"] != "infra_error"
            )
            assert set(final.values()) == {1}, f"doubled rows in {cell}"
            assert len(final) == len(rows_of(cell))

    def results(self) -> dict[str, Any]:
        """Comparable rows by cell and task."""
        return {cell.name: comparable(rows_of(cell)) for cell in cells(self.folder / "outputs")}

    def end(self) -> None:
        """Leave nothing running."""
        self.family.end()
        if self.process is not None:
            self.process.wait(30)


def _plain_rows(path: Path) -> list[dict[str, Any]]:
    rows = []
    for line in path.read_bytes().splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:  # one that a fault has torn
            continue
    return rows


def undisturbed(
    folder: Path, arguments: Sequence[str], cache: Path, env: dict[str, str], within_s: float = RECOVERY_LIMIT_S
) -> dict[str, Any]:
    """Rows of a run that nobody disturbs; each episode has to come within ``within_s`` seconds."""
    sweep = SweepUnderFire(folder, arguments, cache, env, is_disturbed=False)
    try:
        sweep.start()
        sweep.finish(within_s)
        assert sweep.family.is_gone(_CLEAN_WITHIN_S)
        return sweep.results()
    finally:
        sweep.end()
