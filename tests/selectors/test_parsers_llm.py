"""The parser that asks a chat model: prompts, strict reading, second tries, fallbacks, tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from selector_contract import HOT_MUG, task

from skillarena.conf.errors import BackboneError, ConfigError, ContextOverflow
from skillarena.selectors.interface import ParsedSkill, ParsedTask, Skill
from skillarena.selectors.llm_parser import LlmParser, MalformedAnswerError, read_skill_answer, read_task_answer

SKILL = Skill("heat", "object-heater", "Heats a held object.", "Use {braces} and a microwave.")
GOOD_TASK = "Subtask 1: Obtain a mug.\nSubtask 2: Heat it.\nState 1: No mug.\nState 2: Mug.\nState 3: Hot mug."
GOOD_SKILL = "Precondition_State: An object is held.\nCompletion_State: The object is hot."


@dataclass
class ScriptedModel:
    """Gives its answers in turn; an answer that is an exception is raised."""

    answers: Sequence[str | Exception]
    identity: str = "scripted"
    finish_reason: str = "stop"
    seen: list[list[dict[str, str]]] = field(default_factory=list)

    def chat(self, messages: Any) -> Any:
        self.seen.append([dict(message) for message in messages])
        answer = self.answers[len(self.seen) - 1]
        if isinstance(answer, Exception):
            raise answer
        usage = SimpleNamespace(prompt_tokens=100 * len(self.seen), completion_tokens=7)
        return SimpleNamespace(text=answer, usage=usage, finish_reason=self.finish_reason)


def test_a_well_formed_answer_is_read_and_its_tokens_are_kept() -> None:
    model = ScriptedModel([GOOD_TASK])
    parsed = LlmParser(model).parse_task(task(HOT_MUG))
    assert parsed == ParsedTask(
        ("Obtain a mug.", "Heat it."),
        ("No mug.", "Mug.", "Hot mug."),
        prompt_tokens=100,
        completion_tokens=7,
        llm_calls=1,
    )


def test_a_skill_is_read_from_its_whole_document() -> None:
    model = ScriptedModel([GOOD_SKILL])
    parsed = LlmParser(model).parse_skill(SKILL)
    assert (parsed.precondition, parsed.completion, parsed.fallback) == (
        "An object is held.",
        "The object is hot.",
        False,
    )
    assert SKILL.text in model.seen[0][0]["content"]


@pytest.mark.parametrize(
    ("benchmark", "words"),
    [
        ("alfworld", ["go to", "take", "move", "open", "close", "use", "clean", "heat", "cool", "examine"]),
        ("scienceworld", ["several rooms", "explored", "connect to", "pour into", "teleport to", "focus on", "wait"]),
        ("elsewhere", []),
    ],
)
def test_the_prompt_names_the_task_and_the_actions_of_its_environment(benchmark: str, words: list[str]) -> None:
    model = ScriptedModel([GOOD_TASK])
    LlmParser(model).parse_task(task("do {this}", benchmark))
    prompt = model.seen[0][0]["content"]
    assert "do {this}" in prompt
    assert [word for word in words if word not in prompt] == []


def test_a_malformed_answer_is_asked_for_again_with_what_was_wrong() -> None:
    model = ScriptedModel(["Sure! Here you are:\n" + GOOD_TASK, "Subtask 1: A.\nState 1: B.", GOOD_TASK])
    parsed = LlmParser(model).parse_task(task(HOT_MUG))
    assert len(parsed.subtasks) == 2
    assert not parsed.fallback
    assert (parsed.prompt_tokens, parsed.completion_tokens, parsed.llm_calls) == (600, 21, 3)
    assert [message["role"] for message in model.seen[2]] == ["user", "assistant", "user", "assistant", "user"]
    assert "'Sure! Here you are:'" in model.seen[1][2]["content"]
    assert model.seen[2][3]["content"] == "Subtask 1: A.\nState 1: B."
    assert "1 sub-tasks and 1 states" in model.seen[2][4]["content"]


def test_after_three_tries_a_task_counts_as_one_marked_subtask() -> None:
    model = ScriptedModel(["no", "", "no"])
    parsed = LlmParser(model).parse_task(task(HOT_MUG))
    assert parsed.fallback
    assert parsed.subtasks == (HOT_MUG,)
    assert len(parsed.states) == 2
    assert (parsed.prompt_tokens, parsed.completion_tokens, parsed.llm_calls) == (600, 21, 3)
    assert all(message["content"] for message in model.seen[2])


def test_after_three_tries_a_skill_counts_as_its_marked_description() -> None:
    parsed = LlmParser(ScriptedModel(["no"] * 3)).parse_skill(SKILL)
    assert parsed == ParsedSkill(None, SKILL.description, True, prompt_tokens=600, completion_tokens=21, llm_calls=3)
    unnamed = LlmParser(ScriptedModel(["no"] * 3)).parse_skill(Skill("id", "name", " ", "body"))
    assert unnamed.completion == "name"


def test_an_answer_cut_off_at_the_token_limit_is_not_taken() -> None:
    model = ScriptedModel([GOOD_TASK] * 3, finish_reason="length")
    assert LlmParser(model).parse_task(task(HOT_MUG)).fallback
    assert "cut off" in model.seen[1][2]["content"]


def test_a_document_too_long_for_the_model_is_a_marked_fallback_at_once() -> None:
    model = ScriptedModel([ContextOverflow("too long")])
    parsed = LlmParser(model).parse_skill(SKILL)
    assert (parsed.fallback, parsed.llm_calls, len(model.seen)) == (True, 0, 1)


def test_an_unreachable_model_is_an_error_and_no_fallback() -> None:
    with pytest.raises(BackboneError, match="down"):
        LlmParser(ScriptedModel([BackboneError("down")])).parse_task(task(HOT_MUG))


def test_the_number_of_tries_is_an_option() -> None:
    model = ScriptedModel(["no", GOOD_TASK])
    assert LlmParser(model, max_tries=1).parse_task(task(HOT_MUG)).fallback
    assert len(model.seen) == 1
    with pytest.raises(ConfigError, match="max_tries must be a whole number of at least 1, got 0"):
        LlmParser(model, max_tries=0)


def test_the_identity_tells_models_apart() -> None:
    first, second = LlmParser(ScriptedModel([], identity="a")), LlmParser(ScriptedModel([], identity="b"))
    assert first.identity != second.identity


@pytest.mark.parametrize(
    "wrapped", ["{}", "\n\n{}\n ", "```\n{}\n```", "```text\n{}\n```\n", "<think>Subtask 1: x?\n</think>\n{}"]
)
def test_trivial_wrapping_is_let_pass(wrapped: str) -> None:
    assert len(read_task_answer(wrapped.format(GOOD_TASK.replace("\n", "\n\n  "))).states) == 3
    assert read_skill_answer(wrapped.format(GOOD_SKILL)).completion == "The object is hot."


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("", "holds no sub-task"),
        ("State 1: A.", "holds no sub-task"),
        ("Subtask 1: A.\nState 1: B.", "1 sub-tasks and 1 states"),
        ("Subtask 1: A.\nState 1: B.\nState 2: C.\nState 3: D.", "1 sub-tasks and 3 states"),
        ("Subtask 2: A.\nState 1: B.\nState 2: C.", "not numbered from 1"),
        ("Subtask 0: A.\nState 0: B.\nState 1: C.", "not numbered from 1"),
        ("Subtask 1: A.\nSubtask 3: B.\nState 1: C.\nState 2: D.\nState 3: E.", "not numbered from 1"),
        ("State 1: B.\nSubtask 1: A.\nState 2: C.", "all sub-tasks before all states"),
        ("Subtask 1: A.\nSubtask 1: A.\nState 1: B.\nState 2: C.\nState 3: D.", "not numbered from 1"),
        ("Subtask 1:\nState 1: B.\nState 2: C.", "'Subtask 1:'"),
        ("**Subtask 1:** A.\nState 1: B.\nState 2: C.", "neither"),
        ("Subtask 1: A.\nState 1: B.\nState 2: C.\nI hope this helps.", "'I hope this helps.'"),
        ("```\nSubtask 1: A.\nState 1: B.\nState 2: C.", "'```'"),
    ],
)
def test_task_answers_out_of_form_are_refused(answer: str, problem: str) -> None:
    with pytest.raises(MalformedAnswerError, match=problem.replace("(", r"\(")):
        read_task_answer(answer)


@pytest.mark.parametrize("none", ["None", "none", "None."])
def test_none_means_that_nothing_is_required(none: str) -> None:
    assert read_skill_answer(f"Precondition_State: {none}\nCompletion_State: Done.").precondition is None


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Precondition_State: None",
        "Completion_State: Done.\nPrecondition_State: None",
        "Precondition_State: None\nCompletion_State:",
        "Precondition_State: None\nCompletion_State: None",
        "Precondition_State: A.\nB.\nCompletion_State: Done.",
        "Precondition_State: A.\nCompletion_State: Done.\nGood luck!",
    ],
)
def test_skill_answers_out_of_form_are_refused(answer: str) -> None:
    with pytest.raises(MalformedAnswerError):
        read_skill_answer(answer)
