"""A case study as one HTML file that opens from disk: the picture, and everything in it once more as tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from skillarena.orchestration.console import plain
from skillarena.orchestration.report.case_model import CaseStudy, Option

_TEMPLATES = Path(__file__).parent / "page"


def page(study: CaseStudy, picture: str) -> str:
    """The page.

    Args:
        study: what the picture shows.
        picture: the picture as an SVG document of this project's own making, in which all text is escaped.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_without_controls,
    )
    environment.filters["number"] = _number
    environment.filters["edge"] = _edge
    svg = picture[picture.index("<svg ") :]
    return environment.get_template("case_study.html").render(study=study, picture=Markup(svg))  # noqa: S704


def _without_controls(value: Any) -> Any:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _edge(option: Option) -> str:
    return f"S{option.source} to S{option.target}" if option.target is not None else "dropped"
