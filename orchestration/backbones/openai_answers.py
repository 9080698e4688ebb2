"""What an OpenAI-compatible server answered: a usable reply, a reason to ask again, or a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillarena.conf.errors import BackboneError, ContextOverflow
from skillarena.orchestration.backbones.errors import RequestRefused, UnknownModel, WrongKey
from skillarena.orchestration.backbones.interface import Message, Usage
from skillarena.orchestration.backbones.retry import TryAgain
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens

_OVERFLOW = re.compile(
    r"context_length_exceeded|context (?:length|window|size)|maximum model length|max_model_len"
    r"|(?:prompt|input) is too long|too many (?:input )?tokens",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|model\b.{0,200}(?:does not exist|not exist|not found|no access)|unknown model|invalid model",
    re.IGNORECASE,
)
_LONGEST_QUOTE = 300


def is_retryable(status: int) -> bool:
    """Whether the same request may succeed later."""
    return status in (408, 409, 425, 429) or (status >= 500 and status != 501)


@dataclass(frozen=True, slots=True)
class Answer:
    """A usable reply."""

    text: str
    usage: Usage
    finish_reason: str


def read_answer(body: bytes, messages: Sequence[Message]) -> Answer:
    """Read the body of a 200 response to ``messages``.

    An empty text is accepted only when the reply was cut by its length limit: reasoning used it up, and the same
    question would be cut again.

    Raises:
        TryAgain: the body is no JSON (cut short, an error page), holds an error, or holds no text.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        received = body.decode("utf-8", "replace")
        wasted = estimate_prompt_tokens(messages) + estimate_tokens(received)
        raise TryAgain(f"a reply that is no JSON ({quote(received)})", wasted_tokens=wasted) from error
    choices = content.get("choices") if isinstance(content, dict) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        raise TryAgain(f"a reply without choices ({quote(explain(body))})", wasted_tokens=_spent(content))
    message = choices[0].get("message")
    text = _text(message.get("content")) if isinstance(message, dict) else ""
    finish_reason = str(choices[0].get("finish_reason") or "unknown")
    usage = _usage(content.get("usage"), messages, text)
    if not text.strip() and finish_reason != "length":
        raise TryAgain(f"an empty reply (finish_reason {finish_reason})", wasted_tokens=usage.total_tokens)
    return Answer(text, usage, finish_reason)


def refusal(status: int, said: str, url: str, model: str, api_key_env: str | None) -> BackboneError:
    """The typed error for a status that asking again does not change.

    Args:
        status: HTTP status, not 2xx and not retryable.
        said: the server's own words.
        url: where the request went.
        model: model asked for.
        api_key_env: environment variable the key was read from.
    """
    said = quote(said)
    if status in (401, 403):
        if api_key_env is None:
            return WrongKey(f"{url} wants a key ({status}: {said})", "name its variable in backbone.api_key_env")
        return WrongKey(f"{url} refused the key from ${api_key_env} ({status}: {said})", f"correct ${api_key_env}")
    if status in (400, 413, 422) and _OVERFLOW.search(said):
        return ContextOverflow(
            f"the prompt does not fit the context of {model} at {url} ({said})",
            "select fewer or shorter skills, lower agent.max_tokens, or serve the model with a longer context",
        )
    if _NO_MODEL.search(said):
        return UnknownModel(f"{url} does not serve {model!r} ({status}: {said})", "set backbone.model to one it serves")
    if status == 402:
        return RequestRefused(f"{url} wants to be paid ({status}: {said})", "top up the account of this key")
    if status in (404, 405) or 300 <= status < 400:
        return RequestRefused(
            f"{url} is no chat completions endpoint (status {status}: {said})",
            "correct backbone.base_url; it usually ends with /v1",
        )
    return RequestRefused(f"{url} refused the request ({status}: {said})", "correct the keys under backbone")


def model_names(body: bytes) -> list[str] | None:
    """The names in the body of ``GET /models``; None when it is no such list."""
    try:
        listed = json.loads(body)["data"]
        return [str(model["id"]) for model in listed]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def explain(body: bytes) -> str:
    """The server's own words about an error, out of the shapes in use; the raw text when there is no such shape."""
    raw = body.decode("utf-8", "replace")
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    error = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(error, dict):
        words = [error.get(key) for key in ("message", "code", "type", "detail")]
        return "; ".join(str(word) for word in words if word) or raw
    return str(error)


def quote(text: str) -> str:
    """``text`` on one line, cut to a readable length."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"


def _text(content: Any) -> str:
    """The text of a message, which is a string or a list of parts; lone surrogates are replaced."""
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content.encode("utf-8", "replace").decode("utf-8") if isinstance(content, str) else ""


_MOST_TOKENS = 10**9
"""No call takes more; a larger count is a server's mistake and is estimated instead."""


def _usage(given: Any, messages: Sequence[Message], text: str) -> Usage:
    given = given if isinstance(given, dict) else {}
    prompt, completion = _count(given.get("prompt_tokens")), _count(given.get("completion_tokens"))
    details = given.get("prompt_tokens_details")
    cached = _count(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None:
        cached = _count(given.get("prompt_cache_hit_tokens"))  # DeepSeek
    estimated = prompt is None or completion is None
    prompt = estimate_prompt_tokens(messages) if prompt is None else prompt
    completion = estimate_tokens(text) if completion is None else completion
    return Usage(prompt, min(cached or 0, prompt), completion, estimated)


def _spent(content: Any) -> int:
    """Tokens that a reply without text reports; none when it reports none, as with an error sent as 200."""
    usage = content.get("usage") if isinstance(content, dict) else None
    if not isinstance(usage, dict):
        return 0
    return sum(_count(usage.get(key)) or 0 for key in ("prompt_tokens", "completion_tokens"))


def _count(value: Any) -> int | None:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if sound else None
