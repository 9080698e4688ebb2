"""Small Qwen3 checkpoints with random weights and a tokenizer of the same make as the published ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reranker_contract import PAIRS

INSTRUCTION = (
    "Given a task description, judge whether the skill document is relevant and useful for completing the task"
)
MAX_LENGTH = 512
KNOWN = [("a", "b"), ("c", "a"), ("yes", "no"), ("word", "a word"), ("x y", "z")]
"""Pairs for references, short enough for every length that is tried."""

MARKS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
THINK = ("<think>", "</think>")

_CORPUS = [
    "yes no yes no word word system user assistant Instruct Query Document Judge whether the requirements answer only",
    INSTRUCTION,
    *(text for pair in PAIRS for text in pair),
]


def make_tokenizer(folder: Path, *, corpus: Sequence[str] = _CORPUS, end_token: bool = False) -> Any:
    """Trains and saves byte-level BPE with Qwen's splitting and marks.

    Args:
        folder: where it is saved.
        corpus: decides what becomes one token.
        end_token: put ``<|endoftext|>`` behind every text, as the tokenizers of encoders do.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import AddedToken, Qwen2Tokenizer

    kind = Qwen2Tokenizer()
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = kind.backend_tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    raw.train_from_iterator(corpus, trainer)
    bpe = json.loads(raw.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=bpe["vocab"],
        merges=[tuple(merge) for merge in bpe["merges"]],
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
    )
    tokenizer.add_tokens([AddedToken(mark, special=True) for mark in MARKS])
    tokenizer.add_tokens([AddedToken(mark, special=False) for mark in THINK])
    if end_token:
        last = tokenizer.convert_tokens_to_ids("<|endoftext|>")
        tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|endoftext|>", pair="$A $B <|endoftext|>", special_tokens=[("<|endoftext|>", last)]
        )
    tokenizer.save_pretrained(folder)
    return tokenizer


def make_config(tokenizer: Any) -> Any:
    """The published 0.6B model, shrunk in width and depth only."""
    from transformers import Qwen3Config

    return Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=128,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.35,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )


def make_causal(folder: Path, *, corpus: Sequence[str] = _CORPUS) -> Path:
    """A reranker as Qwen publishes it."""
    import torch
    from transformers import Qwen3ForCausalLM

    tokenizer = make_tokenizer(folder, corpus=corpus)
    torch.manual_seed(0)
    Qwen3ForCausalLM(make_config(tokenizer)).save_pretrained(folder)
    return folder


def make_classifier(folder: Path, causal: Path, *, true: str = "yes", false: str = "no", labels: int = 1) -> Path:
    """The same reranker, converted to one score: the difference of two rows of the language model's head."""
    import torch
    from transformers import AutoTokenizer, Qwen3Config, Qwen3ForCausalLM, Qwen3ForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(causal)
    source = Qwen3ForCausalLM.from_pretrained(causal)
    config = Qwen3Config.from_pretrained(causal)
    config.num_labels = labels
    model = Qwen3ForSequenceClassification(config)
    model.model.load_state_dict(source.model.state_dict())
    head = source.lm_head.weight
    with torch.no_grad():
        row = head[tokenizer.convert_tokens_to_ids(true)] - head[tokenizer.convert_tokens_to_ids(false)]
        model.score.weight.copy_(row.expand(labels, -1))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_encoder(folder: Path, *, end_token: bool = True) -> Path:
    """An encoder as SkillRouter publishes it: without the files of sentence-transformers."""
    import torch
    from transformers import Qwen3Model

    tokenizer = make_tokenizer(folder, end_token=end_token)
    torch.manual_seed(0)
    model = Qwen3Model(make_config(tokenizer))
    with torch.no_grad():  # the end token also pads, and starts out as zeros, as no trained model has it
        model.embed_tokens.weight[tokenizer.pad_token_id].normal_(0, 0.35)
    model.save_pretrained(folder)
    return folder


def template(separator: str = "\n") -> str:
    """The prompt as a chat template with the roles that servers and libraries use, written apart from the product.

    Jinja drops the last newline of a template, so it ends with three where two are due.
    """
    fields = separator.join(["<Instruct>: {{ i }}", "<Query>: {{ q }}", "<Document>: {{ d }}"])
    return (
        "{%- set i = messages | selectattr('role', 'eq', 'system') | map(attribute='content') | first -%}"
        "{%- set q = messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first -%}"
        "{%- set d = messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first -%}"
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct"
        ' provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        + fields
        + "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n\n"
    )


def by_hand(folder: Path, pairs: Sequence[tuple[str, str]], *, separator: str = "\n") -> NDArray[np.float64]:
    """Logits worked out pair by pair from the whole prompt as one text, without padding."""
    import torch
    from transformers import AutoTokenizer, Qwen3ForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = Qwen3ForCausalLM.from_pretrained(folder).eval()
    yes, no = (tokenizer.convert_tokens_to_ids(word) for word in ("yes", "no"))
    logits = []
    for query, document in pairs:
        roles = {"system": INSTRUCTION, "query": query, "document": document}
        prompt = tokenizer.apply_chat_template(
            [{"role": role, "content": text} for role, text in roles.items()],
            chat_template=template(separator),
            tokenize=False,
        )
        ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            last = model(ids).logits[0, -1]
        logits.append(float(last[yes] - last[no]))
    return np.array(logits)


def reference_of(folder: Path, causal: Path, *, separator: str = "\n") -> str:
    """Writes a file of known pairs of a checkpoint; returns its path."""
    logits = by_hand(causal, KNOWN, separator=separator)
    known = [
        {"query": query, "document": document, "relevant": bool(logit > 0), "logit": float(logit)}
        for (query, document), logit in zip(KNOWN, logits, strict=True)
    ]
    path = folder / f"known-{len(separator)}.json"
    path.write_text(json.dumps({"about": "random weights", "tolerance": 0.001, "pairs": known}))
    return str(path)
