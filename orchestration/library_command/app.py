"""The commands of `skillarena library`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skillarena.orchestration import completion

app = typer.Typer(
    name="library",
    help="Put skill libraries together, look into them, and prepare them for selectors.",
    no_args_is_help=True,
)

Near = Annotated[
    float, typer.Option(help="Similarity from which on documents are near-duplicates, above 0.5 and at most 1.")
]
ConfigDir = Annotated[Path | None, typer.Option(help="Folder of further configuration files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Hydra overrides, as for `run`.", autocompletion=completion.overrides)
]


@app.command(name="import")
def import_(
    sources: Annotated[list[str], typer.Argument(help="Folders, .md files, .jsonl* pools, or the word bundled.")],
    to: Annotated[Path, typer.Option(help="Folder for a tree, or a .jsonl, .jsonl.gz or .jsonl.xz file for a pool.")],
    near: Near = 0.8,
    drop_near: Annotated[bool, typer.Option("--drop-near", help="Leave near-duplicates out, too.")] = False,
    json: AsJson = False,
) -> None:
    """Write one library out of several. Equal documents are taken once; what was refused is listed with reasons."""
    from skillarena.orchestration.library_command.merge import merge

    raise typer.Exit(merge(sources, to, near=near, drop_near=drop_near, as_json=json))


@app.command()
def stats(
    library: Annotated[list[str] | None, typer.Argument(help="Paths, or Hydra overrides as for `run`.")] = None,
    near: Near = 0.8,
    config_dir: ConfigDir = None,
    json: AsJson = False,
) -> None:
    """Count documents, duplicates, shared names and refusals, and say how long the texts are."""
    from skillarena.orchestration.library_command.stats import stats as print_stats

    raise typer.Exit(print_stats(library or [], config_dir, near=near, as_json=json))


@app.command()
def lint(
    paths: Annotated[list[str], typer.Argument(help="Folders, .md files, .jsonl* pools, or the word bundled.")],
    near: Near = 0.8,
    json: AsJson = False,
) -> None:
    """List every problem of every document with its fix. Exit code 1 when a document would be rejected."""
    from skillarena.orchestration.library_command.lint import lint as print_problems

    raise typer.Exit(print_problems(paths, near=near, as_json=json))


@app.command()
def index(
    overrides: Overrides = None,
    config_dir: ConfigDir = None,
    documents: Annotated[
        bool,
        typer.Option("--documents", help="Also the sections of all documents, which reranker=similarity compares."),
    ] = False,
    json: AsJson = False,
) -> None:
    """Compute and keep the vectors by which the configured selector finds skills. Goes on where it was stopped."""
    from skillarena.orchestration.library_command.index import index as compute

    raise typer.Exit(compute(overrides or [], config_dir, documents=documents, as_json=json))


@app.command()
def parse(
    overrides: Overrides = None,
    config_dir: ConfigDir = None,
    yes: Annotated[bool, typer.Option("--yes", help="Make the LLM calls that were announced.")] = False,
    json: AsJson = False,
) -> None:
    """Parse all skills with the configured parser and keep the results. Goes on where it was stopped.

    Says first how many LLM calls and tokens that takes and what they cost; only with --yes are they made.
    """
    from skillarena.orchestration.library_command.parse import parse as parse_all

    raise typer.Exit(parse_all(overrides or [], config_dir, yes=yes, as_json=json))
