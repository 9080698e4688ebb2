"""The commands of `skillarena data`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from skillarena.orchestration import completion

app = typer.Typer(
    name="data", help="Fetch or bring in what an experiment needs: games, models, skills.", no_args_is_help=True
)


@app.command()
def alfworld(
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from", help="Folder or archive with the games, or address of a mirror; repeat it for several archives."
        ),
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="Folder to put them in; default: ALFWORLD_DATA, else ~/.cache/alfworld.")
    ] = None,
) -> None:
    """Put ALFWorld's official games in place: valid_seen (140), valid_unseen (134), train (3,553).

    Without --from, fetches the two archives of alfworld-download that hold them (its MaskRCNN weights and PDDL states
    are not read here). Repeat the command after an interruption: it goes on where it stopped.
    """
    from skillarena.orchestration.data_command.alfworld import get_alfworld

    raise typer.Exit(get_alfworld(sources or [], to))


@app.command(context_settings={"ignore_unknown_options": True})  # for -m and other flags of Hydra
def models(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Hydra overrides, as for `run`.", autocompletion=completion.overrides)
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be fetched, and its size.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the list as JSON.")] = False,
) -> None:
    """Fetch the embedders, rerankers and backbones that `run` with the same arguments would load.

    Arguments are those of `run`, sweeps (`-m`) and presets (`experiment=table1`) included. Models go to the Hugging
    Face cache; what is there is not fetched again, and an interrupted download goes on.
    """
    from skillarena.orchestration import hydra_run
    from skillarena.orchestration.data_command.models import get_models

    action = partial(get_models, dry_run=dry_run, as_json=json)
    raise typer.Exit(hydra_run.main(overrides or [], action, command="data models"))


@app.command()
def skills(
    source: Annotated[str, typer.Argument(help="Folder, .zip, .tar.*, .jsonl* pool, or OWNER/NAME on the hub.")],
    to: Annotated[Path, typer.Option(help="Folder for the library; must not exist yet.")],
    repo_type: Annotated[str, typer.Option(help="What OWNER/NAME is on the hub: dataset, model or space.")] = "dataset",
    revision: Annotated[str | None, typer.Option(help="Commit, tag or branch on the hub.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was read as JSON.")] = False,
) -> None:
    """Bring in a skill collection: its SKILL.md files, pools and licences, checked by reading them as a library."""
    from skillarena.orchestration.data_command.skills import get_skills

    raise typer.Exit(get_skills(source, to, repo_type=repo_type, revision=revision, as_json=json))
