"""All benchmark suites, one after the other: `make bench`.

`python benchmarks/bench.py` runs every suite and keeps the results in outputs/bench; names of suites choose some of
them, and `--quick` takes fewer repeats.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Annotated

import typer
from harness import machine, report

SUITES = tuple(sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")))


def main(
    suites: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(SUITES)}; all without it.")] = None,
    quick: Annotated[bool, typer.Option(help="Fewer repeats and smaller sizes.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results, a JSON file for each suite.")] = Path(
        "outputs/bench"
    ),
) -> None:
    """Measure; exit code 1 when a bound is missed."""
    unknown = set(suites or ()) - set(SUITES)
    if unknown:
        raise typer.BadParameter(f"there is no suite {', '.join(sorted(unknown))}; there are {', '.join(SUITES)}")
    code = 0
    for name in suites or SUITES:
        typer.echo(f"== {name}")
        suite = importlib.import_module(f"bench_{name}")
        code |= report(suite.bench(quick=quick), machine(), out / f"{name}.json")
    raise typer.Exit(code)


if __name__ == "__main__":
    typer.run(main)
