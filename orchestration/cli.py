"""The command line. Heavy modules load inside the commands, so that help answers at once."""

from __future__ import annotations

import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from skillarena.conf.errors import SkillArenaError
from skillarena.orchestration import completion
from skillarena.orchestration.data_command.app import app as data_app
from skillarena.orchestration.library_command.app import app as library_app

app = typer.Typer(
    name="skillarena",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app)
app.add_typer(library_app)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"skillarena {version('skillarena')}")
        raise typer.Exit


@app.callback()
def every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Find out which skill-selection method makes LLM agents better."""


_PASS_ON = {"ignore_unknown_options": True, "help_option_names": []}
_Overrides = Annotated[
    list[str] | None,
    typer.Argument(help="Hydra overrides: GROUP=CHOICE, KEY=VALUE.", autocompletion=completion.overrides),
]


@app.command(context_settings=_PASS_ON)
def run(overrides: _Overrides = None) -> None:
    """Run an experiment: Hydra overrides such as `selector=vector backbone=simulated`; `-m` sweeps over lists.

    The same command continues an interrupted run. `skillarena run --help` lists groups and keys, `--cfg job` prints the
    configuration.
    """
    from skillarena.orchestration import hydra_run
    from skillarena.orchestration.experiment import run_cells

    raise typer.Exit(hydra_run.main(overrides or [], run_cells))


@app.command(context_settings=_PASS_ON)
def plan(
    overrides: _Overrides = None,
    json: Annotated[bool, typer.Option("--json", help="Print the plan as JSON.")] = False,
) -> None:
    """Say what `run` with the same arguments would play, and what it should take in tokens, money and GPU memory.

    Nothing is started. Models, keys and servers need not be there yet; what is missing is listed.
    """
    from skillarena.orchestration import hydra_run
    from skillarena.orchestration.plan import plan_cells

    raise typer.Exit(hydra_run.main(overrides or [], partial(plan_cells, as_json=json), command="plan"))


@app.command(context_settings={"ignore_unknown_options": True})
def doctor(
    overrides: _Overrides = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was found as JSON.")] = False,
) -> None:
    """Say whether this machine can run SkillArena, and what to do where it cannot.

    With overrides as for `run`, what that experiment needs must be there and the rest is left out: `skillarena doctor
    backbone=deepseek_v4_flash benchmark=alfworld_seen`. Exit code 1: something failed; warnings do not count.
    """
    from skillarena.orchestration import hydra_run
    from skillarena.orchestration.doctor.doctor import examine

    action = partial(examine, experiment=bool(overrides), as_json=json)
    raise typer.Exit(hydra_run.main(overrides or [], action, command="doctor"))


@app.command()
def select(
    task: Annotated[str, typer.Argument(help="The task in words, for example 'put a hot mug in cabinet'.")],
    overrides: _Overrides = None,
    benchmark: Annotated[
        str, typer.Option(help="Benchmark whose wording the task uses.", autocompletion=completion.benchmarks)
    ] = "alfworld",
    config_dir: Annotated[Path | None, typer.Option(help="Folder of further configuration files.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All candidates, not only the best.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Draw it as well, into a .svg, .png or .html file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the selection as JSON.")] = False,
) -> None:
    """Explain one selection: parse, states, edges, flows, splits, stage scores, chosen skills."""
    from skillarena.orchestration.explain import explain

    raise typer.Exit(
        explain(
            task,
            benchmark,
            overrides or [],
            config_dir=config_dir,
            everything=everything,
            as_json=json,
            figure=figure,
        )
    )


@app.command()
def show(
    episode: Annotated[
        str, typer.Argument(help="Beginning of an episode's id, CELL_FOLDER:TASK (name or number), or a folder.")
    ],
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Where to look for an id: output or cell folders; default: outputs.")
    ] = None,
    outcome: Annotated[str | None, typer.Option(help="List only episodes that ended so.")] = None,
    task_type: Annotated[str | None, typer.Option(help="List only episodes of this type of task.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw its selection into a .svg, .png or .html file (needs run.keep_selections=true)."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show one episode: task, skills, every thought, action and observation, tokens, timings, why it ended.

    A cell's folder alone lists its episodes, an output folder its cells.
    """
    from skillarena.orchestration.report.show import show as show_episode

    raise typer.Exit(
        show_episode(episode, paths or [], outcome=outcome, task_type=task_type, as_json=json, figure=figure)
    )


@app.command(name="retrieve-eval")
def retrieve_eval(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(
            help="Hydra overrides, as for `run`; lists of values give a row for each.",
            autocompletion=completion.overrides,
        ),
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
def report(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Output folders of `run`, cells' folders, or sweep files (outputs/sweeps/NAME.json)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder to write to; default: report in the output folder.")] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Method that all others are compared with: its label or its selector.")
    ] = None,
    mlflow: Annotated[
        list[str] | None, typer.Option(help="Sweep, experiment or cell in MLflow to add, by name or run id.")
    ] = None,
    uri: Annotated[str | None, typer.Option(help="Tracking URI for --mlflow; default: MLFLOW_TRACKING_URI.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the report as JSON; files are written with --out only.")
    ] = False,
) -> None:
    """Write tables, figures, comparisons and a page about finished or running sweeps.

    Tables come as Markdown, LaTeX, CSV and JSON, beside what papers published; index.html holds everything and opens
    without a server.
    """
    from skillarena.orchestration.report.report_command import report as write

    raise typer.Exit(write(paths or [], out=out, baseline=baseline, as_json=json, mlflow=mlflow or [], uri=uri))


@app.command()
def compare(
    first: Annotated[str, typer.Argument(metavar="A", help="PATH or PATH:METHOD, what B is compared with.")],
    second: Annotated[str, typer.Argument(metavar="B", help="PATH or PATH:METHOD.")],
    json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
) -> None:
    """Compare two cells or two sweeps on the tasks they share: paired tests, effects, disagreements.

    PATH is a cell's folder, an output folder of `run` or one of its sweep files. METHOD picks one method of it by its
    label, for example "outputs:vector top_k=1", or by its selector: outputs:vector is the mean of its sizes. Two cells
    are compared as they are, two methods setting by setting, and two sweeps where both have a method in a setting.
    """
    from skillarena.orchestration.report.compare import compare as compare_sides

    raise typer.Exit(compare_sides(first, second, as_json=json))


@app.command()
def sync(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Sweep files (outputs/sweeps/NAME.json), cell folders, or a folder such as outputs."),
    ],
    uri: Annotated[str | None, typer.Option(help="Tracking URI instead of the one the cells were run with.")] = None,
) -> None:
    """Bring MLflow up to date from ledgers, for example after the tracking server was away. Safe to repeat.

    A sweep's file also renews the sweep's own run with its report.
    """
    from skillarena.orchestration.tracking_sync import sync as bring_up_to_date

    for synced in bring_up_to_date(paths, uri):
        print(f"{synced.path}: MLflow run {synced.run_id}")


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
