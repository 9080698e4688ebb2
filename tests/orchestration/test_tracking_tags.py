"""Names, tags and parameters of runs: what MLflow's table can group and tell apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_cells import make_cell

from skillarena.orchestration.ledger import read_config
from skillarena.orchestration.tracking_tags import (
    cell_name,
    cell_params,
    cell_tags,
    sweep_name,
    sweep_params,
    sweep_tags,
)

NAME = "3f2a61bc90de"


@pytest.fixture
def configs(tmp_path: Path) -> Any:
    def make(**options: Any) -> dict[str, Any]:
        return read_config(make_cell(tmp_path, **options))

    return make


def test_a_cells_name_begins_with_its_method(configs: Any) -> None:
    config = configs(selector="skillreranker", k=10, seed=3)
    assert cell_name(config) == "skillreranker k=10 alfworld/valid_seen simulated seed=3"


def test_names_say_where_no_language_model_played(configs: Any) -> None:
    real = configs(backbone="qwen3_6_27b", simulated=False)
    ranked = configs(backbone="qwen3_6_27b", simulated=True, seed=1)
    assert "simulated" not in cell_name(real)
    assert cell_name(ranked).endswith("[simulated]")
    assert sweep_name(NAME, [ranked, ranked]).endswith("[simulated]")
    assert sweep_name(NAME, [real, ranked]).endswith("[partly simulated]")
    assert "simulated" not in sweep_name(NAME, [real])


def test_every_axis_of_a_cell_is_a_tag(configs: Any) -> None:
    tags = cell_tags(configs(selector="vector", top_k=2, k=10))
    expected = {
        "kind": "cell",
        "selector": "vector",
        "k": "10",
        "top_k": "2",
        "benchmark": "alfworld",
        "split": "valid_seen",
        "backbone": "simulated",
        "embedder": "minilm",
        "library": "bundled",
        "seed": "0",
        "simulated": "true",
    }
    assert expected.items() <= tags.items()


def test_models_that_a_selector_does_not_use_are_no_tags(configs: Any) -> None:
    assert not {"embedder", "reranker", "parser", "llm"} & cell_tags(configs(selector="none")).keys()
    assert {"embedder", "reranker"} <= cell_tags(configs(selector="without_parsing")).keys()


def test_the_parameters_are_all_that_results_depend_on(configs: Any) -> None:
    params = cell_params(configs(selector="vector", top_k=2, k=10))
    assert {
        "selector.k": "10",
        "selector.top_k": "2",
        "seed": "0",
        "backbone.name": "simulated",
    }.items() <= params.items()


def test_a_sweeps_name_lists_two_values_of_an_axis_and_counts_more(configs: Any) -> None:
    cells = [
        configs(selector=selector, benchmark=benchmark)
        for selector in ("vector", "skillreranker", "none")
        for benchmark in ("alfworld", "scienceworld")
    ]
    name = sweep_name(NAME, cells)
    assert name.startswith(f"sweep {NAME[:6]} alfworld/valid_seen+scienceworld/seen ")
    assert "3 selectors" in name
    assert name.endswith(" simulated")


def test_sweeps_over_sizes_and_seeds_say_so(configs: Any) -> None:
    cells = [configs(selector="vector", top_k=top_k, seed=seed) for top_k in (1, 2) for seed in (0, 1, 2)]
    assert "vector top_k=1+2 simulated 3 seeds" in sweep_name(NAME, cells)


def test_a_sweep_is_tagged_with_what_its_cells_share_and_lists_the_rest(configs: Any) -> None:
    cells = [configs(selector="vector", top_k=top_k) for top_k in (10, 2)]
    tags, params = sweep_tags(NAME, cells), sweep_params(cells)
    assert tags["selector"] == "vector"
    assert "top_k" not in tags
    assert params["top_k"] == "2, 10"
    assert params["cells"] == "2"
