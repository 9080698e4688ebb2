"""The configuration files of libraries, embedders and rerankers fit the classes they name."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from hydra.utils import get_object, instantiate
from omegaconf import OmegaConf
from word_embedder import WordEmbedder

import skillarena.conf
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.rerankers import SimilarityReranker

CONF = Path(skillarena.conf.__file__).parent
FILES = sorted(path for group in ("library", "embedder", "reranker") for path in (CONF / group).glob("*.yaml"))


def test_the_groups_have_their_files() -> None:
    names = {f"{path.parent.name}/{path.stem}" for path in FILES}
    assert names >= {
        "library/bundled",
        "library/paths",
        "embedder/minilm",
        "embedder/sentence_transformer",
        "reranker/similarity",
        "reranker/cross_encoder",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_key_is_an_option_and_every_option_a_key(path: Path) -> None:
    section = OmegaConf.load(path)
    keys = {str(key) for key in section} - {"_target_", "name"}
    parameters = set(inspect.signature(get_object(section._target_)).parameters) - {"embedder"}
    assert keys <= parameters
    assert section.name == path.stem
    if path.stem != "minilm":  # the packaged model has neither prompts nor revisions
        assert keys == parameters


def test_the_default_sections_build_what_they_promise() -> None:
    library = OmegaConf.to_container(OmegaConf.load(CONF / "library" / "bundled.yaml"))
    assert isinstance(library, dict)
    assert library.pop("name") == "bundled"
    assert isinstance(instantiate(library), SkillLibrary)
    similarity = OmegaConf.to_container(OmegaConf.load(CONF / "reranker" / "similarity.yaml"))
    assert isinstance(similarity, dict)
    assert similarity.pop("name") == "similarity"
    assert isinstance(instantiate(similarity, embedder=WordEmbedder()), SimilarityReranker)
