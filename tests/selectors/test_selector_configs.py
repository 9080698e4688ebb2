"""The shipped choices of the groups ``selector`` and ``parser`` name real classes and exactly their options."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

CONF = Path(__file__).parents[2] / "conf"
EVERY = sorted([*(CONF / "selector").glob("*.yaml"), *(CONF / "parser").glob("*.yaml")])
VARIANTS = [path for path in EVERY if "defaults" in yaml.safe_load(path.read_text(encoding="utf-8"))]
"""Files that only change values of another choice."""
FILES = [path for path in EVERY if path not in VARIANTS]


def named_class(section: dict[str, Any]) -> Any:
    module, _, name = section["_target_"].rpartition(".")
    return getattr(import_module(module), name)


def test_every_method_of_the_study_has_a_file() -> None:
    published = {"skillreranker", "llm_selector", "skillrouter", "graph_of_skills", "skilldag", "spem"}
    ablations = {"without_edges", "without_parsing", "without_split"}
    references = {"none", "random", "vector", "vanilla", "oracle"}
    assert published | ablations | references <= {path.stem for path in FILES}
    assert {"heuristic", "llm"} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_choice_gives_every_option_with_a_comment(path: Path) -> None:
    section = yaml.safe_load(path.read_text(encoding="utf-8"))
    parameters = inspect.signature(named_class(section)).parameters
    assert section["name"] == path.stem
    assert set(section) - {"name", "_target_"} == set(parameters) - {"parts"}
    for option, value in section.items():
        if option not in ("name", "_target_", "model"):
            assert value == parameters[option].default
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    uncommented = [line for line in lines[3:] if "#" not in line]
    assert uncommented in ([], ["model:"])


@pytest.mark.parametrize("path", VARIANTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_variant_changes_options_of_the_choice_it_is_made_from(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    section = yaml.safe_load(text)
    (base,) = section.pop("defaults")
    original = yaml.safe_load((path.parent / f"{base}.yaml").read_text(encoding="utf-8"))
    assert section.keys() <= original.keys()
    assert all(original[key] != value for key, value in section.items())
    assert text.startswith(f"# `{path.parent.name}={base}` with ")


def test_the_parsing_model_is_configured_by_its_own_options() -> None:
    section = yaml.safe_load((CONF / "parser" / "llm.yaml").read_text(encoding="utf-8"))["model"]
    assert set(section) - {"_target_"} <= set(inspect.signature(named_class(section)).parameters)
