"""Every way of running a Qwen3 reranker gives the same raw logits."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reranker_contract import DOCUMENTS, PAIRS, QUERIES, TOLERANCE, RerankerContract
from tiny_qwen3 import INSTRUCTION, MAX_LENGTH, by_hand, make_causal, make_classifier, reference_of, template

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.interface import Reranker
from skillarena.selectors.qwen3_reranker import Qwen3Reranker
from skillarena.selectors.rerankers import CrossEncoderReranker

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

Make = Callable[..., Qwen3Reranker]


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_causal(tmp_path_factory.mktemp("causal"))


@pytest.fixture(scope="module")
def classifier(causal: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_classifier(tmp_path_factory.mktemp("classifier"), causal)


@pytest.fixture(scope="module")
def expected(causal: Path) -> NDArray[np.float64]:
    return by_hand(causal, PAIRS)


@pytest.fixture(scope="module")
def reference(causal: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return reference_of(tmp_path_factory.mktemp("reference"), causal)


@pytest.fixture(scope="module")
def make(causal: Path, reference: str) -> Make:
    def build(**changes: Any) -> Qwen3Reranker:
        options = {
            "model": str(causal),
            "instruction": INSTRUCTION,
            "separator": "newline",
            "max_length": MAX_LENGTH,
            "reference": reference,
            "dtype": "float32",
            "device": "cpu",
            "batch_size": 4,
        }
        return Qwen3Reranker(**{**options, **changes})  # type: ignore[arg-type]

    return build


@pytest.fixture(scope="module")
def qwen3(make: Make) -> Qwen3Reranker:
    return make()


@pytest.fixture(scope="module")
def converted(make: Make, classifier: Path) -> Qwen3Reranker:
    return make(model=str(classifier))


class TestQwen3Contract(RerankerContract):
    @pytest.fixture
    def reranker(self, qwen3: Qwen3Reranker) -> Reranker:
        return qwen3


class TestConvertedQwen3Contract(RerankerContract):
    @pytest.fixture
    def reranker(self, converted: Qwen3Reranker) -> Reranker:
        return converted


@pytest.mark.parametrize(("separator", "between"), [("newline", "\n"), ("blank_line", "\n\n")])
def test_scores_are_those_of_each_prompt_worked_out_alone(
    make: Make, causal: Path, separator: str, between: str, tmp_path: Path
) -> None:
    known = reference_of(tmp_path, causal, separator=between)
    scores = make(separator=separator, reference=known).score(PAIRS)
    np.testing.assert_allclose(scores, by_hand(causal, PAIRS, separator=between), atol=TOLERANCE)


def test_a_conversion_to_a_classifier_scores_the_same(converted: Qwen3Reranker, expected: NDArray[np.float64]) -> None:
    np.testing.assert_allclose(converted.score(PAIRS), expected, atol=TOLERANCE)


def test_sentence_transformers_scores_the_same(causal: Path, classifier: Path, qwen3: Qwen3Reranker) -> None:
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    scores = qwen3.score(PAIRS)
    for folder in (causal, classifier):
        model = CrossEncoder(
            str(folder), device="cpu", activation_fn=Identity(), processor_kwargs={"chat_template": template()}
        )
        np.testing.assert_allclose(model.predict(PAIRS, prompt=INSTRUCTION), scores, atol=TOLERANCE)


@pytest.mark.parametrize("max_length", [150, 256])
def test_cut_pairs_score_as_in_sentence_transformers(causal: Path, make: Make, max_length: int) -> None:
    """It puts the template's last tokens over the end of a cut prompt, which comes to the same."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    long = [(QUERIES[0], DOCUMENTS[0] * 20), (QUERIES[1] * 20, DOCUMENTS[1])]
    model = CrossEncoder(
        str(causal),
        device="cpu",
        activation_fn=Identity(),
        max_length=max_length,
        processor_kwargs={"chat_template": template()},
    )
    scores = make(max_length=max_length).score(long)
    np.testing.assert_allclose(scores, model.predict(long, prompt=INSTRUCTION), atol=TOLERANCE)


def test_a_batch_of_any_size_gives_the_same_scores(make: Make, qwen3: Qwen3Reranker) -> None:
    pairs = [(query, document * times) for query, document in PAIRS for times in (1, 3, 9)]
    one_by_one = make(batch_size=1).score(pairs)
    np.testing.assert_allclose(make(batch_size=64).score(pairs), one_by_one, atol=TOLERANCE)
    np.testing.assert_allclose(qwen3.score(pairs[::-1])[::-1], one_by_one, atol=TOLERANCE)
    assert (qwen3.score(pairs[::-1])[::-1] == qwen3.score(pairs)).all()  # the same batches


def test_number_formats_agree_about_as_well_as_their_digits_allow(make: Make, reference: str, tmp_path: Path) -> None:
    known = json.loads(Path(reference).read_text())
    loose = tmp_path / "loose.json"
    loose.write_text(json.dumps({**known, "tolerance": 0.5}))
    exact = make().score(PAIRS)
    half = make(dtype="bfloat16", reference=str(loose)).score(PAIRS)
    assert half.dtype == np.float32
    np.testing.assert_allclose(half, exact, atol=0.5)
    assert (half != exact).any()


def test_identities_tell_everything_apart_that_changes_scores(make: Make, classifier: Path) -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"model": str(classifier)},
        {"instruction": "x"},
        {"separator": "blank_line"},
        {"max_length": 99},
        {"dtype": "bfloat16"},
    ]
    assert len({make(**change).identity for change in changes}) == len(changes)
    assert make(batch_size=1, device="cpu").identity == make().identity


class TestProof:
    """Wrong set-ups stop at the first pair."""

    def test_another_prompt(self, make: Make) -> None:
        for change in ({"separator": "blank_line"}, {"instruction": "Find what answers the query"}):
            with pytest.raises(RerankerError, match="another prompt") as caught:
                make(**change).score(PAIRS)
            assert "reranker.separator" in caught.value.fix

    def test_answers_swapped_in_a_conversion(self, make: Make, causal: Path, tmp_path: Path) -> None:
        swapped = make_classifier(tmp_path, causal, true="no", false="yes")
        with pytest.raises(RerankerError, match="'yes' and 'no' swapped"):
            make(model=str(swapped)).score(PAIRS)

    def test_a_model_that_is_no_reranker(self, make: Make) -> None:
        with pytest.raises(RerankerError, match="fails on pairs with known answers"):
            make(reference="qwen3_reranker").score(PAIRS)

    def test_it_is_made_once(self, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
        from skillarena.selectors import qwen3_reranker

        made: list[str] = []
        monkeypatch.setattr(qwen3_reranker, "prove", lambda score, reference, identity: made.append(identity))
        reranker = make()
        assert made == []
        reranker.score(PAIRS)
        reranker.score(PAIRS[:2])
        assert made == [reranker.identity]


def test_unsuitable_checkpoints_are_refused_by_name(make: Make, causal: Path, tmp_path: Path) -> None:
    with pytest.raises(RerankerError, match="no Qwen3 reranker: its architecture is BertModel"):
        make(model="minilm")
    three = make_classifier(tmp_path / "three", causal, labels=3)
    with pytest.raises(RerankerError, match="has 3 labels, not 1"):
        make(model=str(three)).score(PAIRS)
    with pytest.raises(RerankerError, match="cannot be loaded"):
        make(device="abacus").score(PAIRS)
    with pytest.raises(RerankerError, match=r"'yes' is not one token"):
        make(model=str(make_causal(tmp_path / "wordless", corpus=["no"]))).score(PAIRS)


def test_a_converted_reranker_is_not_taken_for_a_cross_encoder(classifier: Path) -> None:
    with pytest.raises(RerankerError, match="reads a prompt") as caught:
        CrossEncoderReranker(model=str(classifier))
    assert "qwen3_reranker" in caught.value.fix


def test_scores_that_are_no_numbers_are_an_error(make: Make, classifier: Path, tmp_path: Path) -> None:
    import safetensors.torch

    for file in classifier.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = safetensors.torch.load_file(tmp_path / "model.safetensors")
    weights["score.weight"][:] = math.nan
    safetensors.torch.save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RerankerError, match="infinite or undefined"):
        make(model=str(tmp_path)).score(PAIRS)


def test_wrong_options_are_refused_before_anything_is_loaded(make: Make) -> None:
    for change, what in (
        ({"batch_size": 0}, "batch_size must be a whole number"),
        ({"max_length": -1}, "max_length must be a whole number"),
        ({"dtype": "float23"}, "did you mean 'float32'"),
        ({"separator": "tab"}, "separator='tab' is no choice"),
        ({"reference": "missing"}, "there is no file 'missing'"),
    ):
        with pytest.raises(ConfigError, match=what):
            make(**change)
