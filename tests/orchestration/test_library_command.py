"""`skillarena library`: one library out of many, its figures, its help."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import command, environment, run_command
from library_files import DATA, LONG, contents, pool, read_json, skill, write

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.orchestration.library_command.merge import merge
from skillarena.orchestration.library_command.stats import stats
from skillarena.selectors.library import SkillLibrary


@pytest.fixture
def sources(tmp_path: Path) -> list[str]:
    """A tree and a pool that hold seven documents: an exact duplicate, a near one, a refused one."""
    tree = write(
        tmp_path / "tree",
        mail=skill("mail", more="license: MIT\ntools: [a, b]\n"),
        soup=skill("soup", "cooks", "Boil."),
        copy=skill("mail", more="license: MIT\ntools: [a, b]\n"),
        broken="",
    )
    records = (
        ("../../mail", "mail", "does it", LONG.replace("word100 ", "another ")),
        ("x/knit:hats", "knit: hats", "- knits 'hats'", "---\nKnit."),
        ("mail", "post\\\\_it", "", "Carry."),
    )
    return [str(tree), str(pool(tmp_path / "pool.jsonl", *records))]


@pytest.mark.parametrize("target", ["tree", "pool.jsonl", "pool.jsonl.gz", "pool.jsonl.xz"])
def test_what_is_written_reads_back_as_what_was_read(sources: list[str], tmp_path: Path, target: str) -> None:
    to = tmp_path / "to" / target
    assert merge(sources, to, near=0.8, drop_near=False, as_json=False) == 0
    before, after = SkillLibrary.load(sources), SkillLibrary.load([to])
    assert contents(after) == sorted(set(contents(before)))
    assert not after.rejections
    assert [path.name for path in to.parent.iterdir()] == [target]
    if target == "tree":
        assert {skill.fields for skill in after.skills} == {skill.fields for skill in before.skills}
        assert not (tmp_path / "mail").exists()
    else:
        assert {skill.id for skill in after.skills} <= {skill.id for skill in before.skills}


def test_duplicates_and_refusals_are_reported(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merge(sources, tmp_path / "to", near=0.8, drop_near=False, as_json=True)
    said = read_json(capsys)
    assert said["skills"] == 5
    assert [entry["id"] for entry in said["exact_duplicates"]] == ["mail"]
    assert [entry["source"] for entry in said["rejected"]] == [f"{sources[0]}/broken/SKILL.md"]
    (near,) = said["near_duplicates"]
    assert 0.9 < near["similarity"] < 1
    merge(sources, tmp_path / "without", near=0.8, drop_near=True, as_json=True)
    assert read_json(capsys)["skills"] == 4 == len(SkillLibrary.load([tmp_path / "without"]))


def test_nothing_is_overwritten_and_failures_leave_nothing(sources: list[str], tmp_path: Path) -> None:
    before = set(tmp_path.rglob("*"))
    with pytest.raises(LibraryError, match="exists already"):
        merge(sources, tmp_path / "tree", near=0.8, drop_near=False, as_json=False)
    with pytest.raises(ConfigError):
        merge(sources, tmp_path / "to", near=0.1, drop_near=False, as_json=False)
    with pytest.raises(LibraryError, match="no skill file or folder"):
        merge([*sources, str(tmp_path / "gone")], tmp_path / "to", near=0.8, drop_near=False, as_json=False)
    assert set(tmp_path.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize("target", ["tree", "pool.jsonl"])
def test_an_import_that_is_killed_leaves_no_library_and_can_be_repeated(tmp_path: Path, target: str) -> None:
    many = [(f"skill {number}", f"name {number}", "does it", f"{number} " * 300) for number in range(4000)]
    source = pool(tmp_path / "many.jsonl", *many)
    line = command("library", "import", str(source), "--to", str(tmp_path / target))
    process = subprocess.Popen(line, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 100
    part = tmp_path / f".{target}.part" / target
    while not ((part.is_file() and part.stat().st_size > 0) or (part.is_dir() and len(list(part.iterdir())) > 20)):
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / target).exists()
    again = run_command(*line[3:], cache=tmp_path, cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert len(SkillLibrary.load([tmp_path / target])) == 4000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["many.jsonl", target])


def test_figures_of_a_library(sources: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert stats(sources, None, near=0.8, as_json=True) == 0
    said = read_json(capsys)
    expected = {
        "documents": 7,
        "skills": 6,
        "unique": 4,
        "exact_duplicates": 1,
        "near_duplicates": 1,
        "rejected": 1,
        "rejected_by_reason": {"no name, no description and no text": 1},
        "without_description": 1,
        "names": 4,
        "shared_names": {"mail": 3},
    }
    assert {key: said[key] for key in expected} == expected
    texts = sorted(len(skill.text) for skill in SkillLibrary.load(sources).skills)
    lengths = said["lengths"]["characters"]
    assert (lengths["min"], lengths["median"], lengths["max"]) == (texts[0], texts[2], texts[-1])
    assert stats([f"library.paths=[{','.join(sources)}]", "library=paths"], None, near=0.8, as_json=True) == 0
    assert read_json(capsys) == said
    with pytest.raises(ConfigError, match="some arguments are paths"):
        stats([sources[0], "library=bundled"], None, near=0.8, as_json=True)


def test_help_comes_at_once_and_lists_the_commands(tmp_path: Path) -> None:
    code = (
        "import sys, skillarena.orchestration.cli; print(sorted({'numpy','torch','ray','pydantic'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"
    for group, commands in {"data": "alfworld models skills", "library": "import index parse stats lint"}.items():
        done = run_command(group, "--help", cache=tmp_path, cwd=tmp_path)
        assert all(name in done.stdout for name in commands.split())


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_pool_is_counted_and_imported_in_minutes(tmp_path: Path) -> None:
    if not (DATA / "skills_pool.jsonl.xz").exists():
        pytest.skip(f"there is no {DATA / 'skills_pool.jsonl.xz'}")
    paths = [str(DATA / "skills_pool.jsonl.xz"), str(DATA / "skills")]
    began = time.process_time()
    assert merge(paths, tmp_path / "all.jsonl", near=0.8, drop_near=False, as_json=True) == 0
    assert time.process_time() - began < 240
    assert len(SkillLibrary.load([tmp_path / "all.jsonl"])) > 67_000
