"""What can go wrong with a running sweep, each as an action on it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from sweep_under_fire import RECOVERY_LIMIT_S, SweepUnderFire

_MOST_SKEW_S = 40 * 24 * 3600


@dataclass(frozen=True)
class Fault:
    """One kind of fault."""

    name: str
    possible: Callable[[SweepUnderFire], bool]
    inject: Callable[[SweepUnderFire, random.Random], Callable[[], None]]
    """Breaks something; what it returns waits until the broken part is gone or heals it."""


def kill(role: str) -> Fault:
    """SIGKILL for one process of a role."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        _choose(sweep, role, rng).kill()
        return _nothing

    return Fault(f"kill -9: {role}", lambda sweep: bool(sweep.processes(role)), inject)


def freeze(role: str) -> Fault:
    """SIGSTOP for one process of a role, for ever: the sweep has to end it."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        frozen = _choose(sweep, role, rng)
        frozen.send_signal(signal.SIGSTOP)
        return lambda: _wait_until_gone(frozen, sweep)

    return Fault(f"SIGSTOP: {role}", lambda sweep: bool(sweep.processes(role)), inject)


def kill_driver(damage: Callable[[SweepUnderFire, random.Random], None], name: str) -> Fault:
    """SIGKILL for the command itself, then some damage, then the same command again."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        assert sweep.process is not None
        sweep.process.kill()
        sweep.process.wait(30)
        damage(sweep, rng)
        sweep.start()
        return _nothing

    return Fault(f"kill -9: driver{name}", lambda sweep: sweep.code is None, inject)


def tear_ledger(sweep: SweepUnderFire, rng: random.Random) -> None:
    """Leave the beginning of a line at the end of a ledger, as a machine that lost power does."""
    path = rng.choice(sorted(sweep.folder.glob("outputs/cells/*/episodes.jsonl")))
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    if lines:
        path.write_bytes(whole[: -rng.randrange(1, len(lines[-1]))])


def append_garbage(sweep: SweepUnderFire, rng: random.Random) -> None:
    """Leave bytes that are no row at the end of a ledger."""
    path = rng.choice(sorted(sweep.folder.glob("outputs/cells/*/episodes.jsonl")))
    with path.open("ab") as file:
        file.write(rng.randbytes(rng.randrange(1, 400)) + rng.choice([b"", b"\n"]))


def damage_cache(sweep: SweepUnderFire, rng: random.Random) -> None:
    """Overwrite or cut off one file of the caches, once nobody uses it any more."""
    sweep.family.end()
    files = sorted(path for path in sweep.cache.rglob("*") if path.is_file() and path.stat().st_size)
    path = rng.choice(files)
    size = path.stat().st_size
    with path.open("r+b") as file:
        if rng.random() < 0.5:
            file.truncate(rng.randrange(size))
        else:
            file.seek(rng.randrange(size))
            file.write(rng.randbytes(min(200, size)))


def skew_clock(file: Path) -> Fault:
    """Let the wall clock of all processes jump by up to forty days, either way."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        file.write_text(str(rng.uniform(-_MOST_SKEW_S, _MOST_SKEW_S)))
        return _nothing

    return Fault("clock jumps", lambda sweep: sweep.code is None, inject)


def _choose(sweep: SweepUnderFire, role: str, rng: random.Random) -> psutil.Process:
    return rng.choice(sorted(sweep.processes(role), key=lambda process: int(process.pid)))


def _nothing() -> None:
    pass


def _wait_until_gone(process: psutil.Process, sweep: SweepUnderFire) -> None:
    ends = time.monotonic() + RECOVERY_LIMIT_S
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < ends, f"{process} is still there\n{sweep.said()}"
        if sweep.code is not None and not sweep.family.members():
            return
        time.sleep(0.1)
