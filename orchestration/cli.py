"""The command line. Heavy modules load inside the commands, so that help answers at once."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from skillarena.conf.errors import SkillArenaError

app = typer.Typer(
    name="skillarena",
    help="Find out which skill-selection method makes LLM agents better.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=_PASS_ON)
def run(context: typer.Context) -> None:
    """Run an experiment: Hydra overrides such as `selector=vector backbone=simulated`; `-m` sweeps over lists.

    The same command continues an interrupted run. `skillarena run --help` lists groups and keys, `--cfg job` prints the
    configuration.
    """
    from skillarena.orchestration import hydra_run
    from skillarena.orchestration.experiment import run_cells

    raise typer.Exit(hydra_run.main(context.args, run_cells))


@app.command(context_settings=_PASS_ON)
def plan(
    context: typer.Context,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Say what `run` with the same arguments would play, and what it should take in tokens, money and GPU memory.

    Nothing is started. Models, keys and servers need not be there yet; what is missing is listed.
    """
    from skillarena.orchestration import hydra_run
    from skillarena.orchestration.plan import plan_cells

    raise typer.Exit(hydra_run.main(context.args, partial(plan_cells, as_json=json), command="plan"))


@app.command()
def select(
    task: Annotated[str, typer.Argument(help="The task in words, for example 'put a hot mug in cabinet'.")],
    overrides: Annotated[list[str] | None, typer.Argument(help="Hydra overrides, as for `run`.")] = None,
    benchmark: Annotated[str, typer.Option(help="Benchmark whose wording the task uses.")] = "alfworld",
    config_dir: Annotated[Path | None, typer.Option(help="Folder of further configuration files.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All candidates, not only the best.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the selection as JSON.")] = False,
) -> None:
    """Explain one selection: parse, states, edges, flows, splits, stage scores, chosen skills."""
    from skillarena.orchestration.explain import explain

    raise typer.Exit(
        explain(task, benchmark, overrides or [], config_dir=config_dir, everything=everything, as_json=json)
    )


@app.command(name="retrieve-eval")
def retrieve_eval(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Hydra overrides, as for `run`; lists of values give a row for each.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with tasks.jsonl, relevance.json and skill pools; default: bundled queries."),
    ] = None,
    tier: Annotated[str | None, typer.Option(help="Which pool of the data folder, where it has several.")] = None,
    download: Annotated[
        str | None, typer.Option(help="Fetch SkillRouter's evaluation set from the Hugging Face hub: easy or hard.")
    ] = None,
    revision: Annotated[str | None, typer.Option(help="Commit, tag or branch of the download.")] = None,
    mode: Annotated[str, typer.Option(help="Which skills count as needed: core, single or all.")] = "core",
    score: Annotated[Path | None, typer.Option(help="Score this file of rankings; no selector is run.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write predictions.jsonl and scores.json to.")] = None,
    config_dir: Annotated[Path | None, typer.Option(help="Folder of further configuration files.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the scores as JSON.")] = False,
) -> None:
    """Evaluate selectors as search engines, without an agent: Hit@1, MRR, nDCG, recall, full coverage.

    `skillarena retrieve-eval selector=vector,skillrouter` gives a row for each.
    """
    from skillarena.orchestration.retrieve_eval import Source
    from skillarena.orchestration.retrieve_eval import retrieve_eval as evaluate

    source = Source(data, tier, download, revision)
    raise typer.Exit(
        evaluate(overrides or [], source, mode=mode, predictions=score, out=out, config_dir=config_dir, as_json=json)
    )


@app.command()
def sync(
    cells: Annotated[list[Path], typer.Argument(help="Cell folders, or a folder of them such as outputs/cells.")],
    uri: Annotated[str | None, typer.Option(help="Tracking URI instead of the one the cell was run with.")] = None,
) -> None:
    """Bring MLflow up to date from ledgers, for example after the tracking server was away. Safe to repeat."""
    from skillarena.orchestration.experiment import sync_cell
    from skillarena.orchestration.report.archive import cell_folders

    for cell in cell_folders(cells):
        print(f"{cell}: MLflow run {sync_cell(cell, uri)}")


def main() -> None:
    """Entry point: expected errors become one message and exit code 2."""
    from skillarena.orchestration.console import EXIT_INTERRUPTED, print_error

    try:
        app()
    except SkillArenaError as error:
        sys.exit(print_error(error))
    except KeyboardInterrupt:  # before anything was started
        print("stopped", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
