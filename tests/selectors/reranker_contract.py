"""What every reranker must do. Subclass ``RerankerContract`` and provide the ``reranker`` fixture."""

from __future__ import annotations

import numpy as np
import pytest

from skillarena.selectors.interface import Reranker

QUERIES = (
    "put a hot mug in the coffee machine",
    "look at the book under the desk lamp",
    "measure the temperature of boiling water",
)
DOCUMENTS = (
    "# heat-object\nHeats an object with the microwave.\n\nOpen the microwave, put the object in, close it, heat it.",
    "# find-lamp\nFinds a lamp and switches it on.",
    "# boil-water\nBoils water in a pot on the stove and reads the thermometer.",
    "# prune-roses\nCuts back rose bushes in early spring.",
)
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS]
TOLERANCE = 1e-4


class RerankerContract:
    @pytest.fixture
    def reranker(self) -> Reranker:
        raise NotImplementedError("the subclass says which reranker to check")

    def test_is_a_reranker_with_an_identity(self, reranker: Reranker) -> None:
        assert isinstance(reranker, Reranker)
        assert reranker.identity

    def test_gives_one_float32_for_each_pair(self, reranker: Reranker) -> None:
        scores = reranker.score(PAIRS)
        assert scores.shape == (len(PAIRS),)
        assert scores.dtype == np.float32
        assert np.isfinite(scores).all()
        assert len(set(scores.tolist())) == len(PAIRS)

    def test_no_pairs_give_no_scores(self, reranker: Reranker) -> None:
        scores = reranker.score([])
        assert scores.shape == (0,)
        assert scores.dtype == np.float32

    def test_scores_are_logits_and_no_probabilities(self, reranker: Reranker) -> None:
        scores = reranker.score(PAIRS)
        assert ((scores < 0) | (scores > 1)).any()

    def test_order_does_not_matter(self, reranker: Reranker) -> None:
        backwards = reranker.score(PAIRS[::-1])[::-1]
        np.testing.assert_allclose(backwards, reranker.score(PAIRS), atol=TOLERANCE)

    def test_company_does_not_matter(self, reranker: Reranker) -> None:
        alone = [reranker.score([pair])[0] for pair in PAIRS]
        long = (QUERIES[0], DOCUMENTS[0] * 30)
        together = reranker.score([*PAIRS, long])[:-1]
        np.testing.assert_allclose(alone, together, atol=TOLERANCE)

    def test_equal_pairs_get_equal_scores(self, reranker: Reranker) -> None:
        scores = reranker.score([PAIRS[0], PAIRS[1], PAIRS[0], PAIRS[0]])
        assert scores[0] == scores[2] == scores[3]
        assert scores[0] != scores[1]

    def test_query_and_document_are_told_apart(self, reranker: Reranker) -> None:
        scores = reranker.score([(QUERIES[0], DOCUMENTS[0]), (QUERIES[0], DOCUMENTS[3]), (QUERIES[1], DOCUMENTS[0])])
        assert len(set(scores.tolist())) == 3

    def test_text_of_any_length_is_scored(self, reranker: Reranker) -> None:
        scores = reranker.score([(QUERIES[0], "word " * 50_000), ("word " * 50_000, DOCUMENTS[0]), ("", "")])
        assert np.isfinite(scores).all()

    def test_text_in_any_script_is_scored(self, reranker: Reranker) -> None:
        scores = reranker.score([("разогреть кружку ☕", "把杯子放进微波炉"), ("\x00\u202e", "\n\t \ufffd")])
        assert np.isfinite(scores).all()
