"""Keeps secrets out of what is printed, whoever's message they are in."""

from __future__ import annotations

import os
from collections.abc import Iterable
from urllib.parse import urlsplit

from skillarena.conf.redaction import without_key

_ALSO = ("MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN", "HF_TOKEN", "RAY_AUTH_TOKEN")
_URLS = ("MLFLOW_TRACKING_URI", "HF_ENDPOINT", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_SHORTEST = 4  # characters: shorter ones are no secrets, and would be found everywhere


def secret_values(key_variables: Iterable[str]) -> list[str]:
    """Keys, tokens and passwords in this process's environment, the longest first.

    Args:
        key_variables: names of variables with API keys.
    """
    values = [os.environ.get(name, "").strip() for name in (*key_variables, *_ALSO)]
    for name in _URLS:
        try:
            values.append(urlsplit(os.environ.get(name, "")).password or "")
        except ValueError:  # no URL
            continue
    return sorted({value for value in values if len(value) >= _SHORTEST}, key=len, reverse=True)


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with stars in place of secrets."""
    for secret in secrets:
        text = without_key(text, secret)
    return text
