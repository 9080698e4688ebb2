"""`skillarena plan` from the shell: counts, costs and gaps of a sweep, with nothing started and nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command import cells, rows_of, run_command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SIX = ("benchmark=alfworld", "benchmark.limit=6")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def plan(cache: Path, folder: Path, *arguments: str, code: int = 0, **env: str) -> dict[str, Any]:
    done = run_command("plan", "--json", *arguments, cache=cache, cwd=folder, **env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_plan_counts_episodes_and_shared_selections_and_starts_nothing(cache: Path, tmp_path: Path) -> None:
    no_ray = tmp_path / "no_ray"
    no_ray.mkdir()
    (no_ray / "ray.py").write_text("raise RuntimeError('a plan must not touch Ray')")
    folder = tmp_path / "here"
    folder.mkdir()
    sweep = ("-m", *SIX, "selector=none,vector,vector_top2", "seed=0,1")
    planned = plan(cache, folder, *sweep, PYTHONPATH=str(no_ray))
    assert [cell["episodes"] for cell in planned["cells"]] == [6] * 6
    assert planned["selections"] == 18  # three methods, six tasks, whatever the seed
    assert planned["stored"] == 0
    assert list(folder.iterdir()) == []
    assert not (cache / "selections.sqlite").exists()


def test_finished_episodes_are_counted_and_decide_what_others_take(cache: Path, tmp_path: Path) -> None:
    run = run_command("run", *SIX, "selector=vector", "tracking.enabled=false", cache=cache, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    rows = rows_of(cells(tmp_path / "outputs")[0])
    ledger = (cells(tmp_path / "outputs")[0] / "episodes.jsonl").read_bytes()

    again = plan(cache, tmp_path, *SIX, "selector=vector")
    assert again["cells"][0]["finished"] == again["cells"][0]["episodes"] == 6
    assert again["cells"][0]["expected"]["prompt"] == 0
    assert again["stored"] == again["selections"] == 6

    seed = plan(cache, tmp_path, *SIX, "selector=vector", "seed=1")
    assert seed["cells"][0]["finished"] == 0
    assert seed["stored"] == 6  # the seed changes no selection
    assert seed["cells"][0]["expected"]["prompt"] == pytest.approx(sum(row.prompt_tokens for row in rows))
    assert seed["cells"][0]["expected"]["calls"] == pytest.approx(sum(row.llm_turns for row in rows))
    assert any("6 finished episodes of the same kind" in line for line in seed["assumptions"])

    other = plan(cache, tmp_path, *SIX, "selector=none")
    assert any("6 finished episodes with simulated, skills exchanged" in line for line in other["assumptions"])
    assert other["cells"][0]["expected"]["prompt"] < seed["cells"][0]["expected"]["prompt"]
    assert (cells(tmp_path / "outputs")[0] / "episodes.jsonl").read_bytes() == ledger


def test_missing_keys_and_models_are_listed_and_do_not_stop_a_plan(cache: Path, tmp_path: Path) -> None:
    planned = plan(
        cache,
        tmp_path,
        *SIX,
        "backbone=deepseek_v4_flash",
        "parser=deepseek_v4_flash",
        "reranker=cross_encoder",
        "reranker.model=nobody/no-such-reranker-0.6B",
        "cluster.reranker_gpus=0.5",
        HF_HUB_OFFLINE="1",
        DEEPSEEK_API_KEY="",
    )
    missing = "\n".join(planned["missing"])
    assert "DEEPSEEK_API_KEY is not set" in missing
    assert "nobody/no-such-reranker-0.6B" in missing
    roles = {model["role"]: model for model in planned["models"]}
    assert roles["tasks parsed"]["expected"]["calls"] == 6
    assert roles["skills parsed (at most)"]["expected"]["calls"] == 91  # six tasks with 30 candidates, of 91 skills
    assert planned["cost"] == pytest.approx(sum(model["cost"] for model in planned["models"]))
    (process,) = planned["processes"]
    assert process["memory"]["weights"] == 0.6e9 * 2


def test_an_unknown_price_makes_the_cost_unknown(cache: Path, tmp_path: Path) -> None:
    arguments = ("plan", *SIX, "selector=none", "backbone=openai_compatible", "backbone.model=m")
    done = run_command(*arguments, cache=cache, cwd=tmp_path, OPENAI_API_KEY="x")
    assert done.returncode == 0, done.stderr
    assert "unknown" in done.stdout
    assert plan(cache, tmp_path, *arguments[1:], OPENAI_API_KEY="x")["cost"] is None


def test_a_cap_below_the_expected_cost_is_pointed_out(cache: Path, tmp_path: Path) -> None:
    backbone = ("selector=none", "backbone=gpt_5_4_mini", "run.max_cost=0.0001")
    (cap,) = plan(cache, tmp_path, *SIX, *backbone, OPENAI_API_KEY="x")["caps"]
    assert "run.max_cost=0.0001" in cap


def test_a_server_of_ones_own_is_planned_by_its_gpus(cache: Path, tmp_path: Path) -> None:
    options = ("backbone=qwen3_6_27b", "backbone.tensor_parallel_size=2", "backbone.replicas=3")
    planned = plan(cache, tmp_path, *SIX, "selector=none", *options)
    (process,) = planned["processes"]
    assert (process["processes"], process["gpus"]) == (3, 2)
    assert process["memory"]["weights"] == 27e9
    assert any("Qwen3.6-27B is not on this machine" in line for line in planned["missing"])


def test_a_cell_without_data_is_left_out_with_the_reason(cache: Path, tmp_path: Path) -> None:
    arguments = ("-m", "benchmark=alfworld,alfworld_seen", "selector=none", "benchmark.limit=2")
    planned = plan(cache, tmp_path, *arguments, code=1, ALFWORLD_DATA=str(tmp_path / "nowhere"))
    assert [cell["episodes"] for cell in planned["cells"]] == [2]


@pytest.mark.parametrize(
    ("mistake", "message"), [("selector=vectr", "did you mean 'vector'"), ("embedder.batch_size=0", "batch_size")]
)
def test_a_mistake_is_one_message(mistake: str, message: str, cache: Path, tmp_path: Path) -> None:
    done = run_command("plan", *SIX, mistake, cache=cache, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert message in done.stderr


def test_the_tables_say_cells_models_and_where_the_numbers_come_from(cache: Path, tmp_path: Path) -> None:
    done = run_command("plan", *SIX, "backbone=deepseek_v4_flash", cache=cache, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for words in ("1 cell, 6 episodes left", "Language models, whole sweep", "Selections: 6 different ones", "assumed"):
        assert words in done.stdout
