"""A figure as part of a page: in the page's colours, without style attributes, which a strict page would ignore."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from skillarena.orchestration.report.figure_style import INK, PAPER, QUIET, Drawing

_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_WHOLE = {"stroke-linejoin": "round", "stroke-linecap": "butt"}  # what matplotlib's style sheet says of every element

_CLASSES = {
    ("fill", PAPER): "paper",
    ("stroke", PAPER): "paper-line",
    ("fill", QUIET): "quiet",
    ("stroke", QUIET): "quiet-line",
}


def inline_svg(drawing: Drawing) -> str:
    """The figure as an ``svg`` element.

    Text and axes have the page's own colour, ground, grid and notes are in CSS classes,
    and its ids are those of no other figure.
    """
    root = ElementTree.fromstring(drawing.svg())  # noqa: S314 - just written by matplotlib
    prefix = f"{drawing.name}-"
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in (f"{_SVG}style", f"{_SVG}metadata")]:
            parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        for key, value in list(element.attrib.items()):
            element.attrib.pop(key)
            element.attrib |= _attributes(key, value, prefix)
    ground = root.find("./g/g[@id]/path[@class='paper']")
    if ground is not None:
        ground.set("class", "ground")
    root.attrib |= _WHOLE | {"role": "img", "aria-label": f"{drawing.title}. {drawing.description}"}
    return ElementTree.tostring(root, encoding="unicode")


def _attributes(key: str, value: str, prefix: str) -> dict[str, str]:
    if key == "style":
        pairs = (pair.partition(":") for pair in value.split(";") if pair.strip())
        styles = {name.strip(): re.sub(r"#(?=[\w-]+\))", f"#{prefix}", content.strip()) for name, _, content in pairs}
        return _coloured(styles)
    if key == "id":
        return {key: prefix + value}
    if key == _LINK:
        return {"href": f"#{prefix}{value[1:]}"}
    return {key: value.replace("url(#", f"url(#{prefix}")}


def _coloured(styles: dict[str, str]) -> dict[str, str]:
    styles = {name: "currentColor" if content == INK else content for name, content in styles.items()}
    named = " ".join(word for (name, colour), word in _CLASSES.items() if styles.get(name) == colour)
    return styles | ({"class": named} if named else {})
