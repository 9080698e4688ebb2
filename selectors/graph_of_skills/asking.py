"""Asking a model for one JSON object: read strictly, asked for once more when it cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from skillarena.conf.errors import ContextOverflow
from skillarena.selectors.llm import CachedLlm
from skillarena.selectors.llm_parser import MalformedAnswerError
from skillarena.selectors.llm_ranking import spoken

TRIES = 2
_AGAIN = "That answer cannot be used: {problem}. Answer again with the JSON object asked for and with nothing else."

T = TypeVar("T")
Form = TypeVar("Form", bound=BaseModel)


def ask_for(llm: CachedLlm, prompt: str, read: Callable[[str], T]) -> T | None:
    """What a model answers; None when neither answer can be read or the prompt does not fit into the model.

    A second run asks nothing anew: answers are kept, unusable ones too.

    Args:
        llm: the model.
        prompt: the question.
        read: takes the answer apart; raises ``MalformedAnswerError``.

    Raises ``BackboneError`` when the model cannot be reached.
    """
    messages = [{"role": "user", "content": prompt}]
    for _ in range(TRIES):
        try:
            answer = llm.ask(messages)
        except ContextOverflow:
            return None
        try:
            if answer.cut:
                raise MalformedAnswerError("it was cut off because it is too long")
            return read(answer.text)
        except MalformedAnswerError as error:
            messages += [
                {"role": "assistant", "content": answer.text.strip() or "(no answer)"},
                {"role": "user", "content": _AGAIN.format(problem=error)},
            ]
    return None


def read_object(text: str, form: type[Form]) -> Form:
    """The JSON object in an answer, whatever stands around it. Raises ``MalformedAnswerError``."""
    answer = spoken(text)
    start = answer.find("{")
    if start < 0:
        raise MalformedAnswerError("there is no JSON object in it")
    try:
        _, end = json.JSONDecoder().raw_decode(answer, start)
        return form.model_validate_json(answer[start:end])
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()[:3])
        raise MalformedAnswerError("; ".join(problems)) from error
    except (ValueError, RecursionError) as error:  # Python also refuses numbers of thousands of digits
        raise MalformedAnswerError(f"its JSON is broken ({error})") from error
