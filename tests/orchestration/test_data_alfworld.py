"""`skillarena data alfworld`: whole splits or none, from archives, folders and a server that breaks off."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from command import command, environment, run_command
from range_server import RangeServer

from skillarena.conf.errors import DataError
from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.alfworld_generator import ensure_generated
from skillarena.envs.cache_dir import cache_root
from skillarena.orchestration.data_command.alfworld import get_alfworld
from skillarena.orchestration.data_command.alfworld_games import SPLIT_DIGESTS, bring_in, look
from skillarena.orchestration.data_command.alfworld_sources import addresses

OFFICIAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "alfworld_games.tar.xz"
SPLIT = "generated_seen"


@pytest.fixture(scope="module")
def games() -> Path:
    """A folder that holds `json_2.1.1` with the project's own 24 games."""
    pytest.importorskip("alfworld")
    return ensure_generated(SPLIT, cache_root())


def zipped(games: Path, *names: str) -> bytes:
    """What alfworld-download fetches: one archive for each kind of file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((games / "json_2.1.1" / SPLIT).rglob("*")):
            if path.name in names:
                archive.write(path, path.relative_to(games))
    return packed.getvalue()


def archives(games: Path) -> dict[str, bytes]:
    """The two archives under their official names."""
    descriptions, playable = (url.rsplit("/", 1)[-1] for url in addresses())
    return {descriptions: zipped(games, "traj_data.json"), playable: zipped(games, "game.tw-pddl")}


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_archives_become_games_that_the_benchmark_plays(
    games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "copies"
    source.mkdir()
    for name, content in archives(games).items():
        (source / name).write_bytes(content)
    assert get_alfworld([str(source)], tmp_path / "my data") == 0
    said = capsys.readouterr().out
    assert f"{SPLIT} 24 games" in said
    assert "not here (3,553 games)" in said
    assert f"export ALFWORLD_DATA='{tmp_path}/my data'" in said
    assert files(tmp_path / "my data" / "json_2.1.1" / SPLIT) == files(games / "json_2.1.1" / SPLIT)
    assert len(AlfworldBenchmark(split=SPLIT, data=str(tmp_path / "my data")).tasks()) == 24
    assert not [path for path in (tmp_path / "my data").iterdir() if path.name != "json_2.1.1"]


@pytest.mark.parametrize("entry", ["../outside/game.tw-pddl", "/etc/game.tw-pddl", "a\\..\\..\\game.tw-pddl"])
def test_an_archive_that_leads_out_of_its_folder_writes_nothing(games: Path, tmp_path: Path, entry: str) -> None:
    bad = tmp_path / "bad.zip"
    bad.write_bytes(archives(games)[addresses()[1].rsplit("/", 1)[-1]])
    with zipfile.ZipFile(bad, "a") as archive:
        archive.writestr(entry, "x")
    with pytest.raises(DataError, match="leads out of the archive"):
        get_alfworld([str(bad)], tmp_path / "data")
    assert files(tmp_path) == {"bad.zip": bad.read_bytes()}


def test_a_tar_with_a_link_in_a_games_place_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("json_2.1.1/valid_seen/task/trial/game.tw-pddl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(DataError, match="is a link"):
        get_alfworld([str(tmp_path / "bad.tar.gz")], tmp_path / "data")


@pytest.mark.parametrize("ending", [".zip", ".tar.xz"])
def test_a_truncated_archive_is_named_and_leaves_no_split(games: Path, tmp_path: Path, ending: str) -> None:
    whole = tmp_path / f"whole{ending}"
    if ending == ".zip":
        whole.write_bytes(zipped(games, "game.tw-pddl", "traj_data.json"))
    else:
        with tarfile.open(whole, "w:xz") as archive:
            archive.add(games / "json_2.1.1", "json_2.1.1")
    cut = tmp_path / f"cut{ending}"
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size * 2 // 3])
    with pytest.raises(DataError, match="no whole archive"):
        get_alfworld([str(cut)], tmp_path / "data")
    assert not (tmp_path / "data" / "json_2.1.1").exists()


def test_a_flipped_byte_is_noticed(games: Path, tmp_path: Path) -> None:
    content = bytearray(zipped(games, "game.tw-pddl", "traj_data.json"))
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "flipped.zip").write_bytes(content)
    with pytest.raises(DataError, match="no whole archive"):
        get_alfworld([str(tmp_path / "flipped.zip")], tmp_path / "data")


def test_games_without_their_descriptions_name_the_second_archive(games: Path, tmp_path: Path) -> None:
    (tmp_path / "games.zip").write_bytes(zipped(games, "game.tw-pddl"))
    with pytest.raises(DataError, match=r"no traj_data.json for 24 games[\s\S]*two archives"):
        get_alfworld([str(tmp_path / "games.zip")], tmp_path / "data")
    assert files(tmp_path / "data") == {}


def test_a_split_with_too_few_games_is_not_put_in_place(games: Path, tmp_path: Path) -> None:
    shutil.copytree(games / "json_2.1.1" / SPLIT, tmp_path / "few" / "json_2.1.1" / "valid_seen")
    with pytest.raises(DataError, match="24 playable games of 140"):
        get_alfworld([str(tmp_path / "few")], tmp_path / "data")
    assert files(tmp_path / "data") == {}


def test_an_incomplete_split_gives_way_to_the_whole_one_and_is_kept(games: Path, tmp_path: Path) -> None:
    half = tmp_path / "data" / "json_2.1.1" / SPLIT
    half.mkdir(parents=True)
    (half / "note.txt").write_text("mine")
    assert get_alfworld([str(games)], tmp_path / "data") == 0
    assert look(half).games == 24
    assert (tmp_path / "data" / "json_2.1.1.replaced" / SPLIT / "note.txt").read_text() == "mine"


def test_a_download_that_breaks_off_goes_on_where_it_stopped(games: Path, tmp_path: Path) -> None:
    served = archives(games)
    with RangeServer(served, breaks=2) as server:
        assert get_alfworld([server.url], tmp_path / "data") == 0
    assert len(server.ranges) == 4
    assert sum("bytes=" in line for line in server.ranges) == 2
    assert server.sent == sum(map(len, served.values()))  # no byte twice
    assert not (tmp_path / "data" / ".downloads").exists()


def test_a_download_of_which_the_server_has_a_new_version_begins_anew(games: Path, tmp_path: Path) -> None:
    served = archives(games)
    first = next(iter(served))
    with RangeServer({**served, first: b"an older file" * 100}, breaks=10) as server:
        with pytest.raises(DataError, match=f"{first} cannot be downloaded: "):
            get_alfworld([server.url], tmp_path / "data")
        assert (tmp_path / "data" / ".downloads" / f"{first}.part").stat().st_size > 0
        server.files, server.breaks = served, 0
        assert get_alfworld([server.url], tmp_path / "data") == 0


def test_without_a_server_one_message_says_what_to_copy(tmp_path: Path, games: Path) -> None:
    done = run_command(
        "data", "alfworld", "--from", "http://127.0.0.1:9", "--to", str(tmp_path / "data"), cache=tmp_path, cwd=tmp_path
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error:") == 1
    for url in addresses():
        assert url in done.stderr
    assert f"skillarena data alfworld --from THAT_FOLDER --to {tmp_path}/data" in done.stderr
    assert not (tmp_path / "data" / "json_2.1.1").exists()


@pytest.mark.slow
def test_an_import_killed_halfway_leaves_no_split_and_is_taken_up_again(games: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.zip"
    with zipfile.ZipFile(many, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((games / "json_2.1.1" / SPLIT).rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(games))
        for number in range(4000):  # of no use, but they take time
            archive.writestr(f"json_2.1.1/{SPLIT}/a{number}/trial/traj_data.json", os.urandom(2000))
    line = command("data", "alfworld", "--from", str(many), "--to", str(tmp_path / "data"))
    process = subprocess.Popen(line, env=environment(tmp_path), cwd=tmp_path, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "data").glob(".import-*/*/*/trial/traj_data.json"))) < 200:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "data" / "json_2.1.1").exists()
    (staging,) = (tmp_path / "data").glob(".import-*")
    kept = {path: path.stat().st_mtime_ns for path in staging.rglob("traj_data.json")}
    assert 200 <= len(kept) < 4024
    again = subprocess.run(line, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert again.returncode == 0, again.stderr
    final = tmp_path / "data" / "json_2.1.1"
    moved = {final / path.relative_to(staging): at for path, at in kept.items()}
    assert all(path.stat().st_mtime_ns == at for path, at in moved.items())  # not copied a second time
    assert not staging.exists()
    assert look(final / SPLIT).games == 24


@pytest.mark.slow
def test_the_official_games_are_told_from_others(tmp_path: Path) -> None:
    if not OFFICIAL.exists():
        pytest.skip(f"there is no {OFFICIAL}")
    found = {split.name: split for split in bring_in([OFFICIAL], tmp_path)}
    assert {name: found[name].digest for name in SPLIT_DIGESTS} == SPLIT_DIGESTS
    assert (found["valid_seen"].games, found["valid_unseen"].games) == (140, 134)
    victim = next((tmp_path / "json_2.1.1" / "valid_seen").iterdir())
    shutil.rmtree(victim)
    assert look(tmp_path / "json_2.1.1" / "valid_seen").known is False
    assert get_alfworld([str(OFFICIAL)], tmp_path) == 0
    assert look(tmp_path / "json_2.1.1" / "valid_seen").known
