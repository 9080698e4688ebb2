"""Generated ALFWorld games in the cache: what is refused, and writing all or nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest
from written_games import read

from skillarena.conf.errors import ConfigError, DataError
from skillarena.envs import alfworld_generator
from skillarena.envs.alfworld_generator import ensure_generated, generate
from skillarena.envs.alfworld_generator_goals import SPLITS, TASK_TYPES


def python(code: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, **variables}, text=True, stderr=subprocess.PIPE
    )


def finish(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


# Refusals.


def test_a_misspelt_split_is_named_with_its_neighbour(tmp_path: Path) -> None:
    for ask in (
        lambda: generate(tmp_path, "generated_sen", games_per_type=1, seed=0),
        lambda: ensure_generated("generated_sen", tmp_path),
    ):
        with pytest.raises(ConfigError, match="did you mean 'generated_seen'"):
            ask()
    assert not list(tmp_path.iterdir())


def test_no_games_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="games_per_type is 0"):
        generate(tmp_path, "generated_seen", games_per_type=0, seed=0)


def test_missing_alfworld_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(DataError, match=r"skillarena\[alfworld\]"):
        ensure_generated("generated_seen", tmp_path)


def test_a_cache_folder_that_cannot_be_made_is_a_data_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="can be written"):
        ensure_generated("generated_seen", tmp_path / "file")


# The cache.

ENSURE = (
    "import pathlib; from skillarena.envs import alfworld_generator as generator; generator.GAMES_PER_TYPE = 1; "
    "generator.ensure_generated('generated_seen', pathlib.Path({cache!r}))"
)


def cached(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/json_2.1.1/generated_seen/*/*/game.tw-pddl"))


@pytest.mark.slow
def test_processes_at_once_share_one_generation(tmp_path: Path) -> None:
    code = ENSURE.format(cache=str(tmp_path))
    both = [python(code), python(code)]
    for process in both:
        finish(process)
    assert len(cached(tmp_path)) == len(TASK_TYPES)
    assert not list(tmp_path.glob("*/.*.partial"))


@pytest.mark.slow
def test_a_killed_generation_leaves_no_games_and_the_next_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = python(ENSURE.format(cache=str(tmp_path)).replace("PER_TYPE = 1", "PER_TYPE = 50"))
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*/.*.partial/**/game.tw-pddl")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    assert cached(tmp_path) == []

    monkeypatch.setattr(alfworld_generator, "GAMES_PER_TYPE", 1)
    root = ensure_generated("generated_seen", tmp_path)
    assert [read(path) for path in cached(tmp_path)] and len(cached(tmp_path)) == len(TASK_TYPES)
    assert not list(root.glob(".*.partial"))


def test_present_games_are_given_back_without_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def quick(root: Path, split: str, *, games_per_type: int, seed: int) -> list[Path]:
        made.append(split)
        (root / "json_2.1.1" / split).mkdir(parents=True)
        return []

    monkeypatch.setattr(alfworld_generator, "generate", quick)
    roots = {ensure_generated(split, tmp_path) for split in (*SPLITS, *SPLITS)}
    assert made == list(SPLITS)
    (root,) = roots
    assert sorted(path.name for path in (root / "json_2.1.1").iterdir()) == sorted(SPLITS)


def test_waiting_for_another_process_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from filelock import FileLock

    monkeypatch.setattr(alfworld_generator, "LOCK_TIMEOUT_S", 0.1)
    monkeypatch.setattr(alfworld_generator, "generate", lambda *_, **__: pytest.fail("generated without the lock"))
    monkeypatch.setattr(alfworld_generator, "alfworld_version", lambda: "9")
    root = tmp_path / f"alfworld_generated-{alfworld_generator.GENERATOR_VERSION}-alfworld-9"
    root.mkdir()
    with FileLock(root / ".generated_seen.lock"), pytest.raises(DataError, match="Another process"):
        ensure_generated("generated_seen", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["cut off", "changed", "missing", "unsealed"])
def test_damaged_games_are_made_again(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    root = ensure_generated("generated_seen", tmp_path)
    before = {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()}
    victim = sorted(root.rglob("game.tw-pddl"))[3]
    if damage == "missing":
        victim.unlink()
    elif damage == "unsealed":
        (root / ".generated_seen.sha256").unlink()
    else:
        content = victim.read_bytes()
        victim.write_bytes(content[:100] if damage == "cut off" else content.replace(b"solvable", b"solvablf"))
    assert ensure_generated("generated_seen", tmp_path) == root
    assert {path: path.read_bytes() for path in root.rglob("*.*") if path.is_file()} == before
    assert "made again" in caplog.text
