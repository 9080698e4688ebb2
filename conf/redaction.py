"""Secrets in text: taken out of what servers say, and refused where configurations would write them down."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from skillarena.conf.errors import ConfigError

HIDDEN = "***"
_SHORTEST = 8
"""A shorter key, such as those that local servers accept, may as well be a word of the text."""

_IN_URL = re.compile(
    r"(?P<scheme>(?<![a-z0-9+.-])[a-z0-9+.-]+:|(?<![^\s'\"=]))//(?!/)"
    r"(?:[^/?#\s'\"]*@|[^/@:\s'\"]+:(?!\d+(?:[/?#\s'\"]|$))[^\s'\"]{0,2000}@)",
    re.IGNORECASE,
)
"""A user or password before the host, also one with a slash that should have been escaped. Tried at the start of a word
only, and so far only, as many addresses in a row would take quadratic time otherwise."""
_IN_QUERY = re.compile(r"(?P<name>[?&](?:password|passwd|token|api_?key|key|secret)=)[^&#\s'\"]+", re.IGNORECASE)


def holds_credentials(text: str) -> bool:
    """Whether a text has a URL in it that names a user, a password or a key."""
    return bool(_IN_URL.search(text) or _IN_QUERY.search(text))


def without_credentials(text: str) -> str:
    """``text`` with the users, passwords and keys of all its URLs left out."""
    text = _IN_URL.sub(lambda found: f"{found['scheme']}//", text)
    return _IN_QUERY.sub(lambda found: f"{found['name']}{HIDDEN}", text)


def refuse_credentials(plain: Any, path: str = "") -> None:
    """Check a configuration, which is written to disk and uploaded.

    Args:
        plain: plain data.
        path: where it stands in the configuration.

    Raises:
        ConfigError: a URL in it holds a user, a password or a key; the value is not repeated.
    """
    if isinstance(plain, Mapping):
        for key, value in plain.items():
            refuse_credentials(value, f"{path}.{key}" if path else str(key))
    elif isinstance(plain, list | tuple):
        for value in plain:
            refuse_credentials(value, path)
    elif isinstance(plain, str) and holds_credentials(plain):
        raise ConfigError(f"{path}: the URL holds a user, a password or a key, which others could see", _safe(path))


def _safe(path: str) -> str:
    if path.startswith("tracking"):
        return (
            "leave them out and set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD,"
            " or leave tracking.uri out and set MLFLOW_TRACKING_URI"
        )
    return "leave them out; put the key into an environment variable and name that in api_key_env"


def without_key(text: str, key: str | None) -> str:
    """``text`` without a key, in whatever form a server repeats it.

    Args:
        text: what a server said.
        key: as it was sent; None or an empty one hides nothing.
    """
    if not key:
        return text
    if len(key) < _SHORTEST:
        return text.replace(key, HIDDEN)
    return _forms(key).sub(HIDDEN, text)


def body_without_key(body: bytes, key: str | None) -> bytes:
    """The same for a whole reply. Keys too short to be secrets stay, since they may be words of the reply."""
    if not key or len(key) < _SHORTEST:
        return body
    return without_key(body.decode("latin-1"), key).encode("latin-1")


@lru_cache(maxsize=16)
def _forms(key: str) -> re.Pattern[str]:
    """The key as it is, characters escaped for a URL or for JSON once or more, and in base64, alone or in a text."""
    characters = (rf"(?:{re.escape(c)}|(?i:%(?:25)*{ord(c):02x}|\\+u{ord(c):04x}))" for c in key)
    return re.compile("|".join([*_in_base64(key), "".join(characters)]))


def _in_base64(key: str) -> list[str]:
    """What is always the same of the key's base64, for each of the three places where a group of bytes can begin."""
    found = []
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + key.encode()).decode().rstrip("=")
        last = -1 if (before + len(key)) % 3 else None  # its bits depend on what follows
        sure = whole[(0, 2, 3)[before] : last]
        found.append("".join({"+": r"[+\-]", "/": r"[/_]"}.get(c, c) for c in sure) + "[A-Za-z0-9+/_=-]?")
    return found
