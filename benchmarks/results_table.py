"""Results of the benchmark suites as Markdown tables, as in docs/speed.md.

python benchmarks/results_table.py outputs/bench [SUITE ...]
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from harness import number


def table(results: list[dict[str, Any]]) -> str:
    """What was measured, its value, its bound and whether that was reached."""
    lines = ["| what | measured | bound | |", "|---|---:|---:|---|"]
    for one in results:
        bound = ""
        if one["bound"] is not None:
            bound = f"{'≥' if one['at_least'] else '≤'} {number(one['bound'])}"
        verdict = {True: "reached", False: "**missed**", None: ""}[one["reached"]]
        lines.append(f"| {one['name']} | {number(one['value'])} {one['unit']} | {bound} | {verdict} |")
    return "\n".join(lines)


def main(
    folder: Annotated[Path, typer.Argument(help="Where `make bench` wrote its JSON files.")],
    suites: Annotated[list[str] | None, typer.Argument(help="Some of them; all without it.")] = None,
) -> None:
    """Print a table for each suite, and the machine it ran on."""
    files = [file for file in sorted(folder.glob("*.json")) if not suites or file.stem in suites]
    if not files:
        raise typer.BadParameter(f"there are no such results in {folder}; `make bench` writes them")
    for file in files:
        found = orjson.loads(file.read_bytes())
        where = found["machine"]
        about = (
            f"{where['cores']} cores of {where['cpu']}, Python {where['python']}, load before {where['load_before']}"
        )
        typer.echo(f"### {file.stem}\n\n{table(found['results'])}\n\n{about}\n")


if __name__ == "__main__":
    typer.run(main)
