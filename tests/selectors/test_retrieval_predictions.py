"""Rankings in files: what is written is read back, the published form too, and mistakes are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillarena.conf.errors import DataError
from skillarena.selectors.retrieval.predictions import Prediction, read_predictions, write_predictions


def test_predictions_come_back_by_method(tmp_path: Path) -> None:
    written = [
        Prediction(selector="a", query="q1", ranking=["s2", "s1"], chosen=True, seconds=0.5, pairs_scored=3),
        Prediction(selector="b", query="q1", ranking=[]),
        Prediction(selector="a", query="q2", ranking=["ü\n"]),
    ]
    write_predictions(tmp_path / "p.jsonl", written[:1])
    write_predictions(tmp_path / "p.jsonl", written)
    assert read_predictions(tmp_path / "p.jsonl") == {"a": [written[0], written[2]], "b": [written[1]]}
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


def test_the_published_form_is_read(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(json.dumps({"q1": ["s1"], "q2": []}))
    assert read_predictions(tmp_path / "mine.json") == {
        "mine": [
            Prediction(selector="mine", query="q1", ranking=["s1"]),
            Prediction(selector="mine", query="q2", ranking=[]),
        ]
    }


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.jsonl", "", "holds no prediction"),
        ("p.jsonl", '{"selector": "a", "query": "q", "ranking": []}\n{', r"p\.jsonl:2: "),
        ("p.jsonl", '{"selector": "a", "ranking": []}', r"p\.jsonl:1: query: "),
        ("p.jsonl", '{"selector": "a", "query": "q", "ranking": [3]}', r"p\.jsonl:1: ranking\.0: "),
        ("p.jsonl", '{"selector": "a", "query": "q", "ranking": []}\n' * 2, "'a' answers the query 'q' twice"),
        ("p.json", '{"q": "s"}', r"p\.json: q: "),
        ("p.json", "[", r"p\.json: "),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=message):
        read_predictions(tmp_path / name)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no-such"):
        read_predictions(tmp_path / "no-such.jsonl")
