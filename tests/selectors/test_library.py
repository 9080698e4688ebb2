"""Building a library from trees, files and pools, and what happens to documents that do not fit."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import pickle
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from skillarena.conf.errors import LibraryError
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import Rejection, SkillLibrary

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared reference data is not beside this checkout")


def put(folder: Path, name: str = "n", description: str = "d", body: str = "B", *, file: str = "SKILL.md") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text(f"---\nname: {name}\ndescription: {description}\n---\n{body}\n", encoding="utf-8")
    return path


def pool(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def ids(library: SkillLibrary) -> list[str]:
    return [skill.id for skill in library.skills]


def test_a_tree_is_searched_at_any_depth_and_ids_are_folders(tmp_path: Path) -> None:
    put(tmp_path / "b" / "deep" / "er", "one")
    put(tmp_path / "a", "two")
    put(tmp_path / "c", file="skill.md", name="three")
    put(tmp_path / "a", "notes", file="README.md")
    library = SkillLibrary.load([tmp_path])
    assert ids(library) == ["a", "b/deep/er", "c"]
    assert len(library) == 3
    assert library.by_id["a"] == Skill("a", "two", "d", "B", str(tmp_path / "a" / "SKILL.md"))
    assert library.rejections == ()


def test_a_skill_file_at_the_top_has_its_folders_name(tmp_path: Path) -> None:
    path = put(tmp_path / "washing")
    assert ids(SkillLibrary.load([tmp_path / "washing"])) == ["washing"]
    assert ids(SkillLibrary.load([path])) == ["washing"]
    assert ids(SkillLibrary.load([put(tmp_path, file="drying.md")])) == ["drying"]


def test_the_fingerprint_depends_on_ids_and_texts_only(tmp_path: Path) -> None:
    for name in ("z", "a", "m"):
        put(tmp_path / "first" / name, name)
    for name in ("m", "z", "a"):
        put(tmp_path / "second" / name, name)
    first, second = (SkillLibrary.load([tmp_path / name]) for name in ("first", "second"))
    assert first.fingerprint == second.fingerprint
    assert len(bytes.fromhex(first.fingerprint)) == 32
    put(tmp_path / "second" / "m", "m", body="Another text")
    assert SkillLibrary.load([tmp_path / "second"]).fingerprint != first.fingerprint
    (tmp_path / "second" / "m").rename(tmp_path / "second" / "n")
    put(tmp_path / "second" / "n", "m")
    assert SkillLibrary.load([tmp_path / "second"]).fingerprint != first.fingerprint


def test_a_library_survives_pickling(tmp_path: Path) -> None:
    put(tmp_path / "a")
    library = SkillLibrary.load([tmp_path])
    copy = pickle.loads(pickle.dumps(library))
    assert (copy.skills, copy.fingerprint) == (library.skills, library.fingerprint)


def test_limit_keeps_the_first_ids(tmp_path: Path) -> None:
    for name in "cadb":
        put(tmp_path / name)
    assert ids(SkillLibrary.load([tmp_path], limit=2)) == ["a", "b"]
    assert ids(SkillLibrary.load([tmp_path], limit=99)) == ["a", "b", "c", "d"]
    with pytest.raises(LibraryError, match="limit is 0"):
        SkillLibrary.load([tmp_path], limit=0)


def test_names_may_repeat_but_ids_may_not(tmp_path: Path) -> None:
    put(tmp_path / "one" / "x", "same", body="First")
    put(tmp_path / "two" / "x", "same", body="Second")
    put(tmp_path / "three" / "x", "same", body="First")
    library = SkillLibrary.load([tmp_path / "one", tmp_path / "two", tmp_path / "three"])
    first, second = library.skills
    assert (first.id, first.body, second.body) == ("x", "First", "Second")
    assert second.id.startswith("x~")
    assert len(second.id) == len("x~") + 8
    assert library.rejections == (
        Rejection(str(tmp_path / "three/x/SKILL.md"), f"repeats {tmp_path / 'one/x/SKILL.md'}", repeat=True),
    )
    with pytest.raises(LibraryError, match="two skills have the id 'x'"):
        SkillLibrary((first, first))


def test_each_refused_document_is_listed_once_and_the_others_stay(tmp_path: Path) -> None:
    put(tmp_path / "good")
    (put(tmp_path / "empty")).write_text("---\n---\n")
    (put(tmp_path / "large")).write_bytes(b"x" * 5_000_001)
    (tmp_path / "folder" / "SKILL.md").mkdir(parents=True)
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "SKILL.md")
    library = SkillLibrary.load([tmp_path])
    assert ids(library) == ["good"]
    assert {Path(r.source).parent.name: r.reason for r in library.rejections} == {
        "empty": "no name, no description and no text",
        "large": "larger than 5,000,000 bytes",
        "folder": "not a file",
        "dangling": "not a file",
        "pipe": "not a file",
    }
    assert len(library.rejections) == 5


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
def test_what_may_not_be_read_is_listed(tmp_path: Path) -> None:
    put(tmp_path / "good")
    put(tmp_path / "file").chmod(0)
    put(tmp_path / "locked" / "inner").parent.parent.chmod(0)
    try:
        library = SkillLibrary.load([tmp_path])
    finally:
        (tmp_path / "locked").chmod(0o700)
    assert {r.source: r.reason for r in library.rejections} == {
        str(tmp_path / "file" / "SKILL.md"): "Permission denied",
        str(tmp_path / "locked"): "Permission denied",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file that exists and refuses to be read")
def test_a_file_that_fails_while_being_read_is_listed(tmp_path: Path) -> None:
    put(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").symlink_to("/proc/self/mem")
    (rejection,) = SkillLibrary.load([tmp_path / "good", tmp_path / "bad" / "SKILL.md"]).rejections
    assert rejection == Rejection(str(tmp_path / "bad" / "SKILL.md"), "Input/output error")


def test_links_are_followed_and_loops_end(tmp_path: Path) -> None:
    put(tmp_path / "tree" / ".store" / "real", "r")
    put(tmp_path / "tree" / "own", "o")
    (tmp_path / "tree" / "own" / "loop").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / ".again").symlink_to(tmp_path / "tree" / ".store")
    library = SkillLibrary.load([tmp_path / "tree"])
    assert ids(library) == [".again/real", "own"]


def test_folder_names_that_are_not_utf8_give_ids_that_are(tmp_path: Path) -> None:
    try:
        put(Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")))
    except OSError:
        pytest.skip("this file system allows UTF-8 names only")
    library = SkillLibrary.load([tmp_path])
    assert ids(library) == ["caf\ufffd"]
    assert library.fingerprint


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.xz"])
def test_pools_are_read_line_by_line(tmp_path: Path, ending: str) -> None:
    plain = pool(
        tmp_path / "pool.jsonl",
        {"skill_id": "b/x", "name": "n", "description": "Two\nlines", "body": "B\r\nC", "source": "somewhere"},
        {"skill_id": "a/y", "name": None, "description": None, "body": "# Title\ntext"},
        {"skill_id": "a/z", "body": "text"},
    )
    path = tmp_path / f"copy{ending}"
    packers: dict[str, Callable[[bytes], bytes]] = {
        ".jsonl": bytes,
        ".jsonl.gz": gzip.compress,
        ".jsonl.xz": lzma.compress,
    }
    path.write_bytes(packers[ending](plain.read_bytes()))
    assert SkillLibrary.load([path]).skills == (
        Skill("a/y", "Title", "", "# Title\ntext", f"{path}:2"),
        Skill("a/z", "z", "", "text", f"{path}:3"),
        Skill("b/x", "n", "Two lines", "B\nC", f"{path}:1"),
    )


def test_broken_lines_of_a_pool_are_listed_with_their_number(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    good = json.dumps({"skill_id": "a", "body": "B"}).encode()
    lines = [
        b"\xef\xbb\xbf" + good,
        b"{not json",
        b"[1]",
        b"",
        json.dumps({"name": "n"}).encode(),
        json.dumps({"skill_id": 7, "body": "B"}).encode(),
        json.dumps({"skill_id": "c", "body": ["B"]}).encode(),
        json.dumps({"skill_id": "d"}).encode(),
        b'{"skill_id": "e", "body": "' + b"x" * 6_000_000 + b'"}',
        b'{"skill_id": "f", "body": "\xff"}',
        good,
        json.dumps({"skill_id": "g", "body": "last"}).encode(),
    ]
    path.write_bytes(b"\n".join(lines))
    library = SkillLibrary.load([path])
    assert ids(library) == ["a", "g"]
    reasons = {int(r.source.rsplit(":", 1)[1]): r.reason for r in library.rejections}
    assert list(reasons) == [2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert reasons[2].startswith("not JSON")
    assert reasons[3] == "not a JSON object"
    assert reasons[5] == "no skill_id"
    assert reasons[6] == "skill_id is not text"
    assert reasons[7] == "body is not text"
    assert reasons[8] == "no name, no description and no text"
    assert reasons[9] == "larger than 5,000,000 bytes"
    assert reasons[11] == f"repeats {path}:1"


@pytest.mark.parametrize(("ending", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_a_damaged_archive_is_an_error(tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"".join(b'{"skill_id": "%d", "body": "%d"}\n' % (i, i * i) for i in range(1000)))
    path = tmp_path / f"pool.jsonl{ending}"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(LibraryError, match=r"pool\.jsonl.* cannot be read after line \d+"):
        SkillLibrary.load([path])


def test_wrong_paths_get_one_message_with_the_fix(tmp_path: Path) -> None:
    put(tmp_path / "good")
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "hollow").mkdir()
    wrong: list[tuple[list[str | Path], str]] = [
        ([tmp_path / "good", tmp_path / "missing"], "there is no skill file or folder"),
        (["bundeld"], "did you mean 'bundled'"),
        ([tmp_path / "notes.txt"], "is no skill file"),
        ([tmp_path / "hollow"], "no SKILL.md below this folder"),
        (["x" * 5000], "there is no skill file or folder"),
        (["nul\0"], "there is no skill file or folder"),
        ([], "an empty list of paths"),
    ]
    for paths, message in wrong:
        with pytest.raises(LibraryError, match=message) as caught:
            SkillLibrary.load(paths)
        assert caught.value.fix
    with pytest.raises(LibraryError, match="must be a list"):
        SkillLibrary.load(str(tmp_path))


def test_a_folder_with_nothing_but_pools_says_that_pools_are_named_themselves(tmp_path: Path) -> None:
    pool = tmp_path / "pools" / "inner" / "skills.jsonl"
    pool.parent.mkdir(parents=True)
    pool.write_text('{"skill_id": "a", "name": "a", "description": "d", "body": "b"}\n')
    with pytest.raises(LibraryError, match=f"pools are named themselves, such as {pool}"):
        SkillLibrary.load([tmp_path / "pools"])


def test_a_folder_without_skills_beside_others_is_listed(tmp_path: Path) -> None:
    put(tmp_path / "good")
    (tmp_path / "hollow").mkdir()
    library = SkillLibrary.load([tmp_path / "good", tmp_path / "hollow"])
    assert library.rejections == (Rejection(str(tmp_path / "hollow"), "no SKILL.md below this folder"),)


def test_a_library_of_refused_documents_names_the_first_of_them(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / f"s{number}").write_text("")
    with pytest.raises(LibraryError) as caught:
        SkillLibrary.load([tmp_path])
    assert caught.value.message.count("no name, no description and no text") == 5


def test_the_bundled_library_is_complete() -> None:
    library = SkillLibrary.load(["bundled"])
    assert library.rejections == ()
    for group, least in {"alfworld": 15, "scienceworld": 15, "general": 40}.items():
        assert sum(skill.id.startswith(f"{group}/") for skill in library.skills) >= least


@needs_shared
def test_every_odd_skill_is_in_the_library_or_listed() -> None:
    files = sorted((SHARED / "odd_skills").glob("*.md"))
    library = SkillLibrary.load(files)
    assert len(files) == 25
    assert len(library) + len(library.rejections) == 25


@needs_shared
def test_real_skill_trees_are_read_whole(tmp_path: Path) -> None:
    library = SkillLibrary.load([SHARED / "skills"])
    assert (len(library), library.rejections) == (632, ())
    assert "alfworld/alfworld-object-heater" in library.by_id
    assert len({skill.name for skill in library.skills}) < 632
    shutil.copytree(SHARED / "skills" / "webshop", tmp_path / "x")
    assert SkillLibrary.load([tmp_path / "x"]).fingerprint == SkillLibrary.load([SHARED / "skills/webshop"]).fingerprint


@needs_shared
@pytest.mark.slow
def test_a_pool_of_the_papers_size_is_read_whole() -> None:
    library = SkillLibrary.load([SHARED / "skills_pool.jsonl.xz"])
    assert (len(library), library.rejections) == (67_884, ())


def test_unreadable_documents_stop_a_run_that_must_have_the_whole_library(tmp_path: Path) -> None:
    for name in ("good", "gone"):
        (tmp_path / name).mkdir()
    (tmp_path / "good" / "SKILL.md").write_text("---\nname: good\ndescription: fine\n---\nBody.\n")
    (tmp_path / "gone" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LibraryError, match=r"1 of 2 skill documents.*\n.*gone/SKILL.md"):
        SkillLibrary.load([tmp_path], rejected="stop")
    assert len(SkillLibrary.load([tmp_path], rejected="list").rejections) == 1


def test_a_document_named_twice_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "SKILL.md").write_text("---\nname: good\ndescription: fine\n---\nBody.\n")
    assert len(SkillLibrary.load([tmp_path, tmp_path], rejected="stop")) == 1
