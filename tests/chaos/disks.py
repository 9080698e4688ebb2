"""Small disks that fill up or refuse to be written."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from faults import Fault
from sweep_under_fire import SweepUnderFire

_SIZE_MB = 24
_ENDS_WITHIN_S = 120.0


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A disk of a few megabytes in memory, mounted on a new folder; skips the test where nobody may mount."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_SIZE_MB}m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"this user may not mount a disk: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path) -> Fault:
    """No byte is left until the sweep has ended by itself; then there is room again."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        filler = disk / "filler"
        ends = time.monotonic() + _ENDS_WITHIN_S
        with filler.open("ab", buffering=0) as file:
            while sweep.code is None:
                with suppress(OSError):
                    while True:
                        file.write(b"x" * 4096)
                assert time.monotonic() < ends, f"it goes on with a full disk\n{sweep.said()}"
                time.sleep(0.02)
        if not sweep.done:  # the last row may have found its place before
            assert "No space left on device" in sweep.said(), sweep.said()
            assert "Traceback" not in sweep.said(), sweep.said()
        filler.unlink()
        return lambda: None

    return Fault("disk full until the command gives up", lambda sweep: sweep.code is None, inject)


def forbid_writing(disk: Path) -> Fault:
    """After a kill -9 the disk is read-only: the command says so and ends; then it can be written again."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        assert sweep.process is not None
        sweep.process.kill()
        sweep.process.wait(30)
        sweep.family.end()
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        try:
            sweep.start()
            assert sweep.process.wait(_ENDS_WITHIN_S) == 2, sweep.said()
            assert "Read-only file system" in sweep.said(), sweep.said()
            assert "Traceback" not in sweep.said(), sweep.said()
        finally:
            subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        return lambda: None

    return Fault("kill -9: driver, then a read-only disk", lambda sweep: sweep.code is None, inject)
