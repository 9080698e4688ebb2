"""What a newcomer waits for: a fresh clone and an empty home folder, then the demonstration, a guide and the tests.

    python benchmarks/newcomer.py            # all steps: demo, guide, test
    python benchmarks/newcomer.py demo guide

Needs git, make and the package index, nothing of an environment that is set up already. The guide uses what the
demonstration has set up.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree
from tempfile import mkdtemp

ROOT = Path(__file__).resolve().parents[1]
STEPS = {"demo": ["make demo"], "guide": [], "test": ["make test"]}
"""Commands of each step; those of the guide stand in its page."""
GUIDE = Path("examples/add_selector")
_SHOWN = 6  # last lines of each step
_OWN = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "SKILLARENA_CACHE")


def commands_of(page: str) -> list[str]:
    """The lines of a page's console blocks that are typed."""
    return [line.removeprefix("$ ") for line in page.splitlines() if line.startswith("$ ")]


def play(name: str, commands: Sequence[str], folder: Path, env: dict[str, str]) -> bool:
    """Run commands one after the other, and print how long they took and what the last one said at its end."""
    began = time.monotonic()
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", f"exec 2>&1; {command}"],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
        if done.returncode:
            break
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    print(f"== {name}: {minutes} min {seconds} s, exit code {done.returncode}")
    print(*done.stdout.decode(errors="replace").splitlines()[-_SHOWN:], sep="\n", flush=True)
    return not done.returncode


def main(steps: Sequence[str]) -> int:
    """Play steps in a clone of this repository. Returns 1 when one fails, and leaves out those after it."""
    place = Path(mkdtemp(prefix="newcomer-"))
    home, clone, example = place / "home", place / "clone", place / "add_selector"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if name not in _OWN} | {"HOME": str(home)}
    print(f"in {place}", flush=True)
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    for step in steps:
        folder, commands = clone, STEPS[step]
        if step == "guide":
            copytree(clone / GUIDE, example)
            folder, commands = example, commands_of((example / "README.md").read_text())
            env = {**env, "PATH": f"{clone / '.venv' / 'bin'}{os.pathsep}{env['PATH']}"}
        if not play(step, commands, folder, env):
            return 1
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=", ".join(STEPS))
    chosen = parser.parse_args().steps or list(STEPS)
    if unknown := [step for step in chosen if step not in STEPS]:
        parser.error(f"no step {unknown[0]}; choose from {', '.join(STEPS)}")
    sys.exit(main(chosen))
