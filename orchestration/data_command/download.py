"""One file over HTTP that continues where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from skillarena.conf.errors import DataError

_TIMEOUT = httpx.Timeout(60.0, connect=20.0)
_TRIES = 4


class _AgainError(Exception):
    """A failure that may pass; the text says what it was."""


def download(
    url: str, target: Path, *, advance: Callable[[int], object], total: Callable[[int], object], by_hand: str
) -> None:
    """Fetch a file; what an earlier try left in ``target.part`` is continued if the server still has the same file.

    Args:
        url: its address; redirects are followed.
        target: where it goes once it is whole; nothing is asked when it is there.
        advance: told the bytes that came, those of an earlier try included.
        total: told the file's size in bytes, once.
        by_hand: what to do without this download, for messages.

    Raises:
        DataError: the server cannot be reached, refuses, or keeps breaking off, or the disk does.
    """
    if target.is_file():
        return
    retrying = Retrying(
        stop=stop_after_attempt(_TRIES),
        wait=wait_random_exponential(multiplier=0.5, max=10),
        retry=retry_if_exception_type(_AgainError),
        reraise=True,
    )
    part = target.with_name(f"{target.name}.part")
    seen = _Seen(advance, total)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with httpx.Client(timeout=_TIMEOUT, follow_redirects=True) as client:
            for attempt in retrying:
                with attempt:
                    _fetch(client, url, part, seen, by_hand)
        part.replace(target)
        _tag_of(part).unlink(missing_ok=True)
    except _AgainError as error:
        raise DataError(f"{url} cannot be downloaded: {error}", by_hand) from error
    except OSError as error:
        raise DataError(f"{part} cannot be written: {error.strerror or error}", "make room, and repeat") from error


class _Seen:
    """Bytes as the progress bar counts them: each once, however often a try begins."""

    def __init__(self, advance: Callable[[int], object], total: Callable[[int], object]) -> None:
        self._advance, self._total = advance, total
        self._most = 0
        self._size: int | None = None

    def have(self, position: int) -> None:
        if position > self._most:
            self._advance(position - self._most)
            self._most = position

    def size(self, size: int) -> None:
        if self._size is None:
            self._size = size
            self._total(size)


def _fetch(client: httpx.Client, url: str, part: Path, seen: _Seen, by_hand: str) -> None:
    """One try. Raises ``_AgainError`` for what another one may mend, ``DataError`` for a refusal."""
    have, tag = _left_over(part)
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-", "If-Range": tag} if have else {})
    try:
        with client.stream("GET", url, headers=headers) as answer:
            if answer.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
                part.unlink()
                raise _AgainError("what an earlier try left does not fit the file any more")
            if answer.status_code >= 500 or answer.status_code == httpx.codes.TOO_MANY_REQUESTS:
                raise _AgainError(f"the server answers {answer.status_code}")
            if answer.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
                raise DataError(f"{url}: the server answers {answer.status_code}", by_hand)
            start = have if answer.status_code == httpx.codes.PARTIAL_CONTENT else 0
            _tag_of(part).write_text(json.dumps(answer.headers.get("ETag", "")))
            length = answer.headers.get("Content-Length")
            size = start + int(length) if length else None
            if size is not None:
                seen.size(size)
            seen.have(start)
            with part.open("ab" if start else "wb") as file:
                for chunk in answer.iter_raw():
                    file.write(chunk)
                    seen.have(file.tell())
                got = file.tell()
    except httpx.HTTPError as error:
        raise _AgainError(str(error) or type(error).__name__) from error
    if size is not None and got != size:
        raise _AgainError(f"{got:,} of {size:,} bytes came")


def _left_over(part: Path) -> tuple[int, str]:
    """Bytes of an earlier try and the mark of the file they are of; 0 without a mark that tells files apart."""
    try:
        tag = json.loads(_tag_of(part).read_bytes())
        have = part.stat().st_size
    except (OSError, ValueError):
        return 0, ""
    return (have, tag) if isinstance(tag, str) and tag and not tag.startswith("W/") else (0, "")


def _tag_of(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")
