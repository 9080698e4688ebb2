"""Every mistake of a user is one message with the fix, exit code 2, and nothing half-written."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from command import run_command
from stub_server import StubServer

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.hydra_run import compose

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def refuse(cache: Path, folder: Path, *overrides: str, **env: str) -> str:
    done = run_command("run", *overrides, cache=cache, cwd=folder, **env)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("error:") == 1, done.stderr
    assert "fix:" in done.stderr
    assert not (folder / "outputs").exists()
    return done.stderr


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["selector.kk=3"], "did you mean 'k'"),
        (["selector=skilreranker"], "did you mean 'skillreranker'"),
        (["selector.k=100000"], "100000"),
        (["benchmark.split=valid_seen", "benchmark.data=no/such/folder"], "no/such/folder"),
        (["benchmark.split=valid_sen"], "valid_sen"),
        (["library.paths=[no/such/library]"], "no/such/library"),
        (["benchmark.task_types=[pick_and_place]"], "did you mean 'pick_and_place_simple'"),
        (["benchmark.task_ids=[ffffffffffff]"], "ffffffffffff"),
        (["benchmark.limit=0"], "limit"),
        (["run.max_attempts=many"], "max_attempts"),
    ],
)
def test_a_wrong_value(cache: Path, tmp_path: Path, overrides: list[str], message: str) -> None:
    assert message in refuse(cache, tmp_path, *overrides)


def test_a_sweep_with_a_misspelt_selector_starts_nothing(cache: Path, tmp_path: Path) -> None:
    done = run_command("run", "-m", "selector=vector,vectr", cache=cache, cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'vector'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_game_file(cache: Path, tmp_path: Path) -> None:
    from skillarena.envs.alfworld_generator import generate

    data = tmp_path / "data"
    (game, *_) = generate(data, "generated_seen", games_per_type=1, seed=5)
    game.write_text('{"pddl_domain": "(define')
    (data / "json_2.1.1" / "generated_seen").rename(data / "json_2.1.1" / "valid_seen")
    text = refuse(cache, tmp_path, "benchmark.split=valid_seen", f"benchmark.data={data}", "benchmark.limit=3")
    assert game.parent.name in text


def test_an_unreadable_skill(cache: Path, tmp_path: Path) -> None:
    for name, content in {"good": b"---\nname: good\ndescription: fine\n---\nBody.\n", "bad": b"\x00\x01\x02"}.items():
        (tmp_path / "skills" / name).mkdir(parents=True)
        (tmp_path / "skills" / name / "SKILL.md").write_bytes(content)
    (tmp_path / "skills" / "gone").mkdir()
    (tmp_path / "skills" / "gone" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    text = refuse(cache, tmp_path, f"library.paths=[{tmp_path / 'skills'}]", "selector.k=1")
    assert "gone" in text


def test_a_dead_url(cache: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    text = refuse(
        cache,
        tmp_path,
        "backbone=openai_compatible",
        "backbone.model=some-model",
        f"backbone.base_url=http://127.0.0.1:{port}/v1",
        "backbone.api_key_env=null",
        "benchmark.limit=1",
    )
    assert str(port) in text


def test_a_missing_key(cache: Path, tmp_path: Path) -> None:
    text = refuse(cache, tmp_path, "backbone=openai_compatible", "backbone.model=m", "backbone.api_key_env=NO_SUCH_KEY")
    assert "NO_SUCH_KEY" in text


def test_a_wrong_key_is_refused_without_being_repeated(cache: Path, tmp_path: Path) -> None:
    with StubServer(key="the-right-one") as server:
        text = refuse(
            cache,
            tmp_path,
            "backbone=openai_compatible",
            "backbone.model=stub-model",
            f"backbone.base_url={server.url}",
            "backbone.api_key_env=SOME_KEY",
            "benchmark.limit=1",
            SOME_KEY="canary-wrong-key",
        )
    assert "SOME_KEY" in text
    assert "canary-wrong-key" not in text


def test_java_missing(cache: Path, tmp_path: Path) -> None:
    text = refuse(cache, tmp_path, "benchmark=scienceworld", "benchmark.limit=1", "benchmark.java=/no/such/java")
    assert "needs Java: /no/such/java" in text


@pytest.mark.parametrize("override", ["selector=null", "seed=" + "9" * 5000, "selector=vector" + "x" * 300])
def test_overrides_that_hydra_itself_stumbles_over_are_told_in_one_line(override: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compose([override])
    assert len(str(caught.value)) < 2500
