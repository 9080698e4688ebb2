"""Everything that was written down earlier and is read again: a sound value, none, or the one kind of error, soon."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import orjson
import pytest
from hostile import changed, data, fuzzed
from hypothesis import given
from hypothesis import strategies as st
from row_factory import make_row

from skillarena.conf.errors import BackboneError, ConfigError, DataError, RerankerError
from skillarena.envs.alfworld_translation import _read as read_translation
from skillarena.envs.interface import EndReason
from skillarena.envs.json_file import read_json
from skillarena.envs.scienceworld_goals import kept_goals
from skillarena.envs.scienceworld_gold import _actions_in
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.model_files import find_model
from skillarena.orchestration.learning import _read_lessons
from skillarena.orchestration.ledger import _row, read_trajectories
from skillarena.orchestration.plan_memory import facts_from_folder
from skillarena.orchestration.report.archive import load, read_cell, read_cell_config
from skillarena.orchestration.report.case_model import case_study
from skillarena.orchestration.report.episode import Episode
from skillarena.orchestration.report.episode_text import episode_blocks
from skillarena.orchestration.report.report import build_report
from skillarena.orchestration.report.report_json import report_json
from skillarena.orchestration.selection_store import selection_from_json, selection_to_json
from skillarena.orchestration.sweep_file import read_sweep, read_sweep_name
from skillarena.orchestration.trajectory import Trajectory, Turn
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.checkpoint import Checkpoint, architecture
from skillarena.selectors.index_store import IndexStore
from skillarena.selectors.interface import ParsedTask, SelectedSkill, Selection
from skillarena.selectors.llm import Answer
from skillarena.selectors.parser_cache import stored_parse
from skillarena.selectors.skilldag.journal import read_episodes
from skillarena.selectors.spem.memory import Memory

SKILL = SelectedSkill(id="a", name="n", description="d", text="b", score=0.5, reason="r")
SELECTION = Selection((SKILL,), guidance="g", marks=("m",), details={"method": "vector", "ranking": ["a"]})
TURN = Turn("Action: look", "t", "look", False, True, "You see.", 1.0, Usage(1, 2), "stop", 0.1, 0.1)
TRAJECTORY = Trajectory(
    "e1", 0, "b", "s", "t1", "task 1", "kind", "goal", "m", True, ("a",), "Hello.", (TURN,), EndReason.SOLVED, 100.0,
    1.0, True, 1.0, 0.1,
)  # fmt: skip
CONFIG = {
    "identity": {"benchmark": {"name": "b"}, "selector": {"name": "vector", "k": 5}, "backbone": {"name": "m"}},
    "cell": {
        "id": "0" * 64, "name": "c", "simulated": True, "library_size": 3,
        "axes": {"benchmark": "b", "split": "s", "selector": "vector", "backbone": "m", "top_k": "2"},
    },
    "settings": {
        "benchmark": {"name": "b", "max_steps": 30}, "selector": {"name": "vector", "k": 5, "top_k": 2},
        "backbone": {"name": "m", "model": "x", "temperature": 0.0}, "run": {"bootstrap_resamples": 100}, "seed": 0,
    },
    "tasks": [{"id": f"t{number}", "name": f"task {number}", "type": "kind"} for number in range(3)],
}  # fmt: skip


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """One folder for all cases of a test; each writes its files anew."""
    with TemporaryDirectory() as name:
        yield Path(name)


# --- a cell's folder


@fuzzed
@given(changed(asdict(make_row(1))) | data('{"episode_id": "'))
def test_line_of_a_ledger(line: bytes) -> None:
    found = _row(line)
    if found is None:
        return
    assert found.outcome in set(EndReason)
    assert found.outcome == EndReason.INFRA_ERROR or None not in (found.reward, found.success)
    assert orjson.loads(orjson.dumps(found))["skills"] == list(found.skills)
    assert found.total_tokens >= 0


@fuzzed
@given(changed(CONFIG) | data('{"identity": {'), st.integers(0, 3))
def test_configuration_of_a_cell(folder: Path, content: bytes, rows: int) -> None:
    (folder / "config.json").write_bytes(content)
    (folder / "episodes.jsonl").write_bytes(b"\n".join(orjson.dumps(make_row(number)) for number in range(rows)))
    try:
        cell = read_cell(folder)
        archive = load([folder])
    except DataError as error:
        assert "cell" in error.message
        return
    assert len(cell.rows) <= len(cell.tasks) and cell.resamples >= 100
    if cell.resamples <= 10_000:  # up to a million are allowed, and take seconds
        assert orjson.loads(report_json(build_report(archive, None)))


@fuzzed
@given(
    changed(orjson.loads(orjson.dumps(TRAJECTORY.to_dict()))) | data('{"episode_id": "e1"'),
    changed({"episode_id": "e1", "selection": orjson.loads(selection_to_json(SELECTION))}),
    st.integers(-1, 2**63 - 1) | st.just(0),
    st.sampled_from((b"", orjson.dumps(CONFIG))),
)
def test_episode_that_is_shown(folder: Path, line: bytes, selection: bytes, offset: int, config: bytes) -> None:
    (folder / "trajectories.jsonl").write_bytes(line + b"\n")
    (folder / "selections.jsonl").write_bytes(selection + b"\n")
    (folder / "config.json").write_bytes(config)
    row = make_row(1, trajectory_offset=offset, selection_offset=0)
    (folder / "episodes.jsonl").write_bytes(orjson.dumps(row) + b"\n")
    episode = Episode(folder, row)
    try:
        assert all(block is not None for block in episode_blocks(CONFIG["cell"], row, episode.trajectory(), None))
    except DataError as error:
        assert "trajector" in error.message
    try:
        assert all(block is not None for block in episode_blocks(episode.cell, row, None, episode.selection()))
    except DataError as error:
        assert "selection" in error.message or "config.json" in error.message
    try:
        assert all(isinstance(one, dict) for one in read_trajectories(folder))
    except DataError as error:
        assert "trajectories.jsonl" in error.message


@fuzzed
@given(changed(CONFIG) | data())
def test_what_a_cell_is_called(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    try:
        assert isinstance(read_cell_config(folder)["settings"]["selector"], dict)
        assert isinstance(Episode(folder, make_row(1)).cell["name"], str)
    except DataError as error:
        assert "config.json" in error.message


@fuzzed
@given(changed({"sweep": "x", "cells": ["../cells/a", "b"]}) | data('{"sweep": "', "\\u0000"))
def test_file_of_a_sweep(folder: Path, content: bytes) -> None:
    path = folder / "sweep.json"
    path.write_bytes(content)
    try:
        assert all(isinstance(cell, Path) for cell in read_sweep(path))
        assert isinstance(read_sweep_name(path), str)
    except DataError as error:
        assert "sweep.json" in error.message
        return
    with pytest.raises(DataError):  # the cells are not there
        load([path])


@fuzzed
@given(changed(orjson.loads(selection_to_json(SELECTION))))
def test_stored_selection(stored: bytes) -> None:
    try:
        found = selection_from_json(stored)
    except DataError as error:
        assert str(error)
        return
    assert all(isinstance(skill, SelectedSkill) and isinstance(skill.score, float) for skill in found.skills)
    assert selection_from_json(selection_to_json(found)) == found
    try:
        assert case_study(found, "goal", "vector").options
    except (ConfigError, DataError) as error:
        assert "vector" in error.message


# --- memories and lessons

LESSON = {"task_id": "t", "benchmark": "b", "split": "s", "content": {"a": 1}}


@fuzzed
@given(changed({"format": "spem/1", "digest": "", "content": {"weights": {}, "templates": []}}) | data())
def test_memory_of_spem(stored: bytes) -> None:
    with pytest.raises(DataError):
        Memory.from_bytes(stored)


@fuzzed
@given(changed({"format": "skilldag/1", "hash": "0" * 16}).map(lambda line: line + b"\n") | data())
def test_memory_of_skilldag(stored: bytes) -> None:
    if not stored:
        return
    with pytest.raises(DataError):
        read_episodes(stored)


@fuzzed
@given(changed(LESSON) | data('{"task_id": "'))
def test_lessons_of_a_cell(folder: Path, line: bytes) -> None:
    path = folder / "lessons.jsonl"
    path.write_bytes(line + b"\n" + orjson.dumps(LESSON))
    assert all(isinstance(task, str) for task in _read_lessons(path))


# --- caches

KEY = b"k" * 32


@fuzzed
@given(st.integers(0, 40_000), st.binary(min_size=1, max_size=8), st.booleans())
def test_damaged_cache_of_values(at: int, noise: bytes, cut: bool) -> None:
    with TemporaryDirectory() as name:
        path = Path(name, "cache.sqlite")
        first = DiskCache(path)
        first.put_many({KEY: b"value" * 10})
        for connection in first._connections.values():
            connection.close()
        content = path.read_bytes()
        at %= len(content)
        path.write_bytes(content[:at] + (b"" if cut else noise + content[at + len(noise) :]))
        cache = DiskCache(path)
        assert cache.get_many([KEY]).get(KEY) in (None, b"value" * 10)
        cache.put_many({KEY: b"other"})
        assert cache.get_many([KEY]).get(KEY) in (None, b"other")
        for connection in cache._connections.values():
            connection.close()


@fuzzed
@given(st.integers(0, 200), st.binary(min_size=1, max_size=8), st.booleans())
def test_damaged_index_of_a_library(folder: Path, at: int, noise: bytes, cut: bool) -> None:
    store = IndexStore(folder)
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    for _ in range(2):
        assert store.get_or_make("words", "key", make=lambda: b"content") == b"content"
        assert np.array_equal(store.vectors_or_make("vectors", "key", rows=4, make=lambda: [rows]), rows)
        for path in folder.glob("*"):
            if path.suffix != ".lock":
                content = path.read_bytes()
                place = at % max(len(content), 1)
                path.write_bytes(content[:place] + (b"" if cut else noise + content[place + len(noise) :]))


@fuzzed
@given(changed(asdict(ParsedTask(("a",), ("b", "c")))) | changed({"text": "a", "cut": False}) | data())
def test_stored_parse_and_answer(stored: bytes) -> None:
    assert isinstance(stored_parse(stored, ParsedTask), ParsedTask | None)  # a checksum guards what is in it
    assert isinstance(Answer.stored(stored), Answer | None)


TRANSLATION = {
    "sas": "x", "objects": {"a": "t"}, "supertypes": {"t": ["t"]}, "parameters": {"go": [["a", "t"]]},
    "changing": ["p"], "initial": [["p", "a"]],
}  # fmt: skip


@fuzzed
@given(changed(TRANSLATION) | data('{"sas": "'), st.booleans(), st.integers(0, 100))
def test_grounded_game_of_the_cache(folder: Path, content: bytes, whole: bool, at: int) -> None:
    packed = zlib.compress(content)
    (folder / "game.json.z").write_bytes(packed if whole else packed[:at])
    found = read_translation(folder / "game.json.z")
    if found is not None:
        assert isinstance(found.sas, str)
        assert all(isinstance(word, str) for fact in found.initial for word in fact)


@fuzzed
@given(changed({"name": "boil/1", "actions": ["look", "wait"]}) | changed({"boil/1": "Your task"}) | data("[" * 9000))
def test_goals_and_gold_paths_of_the_cache(folder: Path, content: bytes) -> None:
    path = folder / "kept.json"
    path.write_bytes(content)
    read_json(path)
    actions = _actions_in(path)
    assert actions is None or all(isinstance(action, str) for action in actions)
    assert all(isinstance(text, str) for item in kept_goals(path).items() for text in item)


# --- checkpoints

MODEL = {
    "architectures": ["BertForSequenceClassification"], "num_attention_heads": 4, "num_hidden_layers": 2,
    "hidden_size": 64, "max_position_embeddings": 512, "torch_dtype": "float32", "text_config": {"head_dim": 8},
}  # fmt: skip


@fuzzed
@given(changed(MODEL) | data('{"architectures": ['))
def test_configuration_of_a_checkpoint(folder: Path, content: bytes) -> None:
    (folder / "config.json").write_bytes(content)
    try:
        assert isinstance(architecture(Checkpoint(str(folder), None, "m@1", folder / "config.json")), str)
    except RerankerError as error:
        assert "config.json" in error.message
    try:
        assert isinstance(find_model(str(folder), None).config, dict)
    except BackboneError as error:
        assert "config.json" in error.message
    assert facts_from_folder(folder).source


def test_a_row_with_a_count_that_no_counter_reaches_is_damaged() -> None:
    plain = asdict(make_row(1))
    for changes in ({"prompt_tokens": 2**70}, {"env_steps": -1}, {"trajectory_offset": 10**30}):
        assert _row(json.dumps(plain | changes).encode()) is None


def test_a_damaged_line_of_a_trajectory_is_told_by_file_and_place(folder: Path) -> None:
    (folder / "trajectories.jsonl").write_bytes(b"{\n")
    (folder / "episodes.jsonl").write_bytes(orjson.dumps(make_row(1, trajectory_offset=0)) + b"\n")
    with pytest.raises(DataError, match=r"trajectories\.jsonl, byte 0"):
        list(read_trajectories(folder))
