"""`skillarena data skills`: a collection becomes a library folder that was read before it appeared."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from command import command, environment

sys.path.append(str(Path(__file__).parents[1] / "selectors"))  # lends its hub

from stub_hub import StubHub

from skillarena.conf.errors import ConfigError, DataError, LibraryError
from skillarena.orchestration.data_command.skills import get_skills
from skillarena.selectors.library import SkillLibrary

DOCUMENTS = {
    "repo/mail/SKILL.md": "---\nname: mail\ndescription: sorts letters\n---\n\nSort.",
    "repo/mail/LICENSE.txt": "Yours.",
    "repo/mail/run.sh": "rm -rf /",
    "repo/soup/SKILL.md": "---\nname: soup\ndescription: cooks\n---\n\nBoil.",
    "repo/pool.jsonl": json.dumps({"skill_id": "knit", "name": "knit", "description": "knits", "body": "Knit."}),
}
KEPT = {"repo/mail/SKILL.md", "repo/mail/LICENSE.txt", "repo/soup/SKILL.md", "repo/pool.jsonl"}


def collection(folder: Path) -> Path:
    for name, text in DOCUMENTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def packed(folder: Path, target: Path) -> Path:
    if target.suffix == ".zip":
        with zipfile.ZipFile(target, "w") as archive:
            for name in DOCUMENTS:
                archive.write(folder / name, name)
    else:
        with tarfile.open(target, "w:*" if target.suffix == ".tar" else f"w:{target.suffix[1:]}") as archive_tar:
            archive_tar.add(folder, ".")
    return target


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def get(source: object, to: Path, **options: str) -> int:
    return get_skills(str(source), to, **{"repo_type": "dataset", "revision": None, "as_json": False} | options)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["", ".zip", ".tar.gz", ".tar.xz"])
def test_documents_pools_and_licences_are_taken_and_nothing_else(
    tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = collection(tmp_path / "from")
    source = packed(folder, tmp_path / f"packed{ending}") if ending else folder
    assert get(source, tmp_path / "library") == 0
    assert names(tmp_path / "library") == KEPT
    said = capsys.readouterr().out
    assert "3 skills" in said
    paths = said.split("library.paths=[")[1].split("]")[0].split(",")
    assert {skill.name for skill in SkillLibrary.load(paths).skills} == {"mail", "soup", "knit"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({"from", "library", source.name})


def test_a_pool_alone_is_a_collection(tmp_path: Path) -> None:
    pool = tmp_path / "some.jsonl.gz"
    pool.write_bytes(gzip.compress(DOCUMENTS["repo/pool.jsonl"].encode()))
    assert get(pool, tmp_path / "library") == 0
    assert names(tmp_path / "library") == {"some.jsonl.gz"}


def test_documents_that_cannot_be_used_are_named_where_they_are_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = collection(tmp_path / "from")
    (folder / "repo" / "soup" / "SKILL.md").write_text("")
    assert get(folder, tmp_path / "library") == 0
    assert f"{tmp_path}/library/repo/soup/SKILL.md: no name, no description and no text" in capsys.readouterr().out


def test_what_is_no_collection_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "data.parquet").write_bytes(b"PAR1")
    for source, error in (
        (tmp_path / "empty", "holds no SKILL.md and no pool"),
        (tmp_path / "empty" / "data.parquet", "is no skill collection"),
        (tmp_path / "gone", "there is no"),
    ):
        with pytest.raises((DataError, LibraryError), match=error):
            get(source, tmp_path / "library")
    with pytest.raises(ConfigError, match="did you mean 'model'"):
        get("someone/skills", tmp_path / "library", repo_type="modle")
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def test_a_library_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    folder = collection(tmp_path / "from")
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "mine.txt").write_text("mine")
    with pytest.raises(LibraryError, match="exists already"):
        get(folder, tmp_path / "library")
    assert names(tmp_path / "library") == {"mine.txt"}


@pytest.mark.parametrize("name", ["../SKILL.md", "/tmp/SKILL.md"])
def test_an_archive_that_leads_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    source = packed(collection(tmp_path / "from"), tmp_path / "packed.zip")
    with zipfile.ZipFile(source, "a") as archive:
        archive.writestr(name, "---\nname: evil\n---\n")
    with pytest.raises(DataError, match="leads out of the archive"):
        get(source, tmp_path / "library")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["from", "packed.zip"]


@pytest.mark.slow
def test_a_collection_on_the_hub_is_fetched_without_what_is_not_read(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with StubHub("someone/skills", {name: text.encode() for name, text in DOCUMENTS.items()}) as hub:
        env = environment(tmp_path, HF_HOME=str(tmp_path / "hf"), HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="0")
        line = command("data", "skills", "someone/skills", "--to", "library", "--json")
        done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert not any("run.sh" in request for request in hub.asked if request.startswith("GET"))
        line = command("data", "skills", "someone/gone", "--to", "other")
        gone = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    assert json.loads(done.stdout)["skills"] == 3
    assert names(tmp_path / "library") == KEPT
    assert gone.returncode == 2
    assert "dataset 'someone/gone' cannot be had" in gone.stderr
    assert "Traceback" not in gone.stderr
