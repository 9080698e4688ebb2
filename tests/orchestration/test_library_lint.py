"""`skillarena library lint`: every problem with its fix, in made-up documents and in odd ones that others wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from library_files import DATA, LONG, contents, read_json, skill, write

from skillarena.orchestration.library_command.lint import lint
from skillarena.orchestration.library_command.merge import merge
from skillarena.selectors.library import SkillLibrary


def test_a_pool_that_breaks_off_is_one_problem_among_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "tree", fine=skill("fine", body="Fine."))
    (tmp_path / "bad.jsonl.gz").write_bytes(b"no gzip")
    assert lint([str(tmp_path / "tree"), str(tmp_path / "bad.jsonl.gz")], near=0.8, as_json=True) == 1
    [[problem]] = json.loads(capsys.readouterr().out).values()
    assert problem["rejected"] and "cannot be read after line 0" in problem["message"]


def test_every_problem_is_named_with_its_fix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = " ".join(reversed(LONG.split()))
    write(
        tmp_path / "tree",
        fine=skill("fine", body="Fine."),
        nodescription="---\nname: a\n---\nBody a.",
        noname="---\ndescription: b\n---\nBody b.",
        longname=skill("n" * 65, body="Body c."),
        longdescription=skill("d", "d" * 1025, "Body d."),
        longtext=skill("e", body="e " * 20_000),
        brokenyaml="---\nname: f\ndescription: one: two\n---\nBody f.",
        unclosed="---\nname: g\ndescription: g\n",
        bare="# Title\n\nBody h.",
        latin=skill("i", body="Body i.").encode() + b"\xe9",
        marked=b"\xef\xbb\xbf" + skill("j", body="Body j.").encode(),
        wide=skill("k", body="Body k.").encode("utf-16"),
        bidi=skill("l", body="Body l \u202e."),
        control=skill("m", body="Body m \x07."),
        hidden=skill("n", body="Body n \u200b\U000e0041."),
        twice=skill("o", body="Body o.", more="license: a\nlicense: b\n"),
        lists="---\nname: [p]\ndescription: p\n---\nBody p.",
        same1=skill("same", body="Body q."),
        same2=skill("same", body="Body r."),
        near1=skill("s", body=other),
        near2=skill("s2", body=other),
    )
    assert lint([str(tmp_path / "tree")], near=0.8, as_json=True) == 0
    said = {Path(path).parent.name: entries for path, entries in read_json(capsys).items()}
    assert {name: [entry["rule"] for entry in entries] for name, entries in said.items()} == {
        "nodescription": ["no-description"],
        "noname": ["no-name"],
        "longname": ["long-name"],
        "longdescription": ["long-description"],
        "longtext": ["long-text"],
        "brokenyaml": ["front-matter"],
        "unclosed": ["front-matter"],
        "bare": ["no-description", "no-front-matter"],
        "latin": ["encoding"],
        "marked": ["encoding"],
        "wide": ["encoding"],
        "bidi": ["odd-characters"],
        "control": ["odd-characters"],
        "hidden": ["hidden-characters"],
        "twice": ["front-matter"],
        "lists": ["front-matter"],
        "same1": ["shared-name"],
        "same2": ["shared-name"],
        "near2": ["near-duplicate"],
    }
    assert all(entry["fix"] and not entry["rejected"] for entries in said.values() for entry in entries)
    assert said["brokenyaml"][0]["message"].startswith("line 3: ")


def test_a_document_that_would_be_rejected_is_exit_code_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = write(tmp_path / "tree", empty="---\n---\n")
    assert lint([str(tree)], near=0.8, as_json=False) == 1
    assert "rejected: no name, no description and no text" in capsys.readouterr().out
    lines = '{"skill_id": "a", "name": "a\\u202e", "body": "x"}\nnot JSON\n{"name": "b"}\n'
    (tmp_path / "pool.jsonl").write_text(lines)
    assert lint([str(tmp_path / "pool.jsonl")], near=0.8, as_json=True) == 1
    said = {
        path.rpartition(":")[2]: [entry["rule"] for entry in entries] for path, entries in read_json(capsys).items()
    }
    assert said == {"1": ["no-description", "odd-characters"], "2": ["rejected"], "3": ["rejected"]}


def test_the_odd_files_seen_in_the_wild_are_told_from_sound_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (DATA / "odd_skills").exists():
        pytest.skip(f"there is no {DATA / 'odd_skills'}")
    entries = {entry["file"]: entry for entry in json.loads((DATA / "odd_skills" / "INDEX.json").read_text())}
    for name in entries:
        (tmp_path / "odd" / name).mkdir(parents=True)
        shutil.copyfile(DATA / "odd_skills" / name, tmp_path / "odd" / name / "SKILL.md")
    assert lint([str(tmp_path / "odd")], near=0.8, as_json=True) == 0
    said = {Path(path).parent.name: [problem["rule"] for problem in found] for path, found in read_json(capsys).items()}
    for name, entry in entries.items():
        broken = entry["strict_yaml_loads"] is False
        assert broken <= ("front-matter" in said.get(name, [])), (name, entry["oddity"])
        unnamed = entry["reasonable_name"] is None
        assert unnamed <= bool({"no-name", "no-front-matter", "front-matter"} & {*said.get(name, [])}), name
    assert merge([str(tmp_path / "odd")], tmp_path / "to", near=0.8, drop_near=False, as_json=False) == 0
    assert contents(SkillLibrary.load([tmp_path / "to"])) == contents(SkillLibrary.load([tmp_path / "odd"]))
