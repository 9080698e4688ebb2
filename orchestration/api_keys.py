"""Which environment variables hold the API keys that configurations name."""

from __future__ import annotations


def key_variables(sections: object) -> list[str]:
    """Variables that plain data names as ``api_key_env``, at whatever depth; in order, without repeats."""
    if isinstance(sections, dict):
        own = sections.get("api_key_env")
        named = [*([own] if isinstance(own, str) else []), *key_variables(list(sections.values()))]
    else:
        named = [name for item in sections for name in key_variables(item)] if isinstance(sections, list) else []
    return list(dict.fromkeys(named))
