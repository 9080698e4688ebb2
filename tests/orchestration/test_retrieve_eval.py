"""`skillarena retrieve-eval`: selectors ranked as search engines, from composing to tables and files."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import command, environment

sys.path.append(str(Path(__file__).parents[1] / "selectors"))  # lends its embedder and its hub

from stub_hub import COMMIT, StubHub

from skillarena.conf.errors import ConfigError, DataError, LibraryError
from skillarena.orchestration.retrieve_eval import Source, retrieve_eval
from skillarena.selectors.retrieval.download import REPOSITORY
from skillarena.selectors.retrieval.metrics import METRICS

POOL = Path(__file__).resolve().parents[3] / "shared" / "data" / "skills_pool.jsonl.xz"
WORDS = "name: words\n_target_: word_embedder.WordEmbedder\n"
SKILLS = {
    "gt/mail": ("mail-sorter", "sorts letters and parcels"),
    "gt/forms": ("form-filler", "fills paper forms with names"),
    "gt/print": ("printer", "prints paper on the printer"),
    "poor/mail": ("mail-heap", "letters"),
    "other": ("cook", "boils soup"),
}
TASKS = {"q1": "sorts letters and parcels", "q2": "fills paper forms and prints paper", "q3": "knits"}
RELEVANCE = {
    "q1": {"gt_skill_ids": ["gt/mail"], "relevance": {"gt/mail": 3, "poor/mail": 1, "poor/gone": 1}},
    "q2": {"gt_skill_ids": ["gt/forms", "gt/print"]},
    "q3": {"gt_skill_ids": ["gt/knit"]},
}


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Overrides for an embedder without a model and a cache of the test's own."""
    monkeypatch.setenv("COLUMNS", "200")
    conf = tmp_path / "conf" / "embedder"
    conf.mkdir(parents=True)
    (conf / "words.yaml").write_text(WORDS)
    return ["embedder=words", f"cache_dir={tmp_path / 'cache'}", "run.bootstrap_resamples=100"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three queries, of which one needs a skill that is not there, and a pool of five skills in two shards."""
    folder = tmp_path / "post"
    (folder / "easy").mkdir(parents=True)
    tasks = [{"task_id": task, "instruction_text": text} for task, text in TASKS.items()]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    (folder / "relevance.json").write_text(json.dumps(RELEVANCE))
    records = [
        json.dumps({"skill_id": skill, "name": name, "description": description, "body": "x"})
        for skill, (name, description) in SKILLS.items()
    ]
    for shard in (0, 1):
        content = "\n".join(records[shard::2]).encode()
        (folder / "easy" / f"part-0000{shard}.jsonl.gz").write_bytes(gzip.compress(content))
    return folder


def evaluate(overrides: list[str], tmp_path: Path, source: Source | None = None, **options: Any) -> int:
    return retrieve_eval(overrides, source or Source(), config_dir=tmp_path / "conf", **options)


def scores_of(folder: Path) -> dict[str, Any]:
    scores: dict[str, Any] = json.loads((folder / "scores.json").read_text())
    return scores


def means(scores: dict[str, Any], method: str, stratum: str = "all") -> dict[str, float]:
    return {name: estimate["mean"] for name, estimate in scores["methods"][method]["metrics"][stratum].items()}


def test_methods_are_compared_on_a_folder_of_data(
    settings: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    sweep = ["selector=vector", "selector.top_k=1,5"]
    assert evaluate([*settings, *sweep], tmp_path, Source(data), out=out) == 0
    scores = scores_of(out)
    assert scores["dataset"]["name"] == "post easy"
    assert (scores["dataset"]["skills"], scores["dataset"]["queries"], scores["dataset"]["scored"]) == (5, 3, 2)
    assert scores["dataset"]["left_out"] == {"no needed skill is in the pool": 1}
    assert scores["dataset"]["judged_but_absent"] == {"q1": ["poor/gone"], "q3": ["gt/knit"]}
    assert scores["strata"] == {"all": 2, "single": 1, "multi": 1}
    one, five = means(scores, "vector top_k=1"), means(scores, "vector top_k=5")
    assert (one["Hit@1"], one["Recall@10"], one["FullCoverage@3"]) == (1.0, 0.75, 0.5)
    assert (five["Hit@1"], five["Recall@10"], five["FullCoverage@3"]) == (1.0, 1.0, 1.0)
    assert means(scores, "vector top_k=1", "multi")["nDCG@10"] == pytest.approx(1 / 1.63092975)
    assert scores["needed_only"]["single"]["nDCG@10"] == pytest.approx(3 / (3 + 1 / 1.5849625))
    details = scores["methods"]["vector top_k=5"]
    assert details["selector"]["top_k"] == 5
    assert details["models"] == {"embedder": "words"}
    assert (details["depth"], details["missing"], details["pairs_scored"]) == (5, 0, 0)
    assert 0 <= details["seconds"] < 5

    text = capsys.readouterr().out
    assert "post easy: 2 queries, 5 skills, mode core" in text
    assert "vector top_k=1" in text
    assert "(needed only)" in text
    assert "Left out, as no needed skill is in the pool: 1 of 3 queries." in text
    assert "Judged skills that are not in the pool and count for nothing: 2 (gt/knit, poor/gone)." in text
    assert "as they rank nothing beyond: vector top_k=1, vector top_k=5." in text


def test_written_predictions_score_the_same_without_running_anything(
    settings: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = [*settings, "selector=vector,random", "selector.top_k=2"]
    evaluate(overrides, tmp_path, Source(data), out=tmp_path / "first")
    capsys.readouterr()
    predictions = tmp_path / "first" / "predictions.jsonl"
    evaluate(["selector.k=999999"], tmp_path, Source(data), predictions=predictions, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    first = scores_of(tmp_path / "first")
    assert printed["dataset"] == first["dataset"]
    assert list(printed["methods"]) == ["vector", "random"]
    for method in printed["methods"]:
        assert means(printed, method) == means(first, method)
        assert printed["methods"][method]["seconds"] == first["methods"][method]["seconds"]


def test_a_ranking_of_the_methods_own_is_scored_rather_than_its_choice(
    settings: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate([*settings, "selector=skillrouter", "selector.recall=4"], tmp_path, Source(data), as_json=True)
    details = json.loads(capsys.readouterr().out)["methods"]["skillrouter"]
    assert details["selector"]["top_k"] == 1
    assert details["depth"] == 4
    assert details["pairs_scored"] + details["pairs_cached"] == 4
    assert set(details["models"]) == {"embedder", "reranker"}


def test_a_file_in_the_published_form_is_scored_and_what_is_missing_counts_as_zero(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: list[str]
) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"q1": ["poor/mail", "gt/mail", "gt/mail", "nowhere"], "q9": []}))
    evaluate(settings, tmp_path, Source(data, tier="easy"), predictions=file)
    text = capsys.readouterr().out
    assert "mine: queries without a ranking, which count as 0: 1." in text
    assert "mine: places taken away, as they repeat a skill: 1." in text
    assert "mine: places of skills that are not in the pool, which count as wrong: 1." in text
    assert "mine: rankings of queries that are not in the set, which count for nothing: 1." in text
    evaluate(settings, tmp_path, Source(data), predictions=file, as_json=True)
    found = means(json.loads(capsys.readouterr().out), "mine")
    assert (found["Hit@1"], found["MRR@10"], found["Recall@10"]) == (0.0, 0.25, 0.5)


def test_the_oracle_finds_just_what_the_bundled_set_needs(
    settings: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate([*settings, "selector=oracle,vector,random"], tmp_path, as_json=True)
    scores = json.loads(capsys.readouterr().out)
    assert scores["dataset"]["scored"] == scores["dataset"]["queries"] == 156
    assert list(scores["strata"]) == ["all", "single", "multi", "alfworld", "scienceworld"]
    for stratum, best in scores["needed_only"].items():
        assert means(scores, "oracle", stratum) == pytest.approx(best)
    assert means(scores, "vector")["Hit@1"] > 3 * means(scores, "random")["Hit@1"]
    interval = scores["methods"]["vector"]["metrics"]["all"]["Hit@1"]
    assert interval["low"] < interval["mean"] < interval["high"]


def test_unusual_selections_are_counted_and_named(
    settings: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate([*settings, "selector=vanilla", "selector.max_chars=40"], tmp_path, Source(data), out=tmp_path / "out")
    assert scores_of(tmp_path / "out")["methods"]["vanilla"]["marks"] == {"library_truncated": 2}
    assert "vanilla: the whole library did not fit into the prompt: 2 queries" in capsys.readouterr().out


def test_data_without_a_pool_searches_the_chosen_library(
    settings: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "easy").rename(tmp_path / "pool")
    paths = ",".join(str(path) for path in (tmp_path / "pool").iterdir())
    library = ["library=paths", f"library.paths=[{paths}]"]
    evaluate([*settings, *library, "selector=vector"], tmp_path, Source(data), as_json=True)
    scores = json.loads(capsys.readouterr().out)
    assert (scores["dataset"]["name"], scores["dataset"]["skills"]) == ("post", 5)


def test_a_table_fits_the_terminal(
    settings: list[str], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    evaluate([*settings, "selector=vector"], tmp_path, Source(data))
    tables = capsys.readouterr().out.split("One query is")[0].splitlines()
    assert max(map(len, tables)) <= 60
    rows = [line.split() for line in tables if line.strip().startswith("vector")]
    assert len(rows) >= 3
    assert sum(len(row) - 1 for row in rows) == len(METRICS) + 4 + 4  # without Precision@3; interval and cost; groups


@pytest.mark.parametrize(
    ("overrides", "source", "error", "message"),
    [
        (["selector=vectr"], {}, ConfigError, "did you mean 'vector'"),
        (["selector=vector", "selector.topk=2"], {}, ConfigError, "topk: unknown key"),
        (["selector=[,"], {}, ConfigError, "cannot read the override"),
        (["library=bundled,paths", "library.paths=[bundled]"], {}, ConfigError, "must search the same library"),
        (["library=bundled"], {"data": True}, ConfigError, "has a skill pool of its own"),
        ([], {"data": True, "download": "easy"}, ConfigError, "name two data sets"),
        ([], {"tier": "easy"}, ConfigError, "--tier chooses a pool"),
        ([], {"revision": "main"}, ConfigError, "--revision is of a download"),
        ([], {"data": True, "tier": "esy"}, DataError, "did you mean 'easy'"),
        ([], {"download": "eassy"}, DataError, "did you mean 'easy'"),
    ],
)
def test_a_mistake_is_one_message(
    settings: list[str],
    data: Path,
    tmp_path: Path,
    overrides: list[str],
    source: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    chosen = {key: data if value is True else value for key, value in source.items()}
    with pytest.raises(error, match=message):
        evaluate([*settings, *overrides], tmp_path, Source(**chosen))


def test_a_mistake_in_a_later_row_comes_out_before_the_first_is_computed(
    settings: list[str], data: Path, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="asks a language model, and none is chosen"):
        evaluate([*settings, "selector=llm_selector"], tmp_path)  # the bundled library has candidates enough
    with pytest.raises(LibraryError, match="top_k=6 asks for more skills"):
        evaluate([*settings, "selector=vector", "selector.top_k=1,6"], tmp_path, Source(data))
    assert not (tmp_path / "cache" / "embeddings.sqlite").exists()


def test_predictions_of_another_set_are_refused(settings: list[str], data: Path, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"q11": ["gt/mail"]}))
    with pytest.raises(DataError, match="answers no query of post easy; its first is 'q11'; did you mean 'q1'"):
        evaluate(settings, tmp_path, Source(data), predictions=file)


def test_judgements_of_another_pool_are_refused(settings: list[str], data: Path, tmp_path: Path) -> None:
    (data / "easy").rename(data / "elsewhere")
    for shard in (data / "elsewhere").iterdir():
        shard.write_bytes(gzip.compress(b'{"skill_id": "%s", "name": "n"}' % shard.name.encode()))
    with pytest.raises(DataError, match="no query of post elsewhere can be scored with 2 skills"):
        evaluate(settings, tmp_path, Source(data))


def run_cli(tmp_path: Path, *arguments: str, timeout: float = 280, **extra: str) -> subprocess.CompletedProcess[str]:
    """The real command, with the embedder of these tests within reach."""
    path = os.pathsep.join([str(Path(__file__).parents[1] / "selectors"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        command("retrieve-eval", "--config-dir", str(tmp_path / "conf"), *arguments),
        cwd=tmp_path,
        env=environment(tmp_path / "cache", PYTHONPATH=path, **extra),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


@pytest.mark.slow
def test_the_published_set_is_downloaded_and_evaluated(settings: list[str], data: Path, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    files = {str(path.relative_to(data)): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    with StubHub(REPOSITORY, files) as hub:
        extra = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "0"}
        done = run_cli(tmp_path, "--download", "easy", "--json", *settings, "selector=vector", **extra)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores["dataset"]["name"] == f"{REPOSITORY}@{COMMIT[:8]} easy"
    assert means(scores, "vector")["Hit@1"] == 1.0


@pytest.mark.slow
def test_the_command_says_what_is_wrong_in_one_message(settings: list[str], tmp_path: Path) -> None:
    done = run_cli(tmp_path, "--mode", "cor", *settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean 'core'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [2_000, pytest.param(67_884, marks=pytest.mark.long)])
def test_a_large_pool_takes_bounded_time_and_memory(settings: list[str], tmp_path: Path, size: int) -> None:
    if not POOL.is_file():
        pytest.skip(f"no pool at {POOL}")
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of memory is read from /proc")
    folder = tmp_path / "large"
    (folder / "hard").mkdir(parents=True)
    tasks, relevance = [], {}
    with lzma.open(POOL) as pool, gzip.open(folder / "hard" / "part-00000.jsonl.gz", "wb", compresslevel=1) as shard:
        for number, line in zip(range(size), pool, strict=False):
            shard.write(line)
            if number % (size // 50) == 0:
                skill = json.loads(line)
                tasks.append({"task_id": str(number), "instruction_text": f"{skill['name']} {skill['description']}"})
                relevance[str(number)] = {"gt_skill_ids": [skill["skill_id"]]}
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    (folder / "relevance.json").write_text(json.dumps(relevance))
    script = (
        "import re, sys\nfrom skillarena.orchestration.cli import app\n"
        "app(sys.argv[1:], standalone_mode=False)\n"
        # Not getrusage, whose peak a new program takes over from the process that started it.
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1], file=sys.stderr)\n"
    )
    arguments = ["retrieve-eval", "--config-dir", str(tmp_path / "conf"), "--data", str(folder), "--json"]
    arguments += [*settings, "selector=vector", "selector.top_k=50"]
    path = str(Path(__file__).parents[1] / "selectors")
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path,
        env=environment(tmp_path / "cache", PYTHONPATH=path),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    took, peak_mib = time.monotonic() - started, int(done.stderr.split()[-1]) / 1024
    print(f"{size} skills: {took:.1f} s, {peak_mib:.0f} MiB at most")
    scores = json.loads(done.stdout)
    assert (scores["dataset"]["scored"], scores["dataset"]["skills"]) == (len(tasks), size)
    assert means(scores, "vector")["Recall@50"] > 0.9
    assert took < 60 + size * 0.005
    assert peak_mib < 300 + size * 0.01
