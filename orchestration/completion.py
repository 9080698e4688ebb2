"""What a shell offers after `skillarena run`: groups, choices, keys with their present values, and experiments.

Configurations are read as plain YAML, without Hydra, so that the answer comes at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import typer
import yaml

CONF_DIR = Path(__file__).resolve().parents[1] / "conf"

_Offer = tuple[str, str]
"""A word, and what it means where the shell has room for that."""


def overrides(ctx: typer.Context, incomplete: str) -> list[_Offer]:
    """Words that may follow what is typed.

    Bash takes ``=`` for a word of its own: what precedes the sign is then an earlier word, and only what follows it is
    wanted. Other shells hand over, and want, whole words.

    Args:
        ctx: the command with the words before this one.
        incomplete: the word as far as it is typed.
    """
    before = [str(word) for word in ctx.params.get("overrides") or ()] + [str(word) for word in ctx.args]
    folders = _folders(before)
    name = _named_before_sign(before, _groups(folders))
    typed = f"{name}={incomplete}" if name else incomplete
    whole = _whole_words(typed, _chosen(before), folders)
    return [(word.removeprefix(f"{name}=") if name else word, meaning) for word, meaning in whole]


def _named_before_sign(before: list[str], groups: list[str]) -> str:
    """The group whose choice is being typed where words end at ``=``; typer takes the sign away when it comes last."""
    if before[-1:] == ["="]:
        return "".join(before[-2:-1])
    return before[-1] if before and before[-1] in groups else ""


def benchmarks(incomplete: str) -> list[_Offer]:
    """Benchmarks whose names begin with what is typed."""
    return [(name, meaning) for name, meaning in _choices("benchmark", [CONF_DIR]) if name.startswith(incomplete)]


def _whole_words(typed: str, chosen: dict[str, str], folders: list[Path]) -> Iterator[_Offer]:
    name, equals, value = typed.partition("=")
    if equals:
        listed = re.split(r"(?<=[\[,])", value)  # of a list, the last value is being typed
        for choice, meaning in _choices(name, folders):
            if choice.startswith(listed[-1]):
                yield f"{name}={''.join(listed[:-1])}{choice}", meaning
        return
    group, dot, _ = name.partition(".")
    if dot:
        for key, now in _keys(group, chosen, folders):
            if key.startswith(name):
                yield f"{key}={now}", ""
        return
    fitting = [group for group in _groups(folders) if group.startswith(name)]
    if len(fitting) == 1:
        for choice, meaning in _choices(fitting[0], folders):
            yield f"{fitting[0]}={choice}", meaning
    else:
        yield from ((f"{group}=", "") for group in fitting)
    for key, now in _flat({key: value for key, value in _read(CONF_DIR / "config.yaml").items() if key != "hydra"}):
        if key.startswith(name):
            yield f"{key}={now}", ""


def _folders(words: list[str]) -> list[Path]:
    """This project's configurations, and those of ``--config-dir``."""
    given = [Path(after) for word, after in pairwise(words) if word in ("--config-dir", "-cd")]
    return [CONF_DIR, *given]


def _chosen(words: list[str]) -> dict[str, str]:
    """Choices by group: the defaults, then what earlier words say."""
    defaults = _read(CONF_DIR / "config.yaml").get("defaults", ())
    chosen = {group: str(choice) for entry in defaults if isinstance(entry, dict) for group, choice in entry.items()}
    return chosen | dict(re.findall(r"(\w+) ?= ?(\w+)", " ".join(words)))


def _groups(folders: Iterable[Path]) -> list[str]:
    return sorted({path.parent.name for folder in folders for path in folder.glob("*/*.yaml")})


def _choices(group: str, folders: Iterable[Path]) -> list[_Offer]:
    files = (path for folder in folders for path in folder.glob(f"{group}/*.yaml"))
    return sorted((path.stem, _meaning(path)) for path in files) if re.fullmatch(r"\w+", group) else []


def _meaning(path: Path) -> str:
    """The first comment of a file that says anything."""
    comments = (line[2:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return next((comment for comment in comments if not comment.startswith("@package")), "")


def _keys(group: str, chosen: dict[str, str], folders: list[Path]) -> Iterator[_Offer]:
    path = next(
        (found for folder in folders if (found := folder / group / f"{chosen.get(group)}.yaml").is_file()), None
    )
    plain = _with_bases(path) if path else {}
    return _flat({group: {key: value for key, value in plain.items() if key not in ("name", "_target_")}})


def _with_bases(path: Path) -> dict[str, Any]:
    """A choice's keys, those of the choices of its own group that it builds on included."""
    own = _read(path)
    bases = [path.with_name(f"{base}.yaml") for base in own.pop("defaults", ()) if isinstance(base, str)]
    inherited = [_with_bases(base) for base in bases if base.is_file()]
    return {key: value for plain in (*inherited, own) for key, value in plain.items()}


def _flat(plain: dict[str, Any], prefix: str = "") -> Iterator[_Offer]:
    """Dotted keys with their values as an override would write them."""
    for key, value in plain.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key}.")
        elif key != "defaults" and not isinstance(value, list):
            written = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
            yield f"{prefix}{key}", "" if re.search(r"[\s?{}]", written) else written


def _read(path: Path) -> dict[str, Any]:
    plain = yaml.safe_load(path.read_text(encoding="utf-8"))
    return plain if isinstance(plain, dict) else {}
