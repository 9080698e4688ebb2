"""Pages for tests, and what is in them."""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson

from skillarena.orchestration.report.archive import load
from skillarena.orchestration.report.figures import draw
from skillarena.orchestration.report.page import write_page
from skillarena.orchestration.report.report import build_report

HOSTILE = (
    "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>"
    "<svg onload=window.pwned=1>\u2028'\"&\u202eabc\x00{{7*7}}"
)
"""Text that would do harm wherever it were taken for markup, script or template."""


def page_of(root: Path, path: Path, megabytes: float | None = None) -> Path:
    """The page of the cells below ``root``."""
    archive = load([root])
    limit = {} if megabytes is None else {"trajectories_mb": megabytes}
    report = build_report(archive)
    write_page(report, archive, draw(report.lines), path, **limit)
    return path


@dataclass
class Element:
    """A start tag and the text up to the next tag."""

    tag: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Parts(HTMLParser):
    """Elements of a page in order."""

    elements: list[Element] = field(default_factory=list)
    _open: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.elements[-1].text += data

    def of(self, tag: str) -> list[Element]:
        """Elements of one tag."""
        return [element for element in self.elements if element.tag == tag]


def parts_of(path: Path) -> Parts:
    """A page's elements."""
    parts = Parts()
    parts.feed(path.read_text(encoding="utf-8"))
    parts.close()
    return parts


def packed(parts: Parts, name: str) -> Any:
    """What a block of the page holds."""
    block = next(element for element in parts.of("script") if element.attributes.get("id") == name)
    return orjson.loads(gzip.decompress(base64.b64decode(block.text)))


def blocks(parts: Parts) -> list[Any]:
    """All blocks of trajectories."""
    names = [element.attributes.get("id", "") for element in parts.of("script")]
    return [packed(parts, name) for name in names if name.startswith("block-")]
