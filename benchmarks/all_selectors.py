"""All selection methods in one sweep: what each selects, and what selecting takes.

    python benchmarks/all_selectors.py LIBRARY                                   bundled and generated games
    ALFWORLD_DATA=… python benchmarks/all_selectors.py LIBRARY alfworld_seen scienceworld_seen    the official splits
    python benchmarks/all_selectors.py bundled alfworld --limit 4 --only vector --only skilldag

The simulated backbone plays, so rewards say nothing about any model. Skills, pairs, tokens and seconds are what the
methods really do, but a method profits from embeddings and scores that an earlier one left in the cache. Where a
method asks a language model to rank skills, a stand-in answers that ranks by common words, so its choices say
nothing about any model either; methods that ask about every skill are left out. SkillDAG learns while it plays, as
its authors' runs do; SPEM is frozen and without a memory, as it must not learn here. Names and settings are those
of `conf/selector`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

METHODS = (
    "none",
    "random",
    "random_top2",
    "vector",
    "vector_top2",
    "vanilla",
    "oracle",
    "skillreranker",
    "without_parsing",
    "without_parsing_top2",
    "without_edges",
    "without_edges_top2",
    "without_split",
    "skillrouter",
    "skillrouter_top2",
    "llm_selector",
    "llm_selector_top2",
    "graph_of_skills",
    "graph_of_skills_top1",
    "graph_of_skills_top2",
    "graph_of_skills_released",
    "skilldag",
    "skilldag_frozen",
    "spem_frozen",
)


def main(
    library: Annotated[str, typer.Argument(help="Folder or pool of skills, or 'bundled'.")] = "bundled",
    benchmarks: Annotated[list[str] | None, typer.Argument(help="Choices of the group benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(help="Tasks of each benchmark; all without it.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Methods; all without it.")] = None,
    output: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("outputs/selectors"),
) -> None:
    """Play the sweep; the same call continues an interrupted one."""
    paths = [] if library == "bundled" else [f"library.paths=[{library}]", "library.rejected=list"]
    arguments = [
        f"selector={','.join(only or METHODS)}",
        f"benchmark={','.join(benchmarks or ['alfworld', 'scienceworld'])}",
        f"library={'paths' if paths else 'bundled'}",
        *paths,
        *([f"benchmark.limit={limit}"] if limit else []),
        "llm=simulated",
        f"output_dir={output}",
        "tracking.enabled=false",
    ]
    command = [sys.executable, "-m", "skillarena.orchestration.cli", "run", "-m", *arguments]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    typer.run(main)
