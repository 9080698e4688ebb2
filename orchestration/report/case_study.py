"""One selection as a figure file: what was there to choose from, how it was weighed, what was chosen.

For SkillReranker it shows what figure 4 of arXiv 2607.06283 shows: the states of the task, candidate skills as edges
between them, the flow of relevance that splits the task into stages, and the skill that won each stage.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillarena.conf.errors import ConfigError, nearest
from skillarena.conf.user_path import is_folder
from skillarena.orchestration.report.case_model import CaseStudy, case_study
from skillarena.orchestration.report.case_picture import draw

if TYPE_CHECKING:
    from skillarena.selectors.interface import Selection

FORMATS = ("svg", "png", "html")
"""Suffixes of figure files."""


def check_figure_file(path: Path) -> None:
    """Refuse a file that could not be written, before the work for it is done. Raises ``ConfigError``."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in FORMATS:
        raise ConfigError(
            f"--figure {path}: no such kind of figure{nearest(suffix, FORMATS)}",
            "name a file that ends in .svg, .png or .html",
        )
    if not is_folder(path.parent):
        raise ConfigError(f"--figure {path}: there is no folder {path.parent}", "make it, or name another file")


def write_case_study(selection: Selection, goal: str, method: str, path: Path) -> None:
    """Draw a selection; the same one gives the same bytes.

    Args:
        selection: a method's outcome with its ``details``.
        goal: the task's instruction.
        method: the method's label.
        path: the file, its suffix one of ``FORMATS``.

    Raises:
        ConfigError: the method made no choice that could be drawn, or the file cannot be written.
        DataError: the selection is damaged.
    """
    check_figure_file(path)
    content = _content(case_study(selection, goal, method), path.suffix.lower())
    try:
        path.write_bytes(content)
    except OSError as error:
        raise ConfigError(
            f"--figure {path}: cannot be written ({error.strerror or error})", "name another file"
        ) from error


def _content(study: CaseStudy, suffix: str) -> bytes:
    if suffix == ".png":
        return draw(study, "png")
    picture = draw(study, "svg")
    if suffix == ".svg":
        return picture
    from skillarena.orchestration.report.case_page import page

    return page(study, picture.decode()).encode()
