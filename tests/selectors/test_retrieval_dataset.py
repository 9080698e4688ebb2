"""Data sets in folders: read as they are, and every mistake in them is named with its place."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from skillarena.conf.errors import DataError
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.retrieval.dataset import Dataset, Judgement, Query, Role, find_pool, read_queries

TASKS = [
    {"task_id": "t1", "instruction_text": "sort the post", "domain": "office", "num_skills": 1, "tags": ["x"]},
    {"task_id": "t2", "instruction_text": "fill the form", "benchmark": "forms"},
]
RELEVANCE: dict[str, Any] = {
    "t1": {
        "gt_skill_ids": ["gt/sort", "gt/pdf"],
        "core_gt_ids": ["gt/sort"],
        "auxiliary_gt_ids": ["gt/pdf"],
        "relevance": {"gt/sort": 3, "gt/pdf": 3, "degraded/sort_1": 1, "gt/none": 0},
        "task_type": "mixed",
    },
    "t2": {"gt_skill_ids": ["gt/pdf"]},
    "unasked": {"gt_skill_ids": ["gt/pdf"]},
}


def lines(records: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records) + b"\n\n"


def folder(path: Path, tasks: bytes | None = None, relevance: Any = None) -> Path:
    path.mkdir(exist_ok=True)
    (path / "tasks.jsonl").write_bytes(lines(TASKS) if tasks is None else tasks)
    (path / "relevance.json").write_text(json.dumps(RELEVANCE if relevance is None else relevance))
    return path


def skill(skill_id: str) -> dict[str, str]:
    return {"skill_id": skill_id, "name": skill_id, "description": "does it", "body": "Do it."}


def test_queries_have_their_judgements_and_roles(tmp_path: Path) -> None:
    assert read_queries(folder(tmp_path)) == (
        Query(
            "t1",
            "sort the post",
            "retrieval",
            "mixed",
            (
                Judgement("gt/sort", 3, Role.CORE),
                Judgement("gt/pdf", 3, Role.AUXILIARY),
                Judgement("degraded/sort_1", 1, Role.RELATED),
            ),
        ),
        Query("t2", "fill the form", "forms", "", (Judgement("gt/pdf", 1, Role.CORE),)),
    )


def test_packed_files_read_the_same(tmp_path: Path) -> None:
    plain = read_queries(folder(tmp_path))
    for name in ("tasks.jsonl", "relevance.json"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    assert read_queries(tmp_path) == plain
    assert find_pool(tmp_path) is None
    (tmp_path / "tasks.jsonl.gz").write_bytes(b"\x1f\x8b\x08broken")
    with pytest.raises(DataError, match=r"tasks\.jsonl\.gz cannot be read"):
        read_queries(tmp_path)


@pytest.mark.parametrize(
    ("tasks", "relevance", "message"),
    [
        (lines(TASKS) + b"{half", None, r"tasks\.jsonl:4: not JSON"),
        (b"[1]\n", None, r"tasks\.jsonl:1: .*dictionary"),
        (b'{"task_id": "t1", "instruction": "x"}', None, r":1: instruction_text: .*did you mean 'instruction'"),
        (b'{"task_id": 7, "instruction_text": "x"}', None, r":1: task_id: .*string"),
        (lines([TASKS[0], TASKS[0]]), None, "two tasks have the id 't1'"),
        (b'{"task_id": "t11", "instruction_text": "x"}', None, r":1: task 't11' has no entry .*did you mean 't1'"),
        (b"\n", None, "holds no task"),
        (None, [], r"relevance\.json: .*object"),
        (None, {"t1": {"gt_skills": []}}, r"'t1': gt_skill_ids: .*did you mean 'gt_skills'"),
        (None, {"t1": {"gt_skill_ids": ["a"], "relevance": {"a": -1}}}, r"'t1': relevance\.a: .*greater"),
        (None, {"t1": {"gt_skill_ids": ["a"], "relevance": {"a": 0}}}, "'a', which has no grade above 0"),
        (None, {"t1": {"gt_skill_ids": ["abc"], "core_gt_ids": ["abd"]}}, "'abd', which is not in .*'abc'"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, tasks: bytes | None, relevance: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read_queries(folder(tmp_path, tasks, relevance))
    assert caught.value.fix


@pytest.mark.parametrize("name", ["tasks.jsonl", "relevance.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (folder(tmp_path) / name).unlink()
    with pytest.raises(DataError, match=f"holds no {name}"):
        read_queries(tmp_path)


def test_a_pool_is_a_folder_of_shards_or_a_file(tmp_path: Path) -> None:
    folder(tmp_path)
    assert find_pool(tmp_path) is None
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "README.md").write_text("no pool")
    (tmp_path / "easy").mkdir()
    for number in (1, 0):
        shard = tmp_path / "easy" / f"part-0000{number}.jsonl.gz"
        shard.write_bytes(gzip.compress(lines([skill(f"gt/{number}")])))
    only = find_pool(tmp_path)
    assert only is not None
    assert (only.name, [file.name for file in only.files]) == ("easy", ["part-00000.jsonl.gz", "part-00001.jsonl.gz"])
    assert [item.id for item in SkillLibrary.load(only.files).skills] == ["gt/0", "gt/1"]

    (tmp_path / "mine.jsonl.xz").write_bytes(lzma.compress(lines([skill("gt/pdf")])))
    with pytest.raises(DataError, match="the pools easy, mine"):
        find_pool(tmp_path)
    mine = find_pool(tmp_path, "mine")
    assert mine is not None
    assert [file.name for file in mine.files] == ["mine.jsonl.xz"]
    with pytest.raises(DataError, match="no skill pool 'esy'; did you mean 'easy'"):
        find_pool(tmp_path, "esy")


def test_judged_skills_that_are_not_in_the_pool_are_listed(tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_bytes(lines([skill("gt/sort"), skill("gt/none")]))
    dataset = Dataset("d", read_queries(folder(tmp_path)), SkillLibrary.load([tmp_path / "pool.jsonl"]))
    assert dataset.absent() == {"t1": ["gt/pdf", "degraded/sort_1"], "t2": ["gt/pdf"]}
