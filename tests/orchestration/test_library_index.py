"""`skillarena library index`: vectors are there before a selector asks for them, and killing it loses few."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import command, environment
from library_files import pool, read_json

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.library_command.index import index

sys.path.append(str(Path(__file__).parents[1] / "selectors"))  # lends its embedder

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
    assert index(["selector=vector", f"cache_dir={tmp_path}"], conf, documents=True, as_json=False) == 0
    assert "no sections: nothing compares them by embeddings" in capsys.readouterr().out
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
