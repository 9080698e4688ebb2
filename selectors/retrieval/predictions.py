"""Rankings in files: written by this project, or by any other in the published form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from skillarena.conf.errors import DataError
from skillarena.conf.user_path import user_path

_FORM = (
    'write lines {"selector": "…", "query": "…", "ranking": ["SKILL_ID", …]}, or {"QUERY": ["SKILL_ID", …]} in a .json'
)
_PUBLISHED = TypeAdapter(dict[str, list[str]])


class Prediction(BaseModel):
    """What one method answered to one query."""

    model_config = ConfigDict(frozen=True, strict=True)

    selector: str
    """The method's label."""
    query: str
    """The query's id."""
    ranking: list[str]
    """Skill ids, best first."""
    chosen: bool = False
    """The ranking is what the method chose: it ranks nothing beyond."""
    marks: list[str] = []
    """What was unusual about it (``interface.MARKS``)."""
    seconds: float | None = None
    """Wall time as computed; None where it is not known."""
    pairs_scored: int | None = None
    """Query-document pairs that a model scored; None where it is not known."""
    pairs_cached: int | None = None
    """Query-document pairs answered by the score cache; None where it is not known."""
    tokens: int | None = None
    """Prompt and completion tokens of a language model; None where it is not known."""


def write_predictions(path: Path, predictions: Sequence[Prediction]) -> None:
    """One JSON object a line; an earlier file is replaced. Raises ``OSError``."""
    part = path.with_name(f"{path.name}.part")
    part.write_text("".join(f"{prediction.model_dump_json()}\n" for prediction in predictions), encoding="utf-8")
    part.replace(path)


def read_predictions(path: str | Path) -> dict[str, list[Prediction]]:
    """Predictions by method, in file order.

    Args:
        path: lines as :func:`write_predictions` writes them, or the published form: a ``.json`` file with one object of
            rankings by query, whose method is called as the file.

    Raises:
        DataError: the file is missing or of another form, or a method answers a query twice.
    """
    path = user_path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{str(path)!r} cannot be read ({error.strerror})", "name a predictions file") from error
    by_method: dict[str, list[Prediction]] = {}
    seen: set[tuple[str, str]] = set()
    for prediction in _published(content, path) if path.suffix == ".json" else _lines(content, path):
        if (key := (prediction.selector, prediction.query)) in seen:
            raise DataError(f"{path}: {key[0]!r} answers the query {key[1]!r} twice", "keep one of the two")
        seen.add(key)
        by_method.setdefault(prediction.selector, []).append(prediction)
    if not by_method:
        raise DataError(f"{path} holds no prediction", _FORM)
    return by_method


def _published(content: bytes, path: Path) -> Iterator[Prediction]:
    try:
        rankings = _PUBLISHED.validate_json(content, strict=True)
    except ValidationError as error:
        raise DataError(f"{path}: {_first(error)}", _FORM) from error
    for query, ranking in rankings.items():
        yield Prediction(selector=path.stem, query=query, ranking=ranking)


def _lines(content: bytes, path: Path) -> Iterator[Prediction]:
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            try:
                yield Prediction.model_validate_json(line)
            except ValidationError as error:
                raise DataError(f"{path}:{number}: {_first(error)}", _FORM) from error


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(step) for step in problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])
