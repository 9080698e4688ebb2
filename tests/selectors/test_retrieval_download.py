"""The published set is fetched from a hub on request, once, and what goes wrong is said."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from stub_hub import COMMIT, StubHub

from skillarena.conf.errors import DataError
from skillarena.selectors.retrieval.download import REPOSITORY, fetch

FILES = {
    "README.md": b"not wanted",
    "tasks.jsonl": b'{"task_id": "t", "instruction_text": "sort"}\n',
    "relevance.json": b'{"t": {"gt_skill_ids": ["s"]}}',
    "easy/part-00000.jsonl.gz": gzip.compress(b'{"skill_id": "s", "name": "s"}\n'),
    "hard/part-00000.jsonl.gz": gzip.compress(b'{"skill_id": "s", "name": "s"}\n'),
}
SCRIPT = """
import sys
from skillarena.conf.errors import DataError
from skillarena.selectors.retrieval.download import fetch
try:
    print(fetch(sys.argv[1], sys.argv[2] or None))
except DataError as error:
    sys.exit(str(error))
"""


def run_fetch(home: Path, endpoint: str, revision: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since the client reads its settings when it is imported."""
    env = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", **extra}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, "easy", revision],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_one_tier_is_fetched_once_and_then_works_without_network(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with StubHub(REPOSITORY, FILES) as hub:
        done = run_fetch(tmp_path, hub.url)
        assert done.returncode == 0, done.stderr
        folder = Path(done.stdout.strip())
        found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
        assert found == {"tasks.jsonl", "relevance.json", "easy/part-00000.jsonl.gz"}
        assert folder.name == COMMIT
        assert (folder / "easy/part-00000.jsonl.gz").read_bytes() == FILES["easy/part-00000.jsonl.gz"]
        asked = len(hub.asked)
        pinned = run_fetch(tmp_path, hub.url, COMMIT)
        assert pinned.stdout == done.stdout
        assert not any(line.startswith("GET /datasets") for line in hub.asked[asked:])
    offline = run_fetch(tmp_path, "http://127.0.0.1:9", HF_HUB_OFFLINE="1")
    assert offline.stdout == done.stdout


@pytest.mark.slow
def test_what_cannot_be_had_is_one_message_with_the_way_round(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    with StubHub(REPOSITORY, FILES) as hub:
        unknown = run_fetch(tmp_path, hub.url, "no-such-branch")
    offline = run_fetch(tmp_path, hub.url, HF_HUB_OFFLINE="1")
    gone = run_fetch(tmp_path, hub.url)
    for done in (unknown, offline, gone):
        assert done.returncode == 1
        assert f"{REPOSITORY} cannot be had" in done.stderr
        assert "--data FOLDER --tier easy" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(DataError, match="no tier 'eassy'; did you mean 'easy'"):
        fetch("eassy")


def test_a_token_that_the_hub_repeats_is_left_out_of_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillarena.selectors.checkpoint import hub_reason

    monkeypatch.setenv("HF_TOKEN", "hf_a-token-of-some-length")
    assert hub_reason(OSError("401 for hf_a-token-of-some-length\nmore")) == "401 for ***"
    assert hub_reason(OSError()) == "OSError"
