"""`skillarena library stats`: how many documents, how long, what repeats, what was refused."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from rich import box
from rich.table import Table
from rich.text import Text

from skillarena.orchestration.backbones.tokens import CHARACTERS_PER_TOKEN
from skillarena.orchestration.console import EXIT_OK, console_for_results, plain, plain_json
from skillarena.orchestration.library_command.paths import library_paths
from skillarena.orchestration.library_command.survey import Survey, survey
from skillarena.selectors.library import SkillLibrary

_QUANTILES = {"min": 0.0, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95, "99 %": 0.99, "max": 1.0}
_MOST_LISTED = 5


def stats(arguments: Sequence[str], config_dir: Path | None, *, near: float, as_json: bool) -> int:
    """Print figures of a library.

    Args:
        arguments: paths, or overrides.
        config_dir: folder of further configuration files.
        near: least similarity of near-duplicates.
        as_json: print JSON.

    Returns:
        The exit code.

    Raises:
        LibraryError: nothing can be read.
        ConfigError: a mistake in the arguments.
    """
    figures = measure(survey(SkillLibrary.load(library_paths(arguments, config_dir)), near))
    if as_json:
        sys.stdout.write(plain_json(orjson.dumps(figures, option=orjson.OPT_INDENT_2).decode()) + "\n")
    else:
        _print(figures)
    return EXIT_OK


def measure(found: Survey) -> dict[str, Any]:
    """Figures as plain data; a token counts as four characters."""
    skills = found.skills
    text = np.array([len(skill.text) for skill in skills])
    tokens = -(-text // CHARACTERS_PER_TOKEN)
    described = np.array([len(skill.description) for skill in skills])
    return {
        "documents": len(skills) + len(found.rejected) + len(found.read_twice),
        "skills": len(skills),
        "unique": len(skills) - len(found.repeats),
        "exact_duplicates": len(found.exact) + len(found.read_twice),
        "near_duplicates": len(found.near),
        "rejected": len(found.rejected),
        "rejected_by_reason": dict(Counter(_kind(entry.reason) for entry in found.rejected).most_common()),
        "without_description": int((described == 0).sum()),
        "names": len({skill.name for skill in skills}),
        "shared_names": {name: len(several) for name, several in found.shared_names.items()},
        "tokens": int(tokens.sum()),
        "lengths": {
            "tokens": _quantiles(tokens),
            "characters": _quantiles(text),
            "characters of the description": _quantiles(described),
        },
    }


def _kind(reason: str) -> str:
    """A reason without what is special to one document: positions, and what a parser quotes."""
    return re.sub(r"\b\d+\b", "N", reason.partition(":")[0]) if reason.startswith("not JSON") else reason


def _quantiles(values: Any) -> dict[str, int]:
    found = np.quantile(values, list(_QUANTILES.values()), method="inverted_cdf")
    return {name: int(value) for name, value in zip(_QUANTILES, found, strict=True)}


def _print(figures: dict[str, Any]) -> None:
    shared = figures["shared_names"]
    out = console_for_results()
    lines = [
        f"{figures['documents']:,} documents, {figures['skills']:,} skills, {figures['tokens']:,} tokens in all",
        f"  {figures['unique']:,} repeat none",
        f"  {figures['exact_duplicates']:,} exact duplicates",
        f"  {figures['near_duplicates']:,} near-duplicates",
        f"  {figures['rejected']:,} rejected",
        *(f"    {count:,} {reason}" for reason, count in figures["rejected_by_reason"].items()),
        f"  {figures['without_description']:,} without description",
        f"  {figures['names']:,} names, {len(shared):,} of them shared by {sum(shared.values()):,} skills",
        *(f"    {name}: {count:,}" for name, count in list(shared.items())[:_MOST_LISTED]),
        *([f"    and {len(shared) - _MOST_LISTED:,} more; --json lists all"] if len(shared) > _MOST_LISTED else []),
    ]
    for line in lines:
        out.print(Text(plain(line)), soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("length")
    for name in _QUANTILES:
        table.add_column(name, justify="right")
    for name, quantiles in figures["lengths"].items():
        table.add_row(name, *(f"{value:,}" for value in quantiles.values()))
    out.print(table)
