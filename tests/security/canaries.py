"""Secrets that are easy to find again, and a search for them in whatever a run leaves behind."""

from __future__ import annotations

import base64
import gzip
import hashlib
import lzma
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

NAMES = (
    "BACKBONE_KEY",
    "LLM_KEY",
    "PARSER_KEY",
    "RERANKER_KEY",
    "OPENAI_API_KEY",
    "DEEPSEEK_API_KEY",
    "MIMO_API_KEY",
    "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD",
    "HF_TOKEN",
    "RAY_AUTH_TOKEN",
)
_WINDOW = 16  # characters; a shorter piece of a key is none


def canary(name: str) -> str:
    """A secret with characters that URLs, JSON and base64 all write in another way."""
    return f"cn/{hashlib.sha256(name.encode()).hexdigest()[:40]}+=x"


CANARIES = {name: canary(name) for name in NAMES}


def forms(key: str) -> dict[str, str]:
    """A key as servers and libraries write it."""
    return {
        "plain": key,
        "header": f"Bearer {key}",
        "url": quote(key, safe=""),
        "json": "".join(f"\\u{ord(c):04x}" for c in key),
        "base64": base64.b64encode(key.encode()).decode(),
        "basic": base64.b64encode(f"user:{key}".encode()).decode(),
        "header in base64": base64.urlsafe_b64encode(f"Bearer {key}".encode()).decode(),
    }


def needles(key: str) -> dict[str, bytes]:
    """What shows that a text holds the key or a long piece of it."""
    middle = key[3:43]  # what is the same however the rest is escaped
    found = {f"characters {at} to {at + _WINDOW}": middle[at : at + _WINDOW] for at in range(0, 40 - _WINDOW + 1, 4)}
    found["json"] = "".join(f"\\u{ord(c):04x}" for c in middle[:8])
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + key.encode()).decode()
        found[f"base64, {before} bytes late"] = whole[4:-8]
    return {form: text.encode() for form, text in found.items()}


_NEEDLES = {name: needles(key) for name, key in CANARIES.items()}


def in_content(content: bytes) -> list[str]:
    """Which canaries, and in which form, some bytes hold, packed or not."""
    return [
        f"{name} ({form})"
        for part in _unpacked(content, depth=3)
        for name, texts in _NEEDLES.items()
        for form, text in texts.items()
        if text in part
    ]


def in_folders(folders: Iterable[Path]) -> list[str]:
    """Hits in all files below some folders, with where they are."""
    hits = []
    for path in (path for folder in folders for path in sorted(folder.rglob("*"))):
        hits += [f"{path}: {hit} in its name" for hit in in_content(str(path).encode())]
        if path.is_file():
            hits += [f"{path}: {hit}" for content in _contents(path) for hit in in_content(content)]
    return hits


def _contents(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield content
    if content.startswith(b"SQLite format 3"):  # long values are cut up in the file
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            for (table,) in database.execute("select name from sqlite_master where type = 'table'").fetchall():
                for row in database.execute(f'select * from "{table}"'):
                    yield b"\0".join(_bytes(value) for value in row)
                    yield from (value for value in row if isinstance(value, bytes))
        finally:
            database.close()


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _unpacked(content: bytes, depth: int) -> Iterator[bytes]:
    yield content
    if not depth:
        return
    packers: dict[bytes, Callable[[bytes], bytes]] = {
        b"\x1f\x8b": gzip.decompress,
        b"\xfd7zXZ": lzma.decompress,
        b"x\x01": zlib.decompress,
        b"x\x9c": zlib.decompress,
    }
    for start, unpack in packers.items():
        if content.startswith(start):
            try:
                yield from _unpacked(unpack(content), depth - 1)
            except (OSError, EOFError, lzma.LZMAError, zlib.error):
                continue
    if b"<html" in content[:2000]:  # a page carries its trajectories as packed blocks
        for block in re.findall(rb"(?<=>)[A-Za-z0-9+/]{40,}={0,2}(?=<)", content):
            yield from _unpacked(base64.b64decode(block), depth - 1)
