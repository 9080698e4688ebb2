"""What an OpenAI-compatible server answered: a usable reply, a reason to ask again, or a refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from skillarena.conf.errors import BackboneError, ContextOverflow
from skillarena.orchestration.backbones.errors import NoCredit, RequestRefused, UnknownModel, WrongKey
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
_NO_CREDIT = re.compile(r"insufficient_quota|insufficient balance|exceeded your current quota", re.IGNORECASE)
_BROKEN_OFF = ("insufficient_system_resource",)
"""Finish reasons of replies that the server itself gave up (DeepSeek)."""
_LONGEST_QUOTE = 300
LARGEST_BODY = 32_000_000
"""Bytes of a response that are read; a server that sends more is broken or hostile."""
LONGEST_TEXT = 1_000_000
"""Characters of a reply that are taken; the longest of real models has some hundred thousand."""


def is_retryable(status: int, said: str) -> bool:
    """Whether the same request may succeed later.

    Args:
        status: HTTP status.
        said: the server's own words; OpenAI refuses accounts without credit with the status for too many calls.
    """
    return (
        status in (408, 409, 425)
        or (status >= 500 and status != 501)
        or (status == 429 and not _NO_CREDIT.search(said))
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """A usable reply."""

    text: str
    usage: Usage
    finish_reason: str


def read_answer(body: bytes, messages: Sequence[Message], *, accept_empty: bool = False) -> Answer:
    """Read the body of a 200 response to ``messages``.

    An empty text is accepted when the reply was cut by its length limit: reasoning used it up, and the same question
    would be cut again.

    Args:
        body: of the response.
        messages: what was asked.
        accept_empty: accept it in any case, as the model's own choice.

    Raises:
        TryAgain: the body is no JSON (cut short, an error page), holds an error, holds no text or far too much, or was
            given up.
    """
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise TryAgain(
            f"a reply that is no JSON ({quote(body.decode('utf-8', 'replace'))})", wasted=spent_in_vain(messages, body)
        ) from error
    usage = content.get("usage") if isinstance(content, dict) else None
    choices = content.get("choices") if isinstance(content, dict) else None
    if not (isinstance(choices, list) and choices and isinstance(choices[0], dict)):
        # Without usage it is an error that was sent as 200 and took nothing.
        wasted = read_usage(usage, (), "") if isinstance(usage, dict) else None
        raise TryAgain(f"a reply without choices ({quote(explain(body))})", wasted=wasted)
    given = choices[0].get("message")
    message = given if isinstance(given, dict) else {}
    text = _text(message.get("content"))
    reasoning = _text(message.get("reasoning_content") or message.get("reasoning"))
    finish_reason = str(choices[0].get("finish_reason") or "unknown")
    taken = read_usage(usage, messages, text, reasoning)
    useless = not text.strip() and finish_reason != "length" and not accept_empty
    too_long = len(text) > LONGEST_TEXT
    if finish_reason in _BROKEN_OFF or useless or too_long:
        kind = "a reply that the server broke off" if finish_reason in _BROKEN_OFF else "an empty reply"
        kind = f"a reply of {len(text):,} characters, more than {LONGEST_TEXT:,}" if too_long else kind
        raise TryAgain(f"{kind} (finish_reason {finish_reason})", wasted=taken)
    return Answer(text, taken, finish_reason)


def spent_in_vain(messages: Sequence[Message], received: bytes) -> Usage:
    """Estimated tokens of a reply that cannot be read.

    Args:
        messages: what was asked.
        received: what came back.
    """
    completion = estimate_tokens(received.decode("utf-8", "replace"))
    return Usage(estimate_prompt_tokens(messages), completion_tokens=completion, estimated=True)


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
    if status in (402, 429):
        return NoCredit(f"{url} wants to be paid ({status}: {said})", "top up the account of this key")
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


def read_usage(given: Any, messages: Sequence[Message], text: str, reasoning: str = "") -> Usage:
    """The tokens of a reply, from the forms of ``usage`` in use; what it does not say is estimated.

    Cached prompt tokens stand in ``prompt_tokens_details.cached_tokens`` (OpenAI, MiMo, vLLM),
    ``prompt_cache_hit_tokens`` (DeepSeek) or ``cached_tokens`` (Moonshot), and are part of ``prompt_tokens``.
    Reasoning stands in ``completion_tokens_details.reasoning_tokens`` and is part of ``completion_tokens``, but for
    servers that list it in ``total_tokens`` only (xAI, Gemini): what the total holds beyond prompt and completion was
    generated and is billed like the rest.

    Args:
        given: the reply's ``usage``, whatever it is.
        messages: what was asked, for an estimate.
        text: the reply's text, for an estimate.
        reasoning: what the model thought before its text, where the server tells.
    """
    given = given if isinstance(given, dict) else {}
    prompt, completion, total = (_count(given.get(f"{kind}_tokens")) for kind in ("prompt", "completion", "total"))
    cached = _first_count(
        _detail(given, "prompt", "cached"), given.get("prompt_cache_hit_tokens"), given.get("cached_tokens")
    )
    thought = _first_count(_detail(given, "completion", "reasoning"), given.get("reasoning_tokens"))
    estimated = prompt is None or completion is None
    if prompt is None:
        prompt = estimate_prompt_tokens(messages)
    if completion is None:
        completion = estimate_tokens(text + reasoning)
        thought = estimate_tokens(reasoning) if thought is None else thought
    elif total is not None and not estimated and total > prompt + completion:
        unlisted = total - prompt - completion
        completion += unlisted
        thought = unlisted if thought is None else thought
    return Usage(
        prompt, min(cached or 0, prompt), completion, estimated, reasoning_tokens=min(thought or 0, completion)
    )


def _detail(given: dict[str, Any], kind: str, name: str) -> Any:
    details = given.get(f"{kind}_tokens_details")
    return details.get(f"{name}_tokens") if isinstance(details, dict) else None


def _first_count(*values: Any) -> int | None:
    return next((count for count in map(_count, values) if count is not None), None)


def _count(value: Any) -> int | None:
    sound = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS
    return value if sound else None
