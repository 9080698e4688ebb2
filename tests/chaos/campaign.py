"""Disturbs sweeps of one kind at random times until enough has been broken."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults import Fault
from injections import Injection, survived
from sweep_under_fire import SweepUnderFire, undisturbed

_SHORTEST_S, _LONGEST_S = 0.2, 2.5  # between two faults


@dataclass
class Campaign:
    """Sweeps of one kind.

    Args:
        name: for the table.
        arguments: of the command.
        faults: what may happen, all about equally often.
        folder: gets a folder for each sweep.
        cache: shared by all of them.
        env: further environment variables.
        seed: of times and choices.
        outputs: where the sweeps' results are; None: in their own folders.
        check: looks at each sweep after its end, once more.
    """

    name: str
    arguments: Sequence[str]
    faults: Sequence[Fault]
    folder: Path
    cache: Path
    env: dict[str, str]
    seed: int = 0
    outputs: Path | None = None
    check: Callable[[SweepUnderFire], None] = lambda sweep: None

    def __post_init__(self) -> None:
        self._times: Counter[str] = Counter()  # injected so far, by fault

    def play(self, injections: int) -> list[Injection]:
        """Inject so many faults, in as many sweeps as it takes; every sweep is checked at its end.

        Of the faults that are possible at a moment, one of those that were injected least often is taken.
        """
        reference = undisturbed(self._prepared("undisturbed"), self.arguments, self.cache, self.env)
        rng = random.Random(self.seed)
        made: list[Injection] = []
        number = 0
        while len(made) < injections:
            number += 1
            made += self._disturb(self._prepared(f"sweep{number}"), reference, rng, injections - len(made))
        return made

    def _prepared(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        if self.outputs is not None:
            (self.outputs / name).mkdir()
            (folder / "outputs").symlink_to(self.outputs / name)
        return folder

    def _disturb(self, folder: Path, reference: dict[str, Any], rng: random.Random, most: int) -> list[Injection]:
        sweep = SweepUnderFire(folder, self.arguments, self.cache, self.env)
        made: list[Injection] = []
        try:
            sweep.start()
            sweep.wait_for_lines(0)
            while not sweep.done and len(made) < most:
                time.sleep(rng.uniform(_SHORTEST_S, _LONGEST_S))
                made += self._inject(sweep, rng)
            sweep.finish()
            sweep.check(reference)
            self.check(sweep)
        finally:
            sweep.end()
        survived(made)
        return made

    def _inject(self, sweep: SweepUnderFire, rng: random.Random) -> list[Injection]:
        possible = [fault for fault in self.faults if fault.possible(sweep)]
        if not possible or sweep.code is not None:
            return []
        rarest = min(self._times[fault.name] for fault in possible)
        fault = rng.choice([fault for fault in possible if self._times[fault.name] == rarest])
        self._times[fault.name] += 1
        lines, started = sweep.lines(), time.monotonic()
        wait_for_the_end = fault.inject(sweep, rng)
        sweep.wait_for_lines(lines)
        wait_for_the_end()
        return [Injection(self.name, fault.name, time.monotonic() - started)]
