"""Every command of README, docs and examples works: it is run as it stands, or says beside it what it needs.

Commands of a page run in order in one empty folder, those of an example in a copy of its folder; what a page shows as
their output must come out. What is not run is checked as far as this machine can: as a make target, a configuration, a
command with its options, or a script.
"""

from __future__ import annotations

import difflib
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest
from documented import PAGES, ROOT, Command, commands, files

ALL = [command for page in PAGES if page.exists() for command in commands(page)]
SET_UP = re.compile(r"\.venv/bin/activate|cd \S+|git clone .*|pip install .*|export \w+=.*|read -rs .*")
"""Lines that prepare a shell or a machine; the tests' own is prepared already."""
SECONDS = re.compile(r"\d+:\d\d:\d\d|\d+\.\d+ s\b|[0-9a-f]{12}\b|/tmp/\S+")
"""What differs from run to run: durations, digests of cells, scratch folders."""


def identity(command: Command) -> str:
    return f"{command.page.relative_to(ROOT)}:{command.line}: {command.text[:60]}"


def run_by_the_test(command: Command) -> bool:
    """Make targets and measurements take long by nature; tests below look whether they exist."""
    made = command.words[:1] == ["make"] or bool(SET_UP.search(command.text))
    measures = command.words[0] == "python" and command.words[1].startswith("benchmarks/")
    return not (command.kept_from or made or measures)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all pages, so that the library is embedded once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def shell(cache: Path, tmp_path: Path) -> Iterator[dict[str, str]]:
    binaries = str(Path(sys.executable).parent)
    yield {
        **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "SKILLARENA_CACHE": str(cache),
        "COLUMNS": "200",
        "MPLBACKEND": "agg",
    }


def pages_with(chosen: list[Command]) -> list[Path]:
    return sorted({command.page for command in chosen})


def said_elsewhere(command: Command, others: list[Command]) -> bool:
    """Whether another page has the same command, which needs no earlier one, and shows its output or comes first."""
    if command.words[1:2] not in (["plan"], ["select"]) or command.output:
        return False
    same = [other for other in others if other.text == command.text]
    return any(other.output for other in same) or same[0] is not command


RUNNABLE = [command for command in ALL if run_by_the_test(command)]
RUN = [command for command in RUNNABLE if not said_elsewhere(command, RUNNABLE)]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", pages_with(RUN), ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_run_and_print_what_it_shows(page: Path, shell: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    if page.parent.parent == ROOT / "examples":
        shutil.copytree(page.parent, folder, ignore=shutil.ignore_patterns("__pycache__", "outputs"))
    for name, text in files(page).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    folder.mkdir(exist_ok=True)
    readers_own_skills(folder)
    for command in (command for command in RUN if command.page == page):
        done = subprocess.run(
            ["bash", "-c", command.runnable],
            cwd=folder,
            env=shell,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        printed = done.stdout + done.stderr
        assert done.returncode == 0, f"{identity(command)}\n{printed}"
        missing = not_printed(command.output, printed)
        assert not missing, f"{identity(command)}\nnot printed: {missing}\nbut:\n{printed}"


def readers_own_skills(folder: Path) -> None:
    """The collections that pages about libraries speak of: bundled skills in a zip file, and a small pool."""
    bundled = ROOT / "selectors" / "bundled"
    shutil.make_archive(str(folder / "collection"), "zip", bundled / "alfworld")
    verbs = ("sit", "run", "count", "sort", "wait", "read", "draw", "weigh", "knock", "whistle")
    lines = [{"skill_id": verb, "name": verb, "description": f"How to {verb}.", "body": "Try it."} for verb in verbs]
    with lzma.open(folder / "more.jsonl.xz", "wt", encoding="utf-8") as pool:
        pool.writelines(f"{json.dumps(line)}\n" for line in lines)


def not_printed(shown: list[str], printed: str) -> str:
    """The first shown line that does not come, in order, among the printed ones; blanks and durations do not count."""
    lines = iter([plain(line) for line in printed.splitlines()])
    for line in shown:
        pattern = ".*".join(re.escape(part.strip()) for part in plain(line).split("…"))
        if pattern.strip(".*") and not any(re.fullmatch(pattern, other) for other in lines):
            close = difflib.get_close_matches(plain(line), [plain(other) for other in printed.splitlines()], 1, 0.3)
            return f"{line!r}; nearest: {close}"
    return ""


def plain(line: str) -> str:
    return SECONDS.sub("#", " ".join(line.split()))


@pytest.mark.parametrize("command", [c for c in ALL if c.words[:1] == ["make"]], ids=identity)
def test_a_make_target_of_a_page_exists(command: Command) -> None:
    targets = re.findall(r"^([\w-]+(?: [\w-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    known = {target for line in targets for target in line.split()}
    assert {word for word in command.words[1:] if "=" not in word} <= known


CONFIGURED = [c for c in ALL if c.kept_from and c.words[:2] in (["skillarena", "run"], ["skillarena", "plan"])]


@pytest.mark.parametrize("command", CONFIGURED, ids=identity)
def test_a_run_that_needs_more_than_this_machine_is_a_valid_configuration(command: Command) -> None:
    from skillarena.orchestration.hydra_run import compose

    overrides = [word for word in command.words[2:] if not word.startswith("-") and "…" not in word]
    compose([word if "[" in word else word.split(",")[0] for word in overrides])  # of a sweep, the first cell


OTHERS = [c for c in ALL if c.kept_from and c.words[:1] == ["skillarena"] and c.words[1:2] not in (["run"], ["plan"])]


@pytest.mark.parametrize("command", OTHERS, ids=identity)
def test_the_options_of_a_command_that_is_not_run_exist(command: Command) -> None:
    named = list(takewhile(re.compile("[a-z][a-z-]*").fullmatch, command.words[1:]))
    done = subprocess.run(
        [Path(sys.executable).with_name("skillarena"), *named, "--help"],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    options = {word.split("=")[0] for word in command.words[2:] if word.startswith("--")}
    assert options <= set(re.findall(r"--[\w-]+", done.stdout))


@pytest.mark.parametrize("command", [c for c in ALL if c.words[:1] == ["python"]], ids=identity)
def test_a_script_that_a_page_names_is_there(command: Command) -> None:
    script = command.words[1]
    assert script.startswith("-") or (ROOT / script).is_file()


def test_a_shown_line_that_is_not_printed_is_noticed() -> None:
    printed = "Means over episodes\n\n vector  4/4  100.0  \ntook 0:01:12\n"
    assert not not_printed(["Means over episodes", "…", "vector  4/4 100.0", "took 0:00:59"], printed)
    assert not not_printed(["vector … 100.0"], printed)
    assert not_printed(["vector  4/4  75.0"], printed)
    assert not_printed(["vector  4/4 100.0", "Means over episodes"], printed)


def test_a_command_says_what_keeps_a_test_from_running_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Text.\n\n```bash\n# needs a key\nskillarena run a=b\nskillarena run c=d\n```\n\n"
        "    skillarena report outputs  # all of it\n    make x\n\n"
        "```console\n$ skillarena run \\\n  'x=[1]'  # tried with benchmark.limit=1\nout\n…\n```\n\n    no command\n"
    )
    found = commands(page)
    assert [command.text for command in found] == [
        "skillarena run a=b",
        "skillarena run c=d",
        "skillarena report outputs",
        "make x",
        "skillarena run    'x=[1]'",
    ]
    assert [command.kept_from for command in found] == ["needs a key", "", "", "", ""]
    assert found[4].runnable.endswith(" benchmark.limit=1")
    assert found[4].output == ["out", "…"]
    assert found[2].line == 9
