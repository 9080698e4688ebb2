"""Configuration is composed by Hydra, checked once, and every mistake says what to write instead."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.assembly import build, check_options
from skillarena.orchestration.hydra_run import CONF_DIR, compose, main
from skillarena.orchestration.settings import PARTS, Facts, Settings, digest, validate


@pytest.mark.parametrize("number", [10**400, -(10**19), 2**63, float("inf"), float("nan")])
def test_a_number_that_no_ledger_holds_is_refused_by_its_key(number: float) -> None:
    with pytest.raises(ConfigError, match=r"^benchmark.x: .{1,40} is out of range"):
        validate({"benchmark": {"x": number}})


def test_an_override_of_deep_brackets_is_refused_before_it_is_read() -> None:
    with pytest.raises(ConfigError, match="more than 50 deep"):
        compose(["seed=" + "[" * 20_000])


def test_every_choice_of_every_group_composes_and_names_options_its_class_knows() -> None:
    groups = [*PARTS, "agent", "run", "cluster", "tracking"]
    seen = 0
    for group in groups:
        for path in sorted((CONF_DIR / group).glob("*.yaml")):
            missing = [line.split(":")[0].strip() for line in path.read_text().splitlines() if ": ???" in line]
            where = "parser.model" if path.stem == "llm" else group
            extra = [f"{where}.{key}=[bundled]" if key == "paths" else f"{where}.{key}=m" for key in missing]
            settings = compose([f"{group}={path.stem}", *extra])
            if group in PARTS:
                check_options(getattr(settings, group), group)
            seen += 1
    assert seen >= 20


def test_every_experiment_composes() -> None:
    for path in (CONF_DIR / "experiment").glob("*.yaml"):
        assert isinstance(compose([f"experiment={path.stem}"]), Settings)


def test_every_key_of_every_choice_has_a_comment() -> None:
    bare = []
    for path in sorted(CONF_DIR.glob("*/*.yaml")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            key = line.split("#")[0].strip()
            explains_itself = key.endswith(":") or key.startswith(("- ", "name:", "_target_:"))
            if key and not explains_itself and "#" not in line and path.parent.name != "experiment":
                bare.append(f"{path.relative_to(CONF_DIR)}:{number}: {line}")
    assert bare == []


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["selector.kk=3"], "did you mean 'k'"),
        (["selector=skilreranker"], "did you mean 'skillreranker'"),
        (["+selector.kk=3"], "did you mean 'k'"),
        (["bakbone=simulated"], "did you mean 'backbone'"),
        (["run.max_attemps=3"], "did you mean 'max_attempts'"),
        (["+run.max_attemps=3"], "did you mean 'max_attempts'"),
        (["run.max_attempts=0"], "greater than or equal to 1"),
        (["seed=-1"], "greater than or equal to 0"),
        (["run.on_cell_error=explode"], "'continue' or 'stop'"),
        (["backbone=openai_compatible"], "backbone.model has no value"),
        (["selector._target_=no.such.Thing"], "cannot import"),
        (["selector.k=3.5.6"], "selector: k must be a whole number"),
        (["selector.k=[1"], "selector.k"),
    ],
)
def test_a_mistake_names_the_key_and_what_to_write_instead(overrides: list[str], expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        settings = compose(overrides)
        build(settings.selector, "selector", parts=_Parts())
    assert expected in str(caught.value)
    assert caught.value.fix


class _Parts:
    library = range(100)


FACTS = Facts("library", "tasks", {"embedder": "e", "reranker": "r", "parser": "p"}, "weights", "code")


def test_the_identity_ignores_where_things_are_and_sees_what_they_are() -> None:
    base = compose([]).identity(FACTS)
    for same in ("output_dir=elsewhere", "run.max_attempts=9", "tracking.enabled=false", "benchmark.data=/x"):
        assert compose([same]).identity(FACTS) == base, same
    for other in ("seed=1", "selector.k=9", "benchmark.max_steps=5", "backbone.slip_covered=0.1", "agent.max_turns=3"):
        assert digest(compose([other]).identity(FACTS)) != digest(base), other
    for change in ({"library": "another"}, {"tasks": "other tasks"}, {"selector_code": "edited"}):
        assert digest(compose([]).identity(replace(FACTS, **change))) != digest(base), change


def test_models_that_the_selector_does_not_read_are_no_part_of_the_identity() -> None:
    facts = replace(FACTS, models={})
    base = compose(["selector=none"]).identity(facts)
    assert compose(["selector=none", "reranker.scale=3"]).identity(facts) == base
    assert "reranker" not in base


@pytest.mark.parametrize("uri", ["http://me:pw@host", "https://host/?password=x"])
def test_a_tracking_uri_with_a_password_is_refused_without_repeating_it(uri: str) -> None:
    with pytest.raises(ConfigError, match="MLFLOW_TRACKING_PASSWORD") as caught:
        compose([f"tracking.uri='{uri}'"])
    assert uri not in str(caught.value)


def test_settings_are_frozen_plain_data() -> None:
    import pickle

    settings = compose([])
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert yaml.safe_load(yaml.safe_dump(settings.model_dump(mode="json")))["seed"] == 0


def test_help_answers_without_heavy_imports() -> None:
    code = (
        "import sys\n"
        "from skillarena.orchestration import cli\n"
        "heavy = {'ray', 'torch', 'mlflow', 'hydra', 'textworld', 'pydantic', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_selectors_has_no_init_file_so_the_standard_library_keeps_its_module() -> None:
    root = Path(__file__).resolve().parents[2]
    assert not (root / "selectors" / "__init__.py").exists()
    code = "import selectors, asyncio; assert selectors.DefaultSelector; import skillarena.selectors.interface"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=root)


def test_an_option_that_only_the_swept_choices_know_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Settings] = []

    def keep(all_settings: Sequence[Settings]) -> int:
        found.extend(all_settings)
        return 0

    monkeypatch.setattr(sys, "argv", ["skillarena"])
    assert main(["-m", "selector=random,vector", "selector.top_k=3", "seed=1"], keep) == 0
    assert [(settings.selector["name"], settings.selector["top_k"]) for settings in found] == [
        ("random", 3),
        ("vector", 3),
    ]
