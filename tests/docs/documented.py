"""Commands of the documentation: where they stand, what is said to come out, what keeps a test from running them.

A command is a line of a fenced block marked ``bash``, ``sh`` or ``console``, or of an indented block in which a line
begins with a program's name. In a ``console`` block commands begin with ``$`` and the lines below are what they print;
``…`` stands for any number of lines or, inside a line, for any text. A comment tells readers and tests alike when a
command needs what not every machine has.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
)

NEEDS = re.compile(
    r"needs (?:a GPU|GPUs|a key|the hub|a cluster|AWS|Kubernetes|SLURM|a server|the official games|your files|vLLM)"
    r"|takes (?:minutes|half an hour|hours|days)|downloads|serves until Ctrl-C"
)
"""The words that keep a command from being run by the tests."""
TRIED_WITH = re.compile(r"tried with ((?:\S+=\S+ ?)+)")
"""What a test adds to a command that would take long, said beside it."""
PLACEHOLDER = re.compile(r"…|\b[A-Z]{3,}(?:_[A-Z]+)*\b(?!=)")
"""A word that readers replace by their own."""

_PROGRAMS = (
    "skillarena",
    "make",
    "python",
    "pip",
    ".venv/bin",
    "mlflow",
    "ray",
    "kubectl",
    "sbatch",
    "git",
    ".",
    "export",
)
_FENCED = re.compile(r"^([ ]*)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^(?: {4,}.*)?\n)*^ {4,}\S.*\n(?:(?: {4,}.*)?\n)*", re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """One command of a page."""

    page: Path
    line: int
    text: str
    """Without prompt and comment; continued lines are one."""
    comment: str
    """What is said about it: at its line's end, right above it, and above it of "all of it"."""
    output: list[str] = field(default_factory=list)
    """Lines that are shown below it."""

    @property
    def words(self) -> list[str]:
        """Words as a shell divides them, without variables set for the command."""
        words = shlex.split(self.text, comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words = words[1:]
        return words

    @property
    def kept_from(self) -> str:
        """Why a test does not run it; empty when it does."""
        said = NEEDS.search(self.comment)
        placeholder = PLACEHOLDER.search(self.text)
        return said[0] if said else f"{placeholder[0]} stands for a reader's own" if placeholder else ""

    @property
    def runnable(self) -> str:
        """The text to run: with what the page says is added to try it."""
        added = TRIED_WITH.search(self.comment)
        return f"{self.text} {added[1]}" if added else self.text


def commands(page: Path) -> list[Command]:
    """All commands of a page, in order."""
    return [command for line, language, text in _blocks(page) for command in _of_block(page, line, language, text)]


def files(page: Path) -> dict[str, str]:
    """Files that a page tells to write: fenced blocks whose first line is a comment with a path."""
    texts = (match[3] for match in _FENCED.finditer(page.read_text(encoding="utf-8")) if match[2] in ("python", "yaml"))
    named = ((re.match(r"# ([\w/]+\.(?:py|yaml))\n", text), text) for text in texts)
    return {name[1]: text for name, text in named if name}


def _blocks(page: Path) -> Iterator[tuple[int, str, str]]:
    """First line, language and text of each block that may hold commands."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _FENCED.finditer(text):
        if match[2] in ("bash", "console", "sh"):
            inner = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
            found.append((text.count("\n", 0, match.start()) + 2, match[2], inner))
    without = _FENCED.sub(lambda match: "-\n" * match[0].count("\n") + "-", text)
    for match in _INDENTED.finditer(without):
        lines = [line[4:] for line in match[0].splitlines()]
        if any(line.startswith(tuple(f"{program} " for program in _PROGRAMS)) for line in lines):
            found.append((without.count("\n", 0, match.start()) + 1, "bash", "\n".join(lines) + "\n"))
    return iter(sorted(found))


def _of_block(page: Path, first: int, language: str, text: str) -> Iterator[Command]:
    of_all, above, lines = "", "", text.replace("\\\n", "\\\0").splitlines()
    number = first
    found: list[Command] = []
    heredoc = ""
    for raw in lines:
        line, here = raw.replace("\\\0", " "), number
        number += 1 + raw.count("\\\0")
        if heredoc:
            heredoc = "" if line.strip() == heredoc else heredoc
            continue
        if language == "console" and not line.startswith("$ "):
            if found:
                found[-1].output.append(line.rstrip())
            continue
        line = line.removeprefix("$ ").strip()
        if line.startswith("# all of it "):
            of_all = line
        elif line.startswith("#"):
            above += f" {line}"
        elif line:
            text_of, comment = _split_comment(line)
            found.append(Command(page, here, text_of, f"{of_all} {above} {comment}".strip()))
            above = ""
            if begins := re.search(r"<<-?'?(\w+)'?", text_of):
                heredoc = begins[1]
    yield from found


def _split_comment(line: str) -> tuple[str, str]:
    """A command and the comment behind it; a sign inside quotes is no comment."""
    for match in re.finditer(r"\s#", line):
        before = line[: match.start()]
        if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
            return before.strip(), line[match.end() :].strip()
    return line.strip(), ""
