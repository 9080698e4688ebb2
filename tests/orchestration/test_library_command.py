"""`skillarena library`: one library out of many, its figures, its problems, its vectors and parses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import command, environment, run_command
from stub_server import StubServer, completion

sys.path.append(str(Path(__file__).parents[1] / "selectors"))  # lends its embedder

from skillarena.conf.errors import ConfigError, LibraryError
from skillarena.orchestration.library_command.index import index
from skillarena.orchestration.library_command.lint import lint
from skillarena.orchestration.library_command.merge import merge
from skillarena.orchestration.library_command.parse import parse
from skillarena.orchestration.library_command.stats import stats
from skillarena.selectors.library import SkillLibrary

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
LONG = " ".join(f"word{number}" for number in range(200))
SLOW = """
import time
from word_embedder import WordEmbedder

class SlowWords(WordEmbedder):
    def encode(self, texts, kind):
        with open("encoded", "a") as file:
            file.write("x" * len(texts))
        time.sleep(0.5)
        return super().encode(texts, kind)
"""
WORDS = "name: words\n_target_: word_embedder.WordEmbedder\n"


def write(folder: Path, **documents: str | bytes) -> Path:
    """A tree with a document in a folder of each name."""
    for name, text in documents.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


def skill(name: str, description: str = "does it", body: str = LONG, more: str = "") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"


def pool(path: Path, *records: Sequence[str]) -> Path:
    keys = ("skill_id", "name", "description", "body")
    path.write_text("\n".join(json.dumps(dict(zip(keys, record, strict=True))) for record in records))
    return path


def contents(library: SkillLibrary) -> list[tuple[str, str, str]]:
    return sorted((skill.name, skill.description, skill.body) for skill in library.skills)


def read_json(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


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


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    (tmp_path / "conf" / "embedder").mkdir(parents=True)
    (tmp_path / "conf" / "embedder" / "words.yaml").write_text(WORDS)
    return tmp_path / "conf"


@pytest.mark.parametrize(
    "selector",
    [
        "vector",
        "skillreranker",
        "skillrouter",
        "skilldag",
        "graph_of_skills",
        "graph_of_skills_released",
        "spem_frozen",
    ],
)
def test_a_selector_embeds_no_document_after_index(
    conf: Path, tmp_path: Path, selector: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from skillarena.envs.interface import Task
    from skillarena.orchestration.assembly import AssembledParts, build_selector, load_library
    from skillarena.orchestration.cells import cache_folder, sections
    from skillarena.orchestration.hydra_run import compose
    from skillarena.selectors.embedders import CachedEmbedder
    from skillarena.selectors.rerankers import _sections

    overrides = [f"selector={selector}", "embedder=words", f"cache_dir={tmp_path / 'cache'}"]
    documents = selector in ("skillreranker", "skillrouter")
    assert index(overrides, conf, documents=documents, as_json=True) == 0
    assert read_json(capsys)["texts_asked"] > 0
    settings = compose(overrides, conf)
    parts = AssembledParts(sections(settings), load_library(settings.library), cache_folder(settings))
    assert isinstance(parts.embedder, CachedEmbedder)
    asked: list[str] = []

    class Watched:
        identity = parts.embedder.identity

        def encode(self, texts: list[str], kind: str) -> Any:
            asked.extend(texts if kind == "document" else ())
            return WordEmbedder().encode(texts, kind)  # type: ignore[arg-type]

    from word_embedder import WordEmbedder

    parts.embedder._embedder = Watched()  # what is not in the cache
    task = Task("alfworld", "generated_seen", "id", "name", "pick_and_place_simple", "put a mug in cabinet.", {})
    build_selector(settings.selector, parts).open(task)
    sections = {part for skill in parts.library.skills for part in _sections(skill.text)}
    assert not sections & {*asked}  # the states of tasks and skills are others
    assert index(overrides, conf, documents=documents, as_json=True) == 0
    assert read_json(capsys)["texts_asked"] == 0


def test_a_selector_without_vectors_has_nothing_to_index(
    conf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert index(["selector=random", f"cache_dir={tmp_path}"], conf, documents=False, as_json=False) == 0
    assert "random embeds nothing" in capsys.readouterr().out
    llm = ["selector=graph_of_skills_llm", "llm=deepseek_v4_flash", "embedder=words", f"cache_dir={tmp_path}"]
    with pytest.raises(ConfigError, match="what a language model reads out of the skills"):
        index(llm, conf, documents=False, as_json=False)


@pytest.mark.slow
def test_an_index_killed_halfway_goes_on_where_it_was(conf: Path, tmp_path: Path) -> None:
    many = [(f"s{number}", f"name {number}", "does it", "x") for number in range(6000)]
    source = pool(tmp_path / "many.jsonl", *many)
    (tmp_path / "slow_words.py").write_text(SLOW)
    (conf / "embedder" / "slow_words.yaml").write_text("name: slow_words\n_target_: slow_words.SlowWords\n")
    overrides = ("library=paths", f"library.paths=[{source}]", "selector=vector", "embedder=slow_words")
    line = command("library", "index", *overrides, "--config-dir", str(conf), "--json")
    paths = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[1] / "selectors")])
    env = environment(tmp_path / "cache", PYTHONPATH=paths)
    process = subprocess.Popen(line, cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while kept(tmp_path / "cache") < 2000:
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = kept(tmp_path / "cache")
    encoded = (tmp_path / "encoded").read_text().count("x")
    assert 2000 < before < 6000
    done = subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert kept(tmp_path / "cache") == 6000
    assert json.loads(done.stdout)["texts_asked"] == 6000
    again = (tmp_path / "encoded").read_text().count("x") - encoded
    assert again == 6000 - before  # what was kept is not embedded a second time


def kept(cache: Path) -> int:
    """Vectors in the cache."""
    import sqlite3

    try:
        with sqlite3.connect(f"file:{cache / 'embeddings.sqlite'}?mode=ro", uri=True, timeout=20) as connection:
            return int(connection.execute("SELECT COUNT(*) FROM entries").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


def llm_parser(server: StubServer, tmp_path: Path, *more: str) -> list[str]:
    return [
        "parser=llm",
        "parser.model.model=stub-model",
        f"parser.model.base_url={server.url}",
        "parser.model.api_key_env=null",
        "parser.model.price={prompt: 1.0, cached: 0.1, completion: 2.0}",
        f"cache_dir={tmp_path / 'cache'}",
        *more,
    ]


ANSWER = completion(
    "Precondition_State: None\nCompletion_State: It is done.", usage={"prompt_tokens": 100, "completion_tokens": 10}
)


def test_no_call_is_made_before_its_price_was_agreed_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with StubServer(default=ANSWER) as server:
        overrides = llm_parser(server, tmp_path)
        assert parse(overrides, None, yes=False, as_json=False) == 1
        said = capsys.readouterr().out
        assert server.requests == []
        assert "91 LLM calls of stub-model" in said
        assert "--yes" in said
        assert parse(overrides, None, yes=True, as_json=True) == 0
        done = read_json(capsys)
        assert done["done"]["llm_calls"] == 91
        assert done["done"]["prompt_tokens"] == 9100
        use = done["parsing"]["use"]
        assert done["parsing"]["cost"] == pytest.approx((use["prompt"] + 2 * use["completion"]) / 1e6, rel=1e-3)
        asked = len(server.chats)
        assert parse(overrides, None, yes=False, as_json=True) == 0
        assert read_json(capsys)["to_parse"] == 0
        assert len(server.chats) == asked


def test_what_was_parsed_before_a_failure_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stub_server import failure

    from skillarena.conf.errors import BackboneError

    quick = ("+parser.model.max_retries=0", "parser.model.max_concurrency=1")
    with StubServer([ANSWER] * 31, default=failure(500)) as server:
        with pytest.raises(BackboneError):
            parse(llm_parser(server, tmp_path, *quick), None, yes=True, as_json=False)
        capsys.readouterr()
        assert parse(llm_parser(server, tmp_path, *quick), None, yes=False, as_json=True) == 1
        assert read_json(capsys)["to_parse"] == 91 - 31


def test_a_budget_of_the_run_holds_for_parsing_too(tmp_path: Path) -> None:
    with StubServer(default=ANSWER) as server:
        for cap in ("run.max_cost=0.001", "run.max_tokens=1000"):
            with pytest.raises(ConfigError, match=cap.split("=")[0]):
                parse(llm_parser(server, tmp_path, cap), None, yes=True, as_json=False)
        assert server.requests == []


def test_parsing_without_a_model_needs_no_agreement_and_shows_what_a_graph_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = [f"cache_dir={tmp_path}", "selector=graph_of_skills_llm", "llm=deepseek_v4_flash"]
    assert parse(overrides, None, yes=False, as_json=True) == 0
    done = read_json(capsys)
    assert done["done"]["parsed"] == done["to_parse"] == 91
    assert done["indexing"]["use"]["calls"] == 362
    assert done["indexing"]["cost"] > 0


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
@pytest.mark.timeout(1800)
def test_the_pool_is_counted_and_imported_in_minutes(tmp_path: Path) -> None:
    if not (DATA / "skills_pool.jsonl.xz").exists():
        pytest.skip(f"there is no {DATA / 'skills_pool.jsonl.xz'}")
    paths = [str(DATA / "skills_pool.jsonl.xz"), str(DATA / "skills")]
    began = time.process_time()
    assert merge(paths, tmp_path / "all.jsonl", near=0.8, drop_near=False, as_json=True) == 0
    assert time.process_time() - began < 240
    assert len(SkillLibrary.load([tmp_path / "all.jsonl"])) > 67_000
