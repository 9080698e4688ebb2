"""What people type and what variables of the environment say: a result, or one message with the fix."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import orjson
import pytest
from hostile import fuzzed, texts
from hypothesis import given
from hypothesis import strategies as st
from row_factory import make_row
from test_files import CONFIG

from skillarena.conf.errors import ConfigError, DataError, SkillArenaError
from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.cache_dir import cache_root
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.console import plain
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.report.case_study import check_figure_file
from skillarena.orchestration.report.episode import find_episode
from skillarena.orchestration.report.sides import read_side
from skillarena.orchestration.settings import TrackingSettings
from skillarena.orchestration.tracking_store import tracking_uri, with_uri


@pytest.fixture(scope="module")
def cell() -> Iterator[Path]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.json").write_bytes(orjson.dumps(CONFIG))
        rows = [make_row(number, episode_id=f"{number}abc{'0' * 60}") for number in range(2)]
        (folder / "episodes.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)) + b"\n")
        yield folder


def argument(text: str) -> str:
    """As a process gets it: no NUL, and bytes that are no text as half characters."""
    return text.replace("\0", "").encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")


WORDS = texts("0abc", "1ABC", ":", "task 1", "/", "..", "FOLDER", "vector", "~", "~x")


@pytest.mark.slow
@fuzzed
@given(
    texts("selector=", "vector", "seed=", "run.attempts=", "agent", "benchmark.limit=", "1", "${", "}", "+", "~", "++")
)
def test_override(text: str) -> None:
    try:
        compose([text])
    except ConfigError as error:
        assert str(error)


@fuzzed
@given(WORDS)
def test_episode_to_show(cell: Path, wanted: str) -> None:
    wanted = argument(wanted)
    for word in (wanted, wanted.replace("FOLDER", str(cell))):
        try:
            assert find_episode(word, [cell]).row.episode_id
        except (ConfigError, DataError) as error:
            assert error.fix


@fuzzed
@given(WORDS)
def test_side_of_a_comparison(cell: Path, given: str) -> None:
    try:
        assert read_side(argument(given).replace("FOLDER", str(cell))).lines
    except (ConfigError, DataError) as error:
        assert error.fix


@fuzzed
@given(WORDS, st.sampled_from((".svg", ".png", ".html", "")))
def test_file_of_a_figure(wanted: str, ending: str) -> None:
    try:
        check_figure_file(Path(argument(wanted) + ending))
    except ConfigError as error:
        assert error.fix


@fuzzed
@given(texts("\x1b[31m", "\x9b", "\u202e", "\u2066", "\u200b", "a"))
def test_text_for_the_terminal(text: str) -> None:
    shown = plain(text)
    assert len(shown) == len(text)
    assert not set(shown) & set("\x00\x07\x08\x1b\x7f\x9b\u061c\u200e\u200f\u202a\u202b\u202e\u2066\u2067\u2069\ud800")


# --- variables of the environment


@fuzzed
@given(WORDS)
def test_folders_named_by_variables(wanted: str) -> None:
    name = argument(wanted)
    with patch.dict(os.environ, {"SKILLARENA_CACHE": name, "ALFWORLD_DATA": name}):
        try:
            assert cache_root().is_absolute()
            assert AlfworldBenchmark(split=name)
        except SkillArenaError as error:
            assert error.fix


@fuzzed
@given(texts("http://", "sqlite:///", "user:secret@", "host", "?token=secret").map(argument))
def test_address_of_mlflow(value: str) -> None:
    with patch.dict(os.environ, {"MLFLOW_TRACKING_URI": value}):
        assert tracking_uri(TrackingSettings(), "outputs")
    try:
        assert with_uri(TrackingSettings(), value)
    except ConfigError as error:
        assert "secret" not in str(error)


@fuzzed
@given(texts("http://", "https://", "host", ":80", "/v1", "user:secret@", "?key=secret", "[::1]", "#"))
def test_address_of_a_server(url: str) -> None:
    try:
        OpenAICompatible(base_url=argument(url), model="m").close()
    except ConfigError as error:
        assert "secret" not in str(error)
