"""Every preset composes to the cells that its table needs, and plays in small."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from command import cells, rows_of, run_command

from skillarena.orchestration.hydra_run import compose, main
from skillarena.orchestration.settings import Settings

EXPERIMENTS = Path(__file__).parents[2] / "conf" / "experiment"

TABLES = ("table1", "table2_ablations", "table3_tokens", "k_sweep")
SPLITS = {
    ("alfworld", "valid_seen"),
    ("alfworld", "valid_unseen"),
    ("scienceworld", "seen"),
    ("scienceworld", "unseen"),
}
SIZED = {(name, size) for name in ("llm_selector", "graph_of_skills", "vector", "random") for size in (1, 2)}
METHODS = {("skillreranker", None), *SIZED, ("oracle", None), ("vanilla", None), ("none", None)}
ABLATIONS = {
    ("skillreranker", None),
    ("without_parsing", 1),
    ("without_parsing", 2),
    ("without_edges", 1),
    ("without_edges", 2),
    ("without_split", None),
}
THREE = {"deepseek_v4_flash", "gpt_5_4_mini", "qwen3_6_27b"}


@cache
def composed(*arguments: str) -> list[Settings]:
    """The settings of all cells of a command line; Hydra takes some tenths of a second for each."""
    found: list[Settings] = []

    def keep(all_settings: Sequence[Settings]) -> int:
        found.extend(all_settings)
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["skillarena"])  # Hydra's way to be told its arguments
        assert main(arguments, keep) == 0
    return found


def methods(found: Sequence[Settings]) -> set[tuple[str, int | None]]:
    return {(settings.selector["name"], settings.selector.get("top_k")) for settings in found}


@pytest.mark.parametrize("path", sorted(EXPERIMENTS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_preset_composes_and_says_what_it_is(path: Path) -> None:
    assert compose([f"experiment={path.stem}"])
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# @package _global_"
    assert lines[1].startswith("# ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backbones", "selectors", "count"),
    [
        ("table1", THREE, METHODS, 3 * 4 * 12),
        ("table1_skillrouter", THREE, {("skillrouter", 1), ("skillrouter", 2)}, 3 * 4 * 2),
        ("table2_ablations", THREE - {"gpt_5_4_mini"}, ABLATIONS, 2 * 4 * 6),
        ("table3_tokens", THREE, METHODS, 3 * 4 * 12),
        ("k_sweep", {"qwen3_6_27b"}, {("skillreranker", None)}, 4 * 5),
    ],
)
def test_a_table_has_its_cells(
    name: str, backbones: set[str], selectors: set[tuple[str, int | None]], count: int
) -> None:
    found = composed(f"experiment={name}")
    assert len(found) == count
    assert {settings.backbone["name"] for settings in found} == backbones
    assert methods(found) == selectors
    assert {(settings.benchmark["name"], settings.benchmark["split"]) for settings in found} == SPLITS
    assert len({settings.model_dump_json() for settings in found}) == count


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_published_settings(name: str) -> None:
    for settings in composed(f"experiment={name}"):
        assert settings.embedder["name"] == "qwen3_embedding_0_6b"
        assert settings.reranker["name"] == "qwen3_reranker_0_6b"
        assert settings.parser["model"]["model"] == "deepseek-v4-flash"
        assert settings.llm["model"] == "mimo-v2.5-pro"
        assert settings.parser["model"]["temperature"] == 0
        assert settings.backbone["temperature"] == 0
        assert settings.benchmark["max_steps"] == 30
        assert settings.benchmark["limit"] is None
        assert settings.agent.max_tokens is None
        if name != "k_sweep":
            assert settings.selector.get("k", 30) == 30


@pytest.mark.slow
def test_skillrouter_is_played_with_its_own_models() -> None:
    for settings in composed("experiment=table1_skillrouter"):
        assert settings.embedder["name"] == "skillrouter_embedding_0_6b"
        assert settings.reranker["name"] == "skillrouter_reranker_0_6b"


@pytest.mark.slow
def test_k_sweep_varies_k() -> None:
    assert {settings.selector["k"] for settings in composed("experiment=k_sweep")} == {5, 10, 20, 30, 50}


@pytest.mark.slow
def test_tables_1_and_3_are_the_same_cells() -> None:
    assert composed("experiment=table1") == composed("experiment=table3_tokens")


def test_a_swept_axis_is_replaced_on_the_command_line() -> None:
    found = composed(
        "experiment=table1", "backbone=simulated", "selector=none,vector", "benchmark=alfworld", "seed=0,1"
    )
    assert len(found) == 4
    assert {settings.benchmark["split"] for settings in found} == {"generated_seen"}
    assert {settings.backbone["name"] for settings in found} == {"simulated"}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_laptop_makes_a_table_small_and_free_of_downloads(name: str) -> None:
    for settings in composed(f"experiment=[{name},laptop]"):
        parts = (settings.backbone, settings.embedder, settings.reranker, settings.parser, settings.llm)
        assert [part["name"] for part in parts] == ["simulated", "minilm", "similarity", "heuristic", "simulated"]
        assert settings.benchmark["split"] in ("generated_seen", "seen")
        assert settings.benchmark["limit"] == 2


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all sweeps."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "count"), [("table1", 24), ("table1_skillrouter", 4), ("table2_ablations", 12), ("k_sweep", 10)]
)
def test_a_table_plays_on_a_laptop(name: str, count: int, kept: Path, tmp_path: Path) -> None:
    small = ("benchmark.limit=1", "tracking.enabled=false", "run.bootstrap_resamples=100")
    done = run_command("run", f"experiment=[{name},laptop]", *small, cache=kept, cwd=tmp_path, timeout=500)
    assert done.returncode == 0, done.stderr
    rows = [row for cell in cells(tmp_path / "outputs") for row in rows_of(cell)]
    assert len(cells(tmp_path / "outputs")) == len(rows) == count
    assert all(row.outcome in ("solved", "step_limit", "failed") for row in rows)
    if name == "table1":
        third = run_command("run", "experiment=[table3_tokens,laptop]", *small, cache=kept, cwd=tmp_path)
        assert third.returncode == 0, third.stderr
        assert "24 finished earlier" in third.stderr


def test_the_parser_of_the_paper_asks_its_model_like_the_backbone_of_that_name() -> None:
    settings = compose(["backbone=deepseek_v4_flash", "parser=deepseek_v4_flash"])
    for key in ("_target_", "base_url", "model", "api_key_env", "temperature", "price", "extra_body"):
        assert settings.parser["model"][key] == settings.backbone[key], key


@pytest.mark.slow
def test_a_table_without_the_official_games_says_how_to_get_them(tmp_path: Path) -> None:
    parts = ("backbone=simulated", "parser=heuristic", "reranker=similarity", "embedder=minilm")
    arguments = ("run", "experiment=table1", *parts, "benchmark=alfworld_seen")
    done = run_command(*arguments, cache=tmp_path, cwd=tmp_path, ALFWORLD_DATA=str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert done.stderr.count("error:") == 1
    assert "skillarena data alfworld" in done.stderr
    assert "generated_seen" in done.stderr
