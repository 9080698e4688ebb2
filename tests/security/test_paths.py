"""Names out of data lead to no place outside the folder they belong in."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest
from command import rows_of, run_command
from report_cells import make_cell

from skillarena.conf.errors import SkillArenaError
from skillarena.orchestration.cells import folder_name
from skillarena.orchestration.ledger import read_config
from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.episode import find_episode
from skillarena.orchestration.report.mlflow_archive import _folder_name
from skillarena.orchestration.report.report import build_report
from skillarena.orchestration.report.report_files import write_report
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.selectors.cache import DiskCache, digest
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.retrieval.dataset import find_pool, read_queries

ESCAPES = [
    "../../outside",
    "/outside",
    "..",
    "a/../../outside",
    "..\\outside",
    "nul\0byte",
    "x" * 900,
    "~/outside",
    "$HOME/outside",
    "file:///outside",
    "con|pipe;$(touch outside)",
    "\u202e../outside",
    "-rf",
    ".",
    "",
]
SKILL = "---\nname: fine\ndescription: fine\n---\nBody.\n"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """A folder to work in; all around it is seen to stay empty."""
    inner = tmp_path / "outer" / "room"
    inner.mkdir(parents=True)
    return inner


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def nothing_outside(room: Path) -> None:
    assert {path for path in files(room.parents[1]) if not path.is_relative_to(room)} == set()


@pytest.mark.parametrize("name", ESCAPES)
def test_names_of_skills_make_no_files(room: Path, name: str) -> None:
    line = orjson.dumps({"skill_id": name or "id", "name": name, "description": name, "body": name or "body"})
    (room / "pool.jsonl").write_bytes(line)
    (skill,) = SkillLibrary.load([room / "pool.jsonl"]).skills
    cache = DiskCache(room / "cache.sqlite")
    cache.put_many({digest(skill.id): b"vector"})
    IndexStore(room / "index").get_or_make("graph", skill.id, skill.name, make=lambda: b"content")
    for path in files(room):
        assert re.fullmatch(r"pool\.jsonl|cache\.sqlite[a-z.-]*|graph-[0-9a-f]{32}.*|[.\w-]*\.lock", path.name), path
    nothing_outside(room)


@pytest.mark.parametrize("kind", ["file", "folder", "folder in a folder"])
def test_a_link_out_of_a_library_is_refused_and_named(room: Path, kind: str) -> None:
    (room / "good").mkdir()
    (room / "good" / "SKILL.md").write_text(SKILL)
    secret = room.parent / "private"
    secret.mkdir()
    (secret / "SKILL.md").write_text("the private words")
    link = {"file": room / "bad" / "SKILL.md", "folder": room / "bad", "folder in a folder": room / "good" / "bad"}[
        kind
    ]
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(secret / "SKILL.md" if kind == "file" else secret)
    library = SkillLibrary.load([room])
    assert [skill.id for skill in library.skills] == ["good"]
    (refused,) = library.rejections
    assert refused.source == str(link) and "library.paths" in refused.reason
    assert len(SkillLibrary.load([room, secret]).skills) == 2, "named, it may be read"


def test_a_download_of_the_hub_may_be_made_of_links(room: Path) -> None:
    blob = room / "models--org--skills" / "blobs" / "abc"
    skill = room / "models--org--skills" / "snapshots" / "rev" / "one" / "SKILL.md"
    for path in (blob, skill):
        path.parent.mkdir(parents=True)
    blob.write_text(SKILL)
    skill.symlink_to(blob)
    assert [one.id for one in SkillLibrary.load([skill.parents[1]]).skills] == ["one"]


@pytest.mark.parametrize("name", ESCAPES)
def test_names_of_cells_stay_in_the_output_folder(room: Path, name: str) -> None:
    cell = room / f"{folder_name(name)}-0123456789ab"
    cell.mkdir()
    assert cell.parent == room and cell.resolve().parent == room
    nothing_outside(room)


@pytest.mark.slow
def test_a_run_with_a_hostile_name_stays_in_its_folder(room: Path) -> None:
    name = "../" * 8 + "outside" + "x" * 3000
    words = [f"selector.name='{name}'", "selector=random", "benchmark.limit=1", "cluster.rollout_workers=1"]
    done = run_command("run", *words, cache=room / "cache", cwd=room)
    assert done.returncode == 0, done.stderr
    (cell,) = (room / "outputs" / "cells").iterdir()
    assert rows_of(cell)
    nothing_outside(room)


@pytest.mark.parametrize("name", ESCAPES)
def test_names_of_served_models_stay_in_the_folder_of_the_logs(room: Path, name: str) -> None:
    log = room / f"{ServerSpec(model=name, served_name=name).name}-0-1.log"
    assert log.parent == room and len(log.name) < 100
    log.touch()
    nothing_outside(room)


@pytest.mark.parametrize("wanted", [name for name in ESCAPES if name != ".."])
def test_what_show_is_asked_for_is_found_or_refused(room: Path, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room)
    make_cell(room / "outputs", rewards=(100.0,))
    before = files(room)
    for word in (wanted, f"outputs:{wanted}", f"{wanted}:1"):
        with pytest.raises(SkillArenaError):
            find_episode(word, [room / "outputs"])
    assert files(room) == before
    nothing_outside(room)


@pytest.mark.parametrize("name", ESCAPES)
def test_reports_of_hostile_ledgers_have_fixed_file_names(room: Path, name: str) -> None:
    words = name.replace("\0", "") or "x"
    folder = make_cell(room / "outputs", rewards=(100.0, 0.0), options={"selector.name": "plain"})
    config = folder / "config.json"
    plain = read_config(folder)
    plain["cell"]["name"] = words
    for axis in ("selector", "backbone", "split"):
        plain["cell"]["axes"][axis] = words
    for task in plain["tasks"]:
        task["name"] = task["task_type"] = words
    config.write_bytes(orjson.dumps(plain))
    archive = load([room / "outputs"])
    written = write_report(build_report(archive), archive, room / "report")
    for path in written:
        assert path.resolve().is_relative_to(room / "report") and re.fullmatch(r"[a-z0-9_]+\.[a-z]+", path.name)
    nothing_outside(room)


@pytest.mark.parametrize("name", ESCAPES)
def test_what_a_store_says_leads_to_no_other_place(room: Path, name: str) -> None:
    config = make_cell(room / "outputs", rewards=(100.0,)) / "config.json"
    plain = orjson.loads(config.read_bytes())
    plain["cell"]["name"] = name
    config.write_bytes(orjson.dumps(plain))
    made = _folder_name(config.parent)
    assert made == folder_name(name) and "/" not in made
    nothing_outside(room)


@pytest.mark.parametrize("name", ESCAPES)
def test_data_sets_open_no_files_but_their_own(room: Path, name: str) -> None:
    data = room / "data"
    data.mkdir()
    words = name or "x"
    (data / "tasks.jsonl").write_bytes(orjson.dumps({"task_id": words, "instruction_text": words}))
    (data / "relevance.json").write_bytes(orjson.dumps({words: {"gt_skill_ids": [words]}}))
    (query,) = read_queries(data)
    assert query.id == words
    with pytest.raises(SkillArenaError):
        find_pool(data, words)
    nothing_outside(room)
