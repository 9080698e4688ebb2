"""A client for every server that speaks the OpenAI chat completions protocol."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import httpx

from skillarena.conf.errors import ConfigError, nearest
from skillarena.conf.redaction import body_without_key, without_credentials, without_key
from skillarena.orchestration.backbones.errors import RequestRefused, RetriesExhausted, UnknownModel, WrongKey
from skillarena.orchestration.backbones.gate import MOST_CONCURRENT, Call, Gate, Gates
from skillarena.orchestration.backbones.interface import EpisodeContext, Message, Reply, Usage
from skillarena.orchestration.backbones.openai_answers import (
    LARGEST_BODY,
    explain,
    is_retryable,
    model_names,
    quote,
    read_answer,
    refusal,
    spent_in_vain,
)
from skillarena.orchestration.backbones.options import check_ranges
from skillarena.orchestration.backbones.prices import read_price
from skillarena.orchestration.backbones.retry import Throttled, TryAgain, retry_after_seconds, retrying

T = TypeVar("T")

_RESERVED = ("model", "messages", "stream")
_PROBE: tuple[Message, ...] = ({"role": "user", "content": "Answer with the word OK."},)
_PROBE_RETRIES = 1


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class OpenAICompatible:
    """Chat completions over HTTP with deadlines, retries, a limit on calls under way, and token accounting.

    One instance serves any number of threads over one connection pool. A pickled instance carries its options only and
    has connections and a gate of its own. The key is read from the environment for every request and kept nowhere.

    Args:
        base_url: the URL before ``/chat/completions``, usually ending with ``/v1``; without password or query.
        model: the model's name on that server.
        api_key_env: environment variable that holds the key; None when the server wants none.
        temperature: sampling temperature, 0 to 2; None leaves it to the server (some reasoning models refuse it).
        send_seed: send the episode's seed with its calls.
        max_tokens: longest reply in tokens; None leaves it to the server (or to ``extra_body``, under another name).
        connect_timeout_s: seconds to reach the server.
        timeout_s: seconds from the request to the end of the reply, for each attempt.
        max_retries: failed attempts after the first one; refusals because of too many calls do not count.
        max_wait_s: longest wait in seconds between attempts; a longer ``Retry-After`` is cut to it.
        max_concurrency: most calls at once, of all processes together.
        price: money for a million tokens: ``prompt``, ``cached`` and ``completion``; None when it is not known.
        accept_empty: take an empty reply as the model's answer; off, it is a fault of the server and asked for again.
        extra_body: further keys of the request body, for example ``{"max_completion_tokens": 512}``.
        trust_env: take proxies, certificates and ``~/.netrc`` passwords from the environment (``HTTPS_PROXY``,
            ``NO_PROXY``, ``SSL_CERT_FILE``); when off, these options alone decide where a request goes.
        gate: what limits and counts the calls of this process; None: one that this instance has for itself.

    Raises:
        ConfigError: a value out of range, a URL with credentials, a reserved key in ``extra_body``.
    """

    simulated = False

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key_env: str | None = "OPENAI_API_KEY",
        temperature: float | None = 0.0,
        send_seed: bool = True,
        max_tokens: int | None = 512,
        connect_timeout_s: float = 10.0,
        timeout_s: float = 180.0,
        max_retries: int = 6,
        max_wait_s: float = 60.0,
        max_concurrency: int = MOST_CONCURRENT,
        price: Mapping[str, float | None] | None = None,
        accept_empty: bool = False,
        extra_body: Mapping[str, Any] | None = None,
        trust_env: bool = False,
        gate: Gate | None = None,
    ) -> None:
        check_ranges(
            temperature=(temperature, 0, 2),
            max_tokens=(max_tokens, 1, 10_000_000),
            connect_timeout_s=(connect_timeout_s, 0.001, 3600),
            timeout_s=(timeout_s, 0.001, 86_400),
            max_retries=(max_retries, 0, 100),
            max_wait_s=(max_wait_s, 0, 3600),
            max_concurrency=(max_concurrency, 1, 100_000),
        )
        _check_variable_name(api_key_env)
        self.name = model
        self._base_url = _checked_url(base_url)
        self._api_key_env = api_key_env
        self._send_seed = send_seed
        self._body = _request_body(model, temperature, max_tokens, extra_body or {})
        self.identity = f"{self._base_url} {json.dumps(self._body, sort_keys=True)}"
        """What a reply depends on besides the messages and the seed."""
        self._connect_timeout_s = connect_timeout_s
        self._timeout_s = timeout_s
        self._max_retries = max_retries
        self._max_wait_s = max_wait_s
        self._max_concurrency = max_concurrency
        self._price = read_price(price)
        self._accept_empty = accept_empty
        self._trust_env = trust_env
        self._gate = gate or self._own_gate()
        self._connect()

    def chat(self, messages: Sequence[Message], episode: EpisodeContext | None = None) -> Reply:
        """One completed call.

        Raises:
            ContextOverflow: the prompt does not fit the model.
            WrongKey: the key is missing or refused.
            UnknownModel: the server has no such model.
            NoCredit: the account has nothing left to pay with.
            RequestRefused: the server refused for another reason that does not pass.
            RetriesExhausted: no attempt gave a usable reply.
            BudgetSpent: the run may spend no more.
        """
        return self._complete(messages, episode, self._max_retries)

    def check(self) -> None:
        """Preflight: list the server's models, or ask it one short question where it has no list.

        Raises:
            RetriesExhausted: nothing answers at the URL.
            WrongKey: the key is missing or refused.
            UnknownModel: the model is not in the list; the nearest one is named.
            RequestRefused: what answers is no OpenAI-compatible server.
        """
        url = f"{self._base_url}/models"
        response, _ = self._persist(url, lambda call: self._exchange(call, "GET", url), _PROBE_RETRIES)
        if response.status in (404, 405, 501):
            self._complete(_PROBE, None, _PROBE_RETRIES)
            return
        if not response.ok:
            raise self._refusal(url, response)
        names = model_names(response.body)
        if names is None:
            raise RequestRefused(
                f"{url} answers, but not with a list of models ({quote(self._scrub(explain(response.body)))})",
                "correct backbone.base_url; it usually ends with /v1",
            )
        if self.name not in names:
            raise UnknownModel(
                f"{self._base_url} does not serve the model {self.name!r}{nearest(self.name, names)}",
                f"set backbone.model to one it serves: {quote(', '.join(sorted(names))) or '(its list is empty)'}",
            )

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_client", "_gate")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._gate = self._own_gate()
        self._connect()

    def _own_gate(self) -> Gate:
        return Gates().at(self._base_url, self._max_concurrency)

    def _connect(self) -> None:
        try:
            self._client = httpx.Client(
                timeout=httpx.Timeout(self._timeout_s, connect=self._connect_timeout_s),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
                trust_env=self._trust_env,
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:  # not repeated: a proxy may have a password
            raise ConfigError(
                f"the proxy that the environment names cannot be used ({type(error).__name__})",
                "correct HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or set backbone.trust_env=false",
            ) from None

    def _complete(self, messages: Sequence[Message], episode: EpisodeContext | None, max_retries: int) -> Reply:
        url = f"{self._base_url}/chat/completions"
        body = {**self._body, "messages": list(messages)}
        if self._send_seed and episode is not None:
            body["seed"] = episode.seed
        started = time.perf_counter()

        def attempt(call: Call) -> Reply:
            response = self._exchange(call, "POST", url, body)
            if not response.ok:
                raise self._refusal(url, response)
            answer = read_answer(response.body, messages, accept_empty=self._accept_empty)
            self._spend(answer.usage)
            return Reply(answer.text, answer.usage, answer.finish_reason, latency_s=time.perf_counter() - started)

        reply, wasted = self._persist(url, attempt, max_retries)
        return replace(reply, usage=replace(reply.usage, wasted_tokens=wasted))

    def _persist(self, url: str, attempt: Callable[[Call], T], max_retries: int) -> tuple[T, int]:
        """Attempt until it works; returns the result and the tokens of discarded replies."""
        wasted = 0
        deadline = time.monotonic() + (max_retries + 1) * (self._timeout_s + self._max_wait_s)

        def counted() -> T:
            nonlocal wasted
            try:
                with self._gate.slot(deadline) as call:
                    return attempt(call)
            except TryAgain as fault:
                self._spend(fault.wasted)
                wasted += fault.wasted.total_tokens
                fault.args = (self._scrub(str(fault)),)
                raise

        try:
            return retrying(max_retries, self._max_wait_s, deadline)(counted), wasted
        except TryAgain as fault:
            raise RetriesExhausted(
                f"{url}: no usable answer in {max_retries + 1} attempts; the last gave {fault}",
                "check that the server is up and backbone.base_url is right, or raise backbone.max_retries",
                wasted_tokens=wasted,
            ) from fault

    def _spend(self, usage: Usage) -> None:
        self._gate.spend(usage.total_tokens, self._price.cost(usage) if self._price else 0.0)

    def _exchange(self, call: Call, method: str, url: str, body: Mapping[str, Any] | None = None) -> _Response:
        """One request and the whole of its response; ``TryAgain`` for faults and statuses that may pass."""
        key = self._key()
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        ends = time.monotonic() + self._timeout_s
        received = bytearray()
        try:
            with self._client.stream(method, url, json=body, headers=headers) as response:
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > LARGEST_BODY:
                        raise TryAgain(f"a reply of more than {LARGEST_BODY:,} bytes")
                    if time.monotonic() > ends:  # the client's own read time-out starts anew with every chunk
                        raise httpx.ReadTimeout(f"not ended after {self._timeout_s:g} s")
        except httpx.RequestError as error:
            wasted = spent_in_vain(body["messages"], bytes(received)) if body and received else None
            raise TryAgain(_what_broke(error), wasted=wasted) from None  # the cause holds the request with the key
        content = body_without_key(bytes(received), key)  # before anything of it is read, cut or kept
        said = "" if response.is_success else self._scrub(explain(content))
        if is_retryable(response.status_code, said):
            reason, pause_s = f"status {response.status_code} ({quote(said)})", self._pause_s(response)
            if response.status_code == 429 or pause_s is not None:
                call.refused(pause_s or 0.0)
                raise Throttled(reason)
            raise TryAgain(reason)
        call.replied()
        return _Response(response.status_code, content)

    def _pause_s(self, response: httpx.Response) -> float | None:
        """Seconds for which the server asks for peace, cut to the longest wait; None when it does not ask."""
        asked = retry_after_seconds(response.headers.get("Retry-After"))
        return None if asked is None else min(asked, self._max_wait_s)

    def _refusal(self, url: str, response: _Response) -> Exception:
        said = self._scrub(explain(response.body))
        return refusal(response.status, said, url, self.name, self._api_key_env)

    def _key(self) -> str | None:
        if self._api_key_env is None:
            return None
        key = os.environ.get(self._api_key_env, "").strip()
        if not key:
            raise WrongKey(
                f"backbone {self.name}: the environment variable {self._api_key_env} is not set",
                f"export {self._api_key_env}=KEY, or set backbone.api_key_env=null for a server that wants no key",
            )
        if not (key.isascii() and key.isprintable()):
            raise WrongKey(
                f"backbone {self.name}: {self._api_key_env} holds characters that no key has", "copy the key again"
            )
        return key

    def _scrub(self, text: str) -> str:
        """``text`` from a server without the key, should the server repeat it."""
        return without_key(text, os.environ.get(self._api_key_env or "", "").strip())


def _what_broke(error: httpx.RequestError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return f"a time-out ({type(error).__name__})"
    return f"a broken connection ({type(error).__name__}: {without_credentials(str(error))})"


def _request_body(
    model: str, temperature: float | None, max_tokens: int | None, extra: Mapping[str, Any]
) -> dict[str, Any]:
    if taken := sorted(set(extra) & set(_RESERVED)):
        raise ConfigError(f"backbone.extra_body cannot set {', '.join(taken)}", "remove these keys")
    sampling = {"temperature": temperature, "max_tokens": max_tokens}
    return {"model": model, **{key: value for key, value in sampling.items() if value is not None}, **extra}


def _checked_url(base_url: str) -> str:
    example = "give one such as http://127.0.0.1:8000/v1"
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, UnicodeError):  # its text may be a part of a password
        raise ConfigError("backbone.base_url is no URL", example) from None
    if url.userinfo or url.query or url.fragment or "@" in base_url:  # not repeated: it may hold a password
        raise ConfigError(
            "backbone.base_url holds a user, password or query",
            "put the key into an environment variable and name that in backbone.api_key_env",
        )
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"backbone.base_url is {base_url!r}, which is no http URL", example)
    return base_url.rstrip("/")


def _check_variable_name(api_key_env: str | None) -> None:
    if api_key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", api_key_env):
        raise ConfigError(  # the value is not repeated: it may be the key itself
            "backbone.api_key_env is no name of an environment variable",
            "export the key under a name such as OPENAI_API_KEY and give that name",
        )
