"""A reranker that scores wrongly is found out by pairs with known answers, and the message says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.parity import Reference, load_reference, prove

LOGITS = np.array([4.2, -3.1, 6.5, -7.7], dtype=np.float32)
PAIRS = [("a", "on a", True), ("a", "on b", False), ("b", "on b", True), ("b", "on a", False)]


def sigmoid(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(1 / (1 + np.exp(-values.astype(np.float64))), dtype=np.float32)


def reference(*, logits: bool, **options: Any) -> Reference:
    pairs = [
        {"query": q, "document": d, "relevant": relevant} | ({"logit": float(logit)} if logits else {})
        for (q, d, relevant), logit in zip(PAIRS, LOGITS, strict=True)
    ]
    tolerance = {"tolerance": 0.05} if logits else {}
    return Reference.model_validate({"about": "x", "pairs": pairs} | tolerance | options)


EXACT, ORDER = reference(logits=True), reference(logits=False)


@pytest.mark.parametrize("known", [EXACT, ORDER], ids=["logits", "order"])
@pytest.mark.parametrize(
    ("scores", "what"),
    [
        (sigmoid(LOGITS), "something applied a sigmoid"),
        (sigmoid(sigmoid(LOGITS)), "sigmoid twice"),
        (-LOGITS, "'yes' and 'no' swapped"),
        (LOGITS[[0, 1, 3, 2]], "another prompt"),
        (np.array([1, np.nan, 2, 3], dtype=np.float32), "infinite or undefined"),
        (np.array([1, np.inf, 2, 3], dtype=np.float32), "infinite or undefined"),
    ],
    ids=["sigmoid", "two sigmoids", "swapped", "disorder", "nan", "inf"],
)
def test_a_fault_is_named(known: Reference, scores: NDArray[np.float32], what: str) -> None:
    fault = known.fault(scores)
    assert fault is not None
    assert what in fault[0]
    assert fault[1]


@pytest.mark.parametrize("known", [EXACT, ORDER], ids=["logits", "order"])
def test_right_scores_pass(known: Reference) -> None:
    assert known.fault(LOGITS) is None
    assert known.fault(LOGITS + np.float32(0.04)) is None


def test_given_logits_hold_within_their_tolerance() -> None:
    fault = EXACT.fault(LOGITS + np.array([0, 0, 0.06, 0], dtype=np.float32))
    assert fault is not None
    assert "0.06 logits off" in fault[0]


def test_order_is_a_matter_of_each_query_and_of_a_margin() -> None:
    assert ORDER.fault(np.array([9, 8, -3, -4], dtype=np.float32)) is None
    assert ORDER.fault(np.array([9, 8.1, -3, -4], dtype=np.float32)) is not None
    assert reference(logits=False, margin=0.5).fault(np.array([9, 8.1, -3, -4], dtype=np.float32)) is None


def test_a_failed_proof_is_an_error_and_a_passed_one_is_silent() -> None:
    asked: list[tuple[str, str]] = []

    def score(pairs: Any) -> NDArray[np.float32]:
        asked.extend(pairs)
        return LOGITS

    prove(score, ORDER, "model x")
    assert asked == [(query, document) for query, document, _ in PAIRS]
    with pytest.raises(RerankerError, match=r"model x fails on pairs with known answers: .*sigmoid") as caught:
        prove(lambda pairs: sigmoid(LOGITS), ORDER, "model x")
    assert "use_activation=false" in caught.value.fix


@pytest.mark.parametrize("name", ["qwen3_reranker", "skillrouter_reranker"])
def test_shipped_pairs_carry_order_only_and_say_so(name: str) -> None:
    shipped = load_reference(name)
    assert shipped.tolerance is None
    assert "logits are not given" in shipped.about
    relevant = np.array([pair.relevant for pair in shipped.pairs])
    assert shipped.fault(np.where(relevant, 5, -5).astype(np.float32)) is None


def write(path: Path, **changes: Any) -> str:
    whole = json.loads(ORDER.model_dump_json(exclude_none=True)) | changes
    path.write_text(json.dumps(whole))
    return str(path)


def test_a_file_of_ones_own_is_read(tmp_path: Path) -> None:
    assert load_reference(write(tmp_path / "own.json")) == ORDER


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"pairs": []}, "pairs"),
        ({"margin": 0}, "margin"),
        ({"paris": 1}, "paris"),
        ({"tolerance": 0.1}, "a logit for every pair and a tolerance, or neither"),
        ({"pairs": [{"query": "a", "document": str(n), "relevant": True} for n in range(4)]}, "irrelevant"),
        ({"pairs": [{"query": "a", "document": "b", "relevant": True, "logit": 1}] * 4}, "tolerance"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        load_reference(write(tmp_path / "own.json", **changes))


def test_a_missing_or_damaged_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no file 'qwen3_rerankr'; did you mean 'qwen3_reranker'"):
        load_reference("qwen3_rerankr")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ConfigError, match="is no reference"):
        load_reference(str(tmp_path / "bad.json"))
