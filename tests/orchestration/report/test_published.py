"""Published numbers: complete, found under our names, and compared setting by setting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_cells import AS_PUBLISHED, make_cell

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.lines import Line, Setting, lines_of
from skillarena.orchestration.report.published import (
    PublishedNumber,
    backbone_models,
    differences,
    method_differences,
    papers,
    published,
)

SEEN = Setting("deepseek_v4_flash", "alfworld", "valid_seen")
DATA = Path(__file__).parents[4] / "shared" / "data"


def line(root: Path, **changes: Any) -> Line:
    """The one line of a cell with the published settings but for some."""
    make_cell(root, **{**AS_PUBLISHED, **changes})
    (found,) = lines_of(load([root]).cells)
    return found


def number(of: Line, measure: str = "reward") -> PublishedNumber:
    """The first published number of a line."""
    return published(of.setting, backbone_models(of.cells), of.selector, measure)[0]


@pytest.mark.parametrize(
    ("backbone", "benchmark", "split", "selector", "measure", "value"),
    [
        ("deepseek_v4_flash", "alfworld", "valid_seen", "skillreranker", "reward", 84.65),
        ("deepseek_v4_flash", "alfworld", "valid_unseen", "skillrouter", "reward", 73.14),
        ("gpt_5_4_mini", "scienceworld", "seen", "graph_of_skills", "env_steps", 16.22),
        ("qwen3_6_27b", "scienceworld", "unseen", "without_split", "reward", 68.47),
        ("qwen3_6_27b", "alfworld", "valid_seen", "without_parsing", "reward", 65.0),
        ("qwen3_6_27b", "alfworld", "valid_seen", "without_edges", "reward", 74.29),
        ("gpt_5_4_mini", "alfworld", "valid_seen", "llm_selector", "total_tokens", 104807),
        ("gpt_5_4_mini", "alfworld", "valid_unseen", "skillreranker", "skills_selected", 1.291),
        ("deepseek_v4_flash", "scienceworld", "seen", "skillrouter", "skills_selected", 1.5),
    ],
)
def test_our_names_find_the_papers_numbers(
    backbone: str, benchmark: str, split: str, selector: str, measure: str, value: float
) -> None:
    (found,) = published(Setting(backbone, benchmark, split), frozenset(), selector, measure)
    assert found.value == value
    assert found.source.startswith("arXiv 2607.06283v1, table")


@pytest.mark.parametrize("model", ["MiniMax-M2.7", "minimax/MiniMax-M2.7", "minimax_m2_7"])
def test_a_backbone_without_a_file_of_its_own_is_found_by_its_model(model: str) -> None:
    setting = Setting("openai_compatible", "alfworld", "valid_seen")
    (found,) = published(setting, frozenset({model}), "vanilla", "env_steps")
    assert (found.value, found.paper.arxiv) == (21.24, "2610.26995v1")


def test_numbers_of_several_papers_keep_their_sources() -> None:
    found = published(Setting("MiniMax-M2.7", "alfworld", "valid_seen"), frozenset(), "skilldag", "success")
    assert [(one.source, one.value) for one in found] == [
        ("arXiv 2610.26995v1, table 1", 63.3),
        ("arXiv 2606.03056v1, abstract", 67.1),
    ]
    assert all(one.uncertain for one in found)


def test_success_is_reward_where_a_task_is_solved_or_not() -> None:
    spem = Setting("GPT-5.2-Codex", "alfworld", "valid_seen")
    assert published(spem, frozenset(), "spem_frozen", "reward")[0].value == 87.1
    assert published(SEEN, frozenset(), "skillreranker", "success")[0].value == 84.65
    other = Setting("deepseek_v4_flash", "scienceworld", "seen")
    assert published(other, frozenset(), "skillreranker", "success") == ()


def test_nobody_published_anything_simulated() -> None:
    assert published(Setting("simulated", "alfworld", "valid_seen"), frozenset(), "skillreranker", "reward") == ()


def test_every_paper_says_where_it_is_from() -> None:
    assert [paper.arxiv for paper in papers()] == ["2607.06283v1", "2610.26995v1", "2606.03056v1"]
    assert all(paper.title and paper.not_said for paper in papers())
    assert [len(table.rows) for table in papers()[0].tables] == [48, 32, 48]


def test_the_numbers_are_those_of_the_reference_tables() -> None:
    path = DATA / "paper_tables.json"
    if not path.exists():
        pytest.skip(f"no reference data at {path}")
    reference = json.loads(path.read_text())
    names = {"skillreranker": "SkillReranker", "llm_selector": "LLM-as-selector", "skillrouter": "SkillRouter"}
    splits = {"valid_seen": "seen", "valid_unseen": "unseen", "seen": "seen", "unseen": "unseen"}
    checked = 0
    for backbone, ours in {"DeepSeek-v4-Flash": "deepseek_v4_flash", "GPT-5.4-Mini": "gpt_5_4_mini"}.items():
        for selector, theirs in {**names, "graph_of_skills": "Graph of Skills"}.items():
            for benchmark, title in {"alfworld": "ALFWorld", "scienceworld": "ScienceWorld"}.items():
                for split, their_split in (
                    list(splits.items())[:2] if benchmark == "alfworld" else list(splits.items())[2:]
                ):
                    cell = reference["table1"][backbone][theirs][title][their_split]
                    tokens = reference["table3"][backbone][theirs][title][their_split]["tokens"]
                    setting = Setting(ours, benchmark, split)
                    for measure, value in {"reward": cell["R"], "env_steps": cell["S"], "total_tokens": tokens}.items():
                        assert published(setting, frozenset(), selector, measure)[0].value == value
                        checked += 1
    assert checked == 96


def test_the_numbers_that_look_wrong_are_marked() -> None:
    setting = Setting("qwen3_6_27b", "scienceworld", "unseen")
    assert "71 %" in published(setting, frozenset(), "skillreranker", "total_tokens")[0].uncertain
    assert published(setting, frozenset(), "graph_of_skills", "total_tokens")[0].uncertain == ""


def test_the_published_settings_differ_in_nothing(tmp_path: Path) -> None:
    found = line(tmp_path)
    assert differences(found, number(found)) == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"k": 10}, "Candidates from coarse recall (K): 10 here, 30 published."),
        ({"options": {"benchmark.max_steps": 50}}, "Steps in an episode at most: 50 here, 30 published."),
        ({"rewards": [100.0] * 120}, "Tasks: 120 here, 140 published."),
        ({"library_size": 40}, "Skills in the library: 40 here, 67,884 published."),
        ({"library_size": None}, "Skills in the library: not known here, 67,884 published."),
        ({"embedder": "minilm"}, "Embedder: minilm here, Qwen3-Embedding-0.6B published."),
        ({"reranker": "similarity"}, "Reranker: similarity here, Qwen3-Reranker-0.6B published."),
        ({"parser": "heuristic"}, "Parser: heuristic here, DeepSeek-v4-Flash published."),
        ({"options": {"backbone.temperature": 0.7}}, "Temperature: 0.7 here, 0 published."),
        ({"options": {"backbone.model": "own/tuned"}}, "Model: own/tuned here, DeepSeek-v4-Flash published."),
        (
            {"options": {"backbone.quantization": "fp8"}},
            "Quantization of the backbone: fp8 here; the paper names none.",
        ),
    ],
)
def test_every_other_setting_is_one_sentence(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    found = line(tmp_path, **changes)
    assert differences(found, number(found)) == (sentence,)


def test_a_model_that_the_method_does_not_use_makes_no_difference(tmp_path: Path) -> None:
    found = line(tmp_path, selector="llm_selector", reranker="similarity", parser="heuristic", llm="gpt_5_4_mini")
    assert differences(found, number(found)) == (
        "Skills for a task: 1 here, the mean of runs with 1 and 2 published.",
        "Llm: gpt-5.4-mini here, Mimo-v2.5-Pro published.",
    )


def test_the_mean_of_sizes_is_what_was_published(tmp_path: Path) -> None:
    for selector in ("llm_selector", "llm_selector_top2"):
        make_cell(tmp_path, **{**AS_PUBLISHED, "selector": selector})
    one, mean, two = lines_of(load([tmp_path]).cells)
    assert differences(mean, number(mean)) == ()
    assert [len(method_differences(half, number(half))) for half in (one, two)] == [1, 1]


def test_other_simplifications_than_usual_are_named(tmp_path: Path) -> None:
    changes = {"benchmark": "scienceworld", "rewards": [30.0] * 194}
    found = line(tmp_path / "usual", **changes)
    assert differences(found, number(found)) == ()
    found = line(tmp_path / "other", **changes, options={"benchmark.simplifications": ""})
    assert differences(found, number(found)) == (
        "Simplifications: none here; the paper names none, and easy is usual for agents.",
    )


def test_a_learning_method_without_memory_differs_from_one_that_has_learned(tmp_path: Path) -> None:
    options = {"backbone.model": "GPT-5.2-Codex", "selector.top_k": 0}
    found = line(tmp_path, selector="skilldag", backbone="openai_compatible", library_size=37, options=options)
    numbers = published(found.setting, backbone_models(found.cells), "skilldag", "success")
    assert [one.value for one in numbers] == [85.7, 93.6]
    sentences = differences(found, numbers[1])
    assert "Embedder: Qwen/Qwen3-Embedding-0.6B here, text-embedding-3-large published." in sentences
    assert any(sentence.startswith("Memory: empty at the start here") for sentence in sentences)
    assert method_differences(found, numbers[1]) == ()
