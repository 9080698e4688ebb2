"""What the agent may call: find and read skills; try, make and undo edits. Every answer is one JSON object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from skillarena.selectors.live import ToolResult
from skillarena.selectors.shortlist import choose
from skillarena.selectors.skilldag.edges import EXCLUDES, GraphError, clean_reason
from skillarena.selectors.skilldag.history import Edit, Entry
from skillarena.selectors.skilldag.overlay import Overlay

_MOST_QUERIES = 5
_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SearchArguments(_Arguments):
    """One query or several."""

    query: _Text | None = None
    queries: list[_Text] | None = Field(default=None, min_length=1, max_length=_MOST_QUERIES)
    top_k: int | None = Field(default=None, ge=1, le=20)
    depth: int | None = Field(default=None, ge=0, le=3)

    @model_validator(mode="after")
    def _one_of_both(self) -> SearchArguments:
        if (self.query is None) == (self.queries is None):
            raise ValueError("give either `query` or `queries`")
        return self


class ShowArguments(_Arguments):
    """One skill."""

    skill_id: _Text


class EditArguments(_Arguments):
    """An edge to add, to remove, or to give another type."""

    action: Literal["add", "remove", "retype"] = "add"
    source: _Text
    target: _Text
    type: str
    from_type: str | None = None
    reason: str

    @model_validator(mode="after")
    def _from_type_for_retype(self) -> EditArguments:
        if (self.action == "retype") != (self.from_type is not None):
            raise ValueError("`from_type` goes with action `retype`, and only with it")
        return self


class RollbackArguments(_Arguments):
    """What to undo."""

    entry: _Text | None = None
    task_id: _Text | None = None
    steps: int | None = Field(default=None, ge=1, le=100)
    reason: str

    @model_validator(mode="after")
    def _one_of_three(self) -> RollbackArguments:
        if sum(value is not None for value in (self.entry, self.task_id, self.steps)) != 1:
            raise ValueError("give one of `entry`, `steps` and `task_id`")
        return self


_A = TypeVar("_A", bound=_Arguments)


@dataclass(frozen=True, slots=True)
class GraphTool:
    """An ``EpisodeTool`` made of a schema for its arguments and a function that answers."""

    name: str
    usage: str
    description: str
    answer: Callable[[Mapping[str, Any]], ToolResult]

    def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Answer a call, one that makes no sense too."""
        return self.answer(arguments)


def reading_tools(overlay: Overlay, *, top_k: int, depth: int, most: int) -> tuple[GraphTool, ...]:
    """``search`` and ``show``.

    Args:
        overlay: the session's graph.
        top_k: matches of a search that names no number.
        depth: likewise, how far neighbours may be away.
        most: conflicts and neighbours listed, of each.
    """

    def search(arguments: SearchArguments) -> ToolResult:
        results = [
            overlay.search(
                query,
                top_k=arguments.top_k or top_k,
                depth=depth if arguments.depth is None else arguments.depth,
                most=most,
            )
            for query in arguments.queries or [arguments.query or ""]
        ]
        return _done(result=results[0]) if arguments.queries is None else _done(results=results)

    def show(arguments: ShowArguments) -> ToolResult:
        skill = overlay.skill(arguments.skill_id)
        edges = overlay.graph.touching(skill.id)
        edges.sort(key=lambda edge: edge.type != EXCLUDES)
        shown = _done(
            skill_id=skill.id,
            edges=[edge.as_json() for edge in edges[:most]],
            edges_left_out=max(0, len(edges) - most),
            text=skill.text,
        )
        return ToolResult(shown.text, skills=(choose(skill, 0.0, "The agent asked for it."),))

    return (
        _tool(
            "search",
            {"query": "what you want to do"},
            "finds skills for a query, or for up to 5 at once with `queries`; also lists skills that conflict with them"
            " and related ones; optional: `top_k` (matches), `depth` (how far related skills may be away)",
            overlay,
            SearchArguments,
            search,
        ),
        _tool(
            "show",
            {"skill_id": "id of a skill"},
            "gives the full text of a skill and its relations to others",
            overlay,
            ShowArguments,
            show,
        ),
    )


def editing_tools(overlay: Overlay) -> tuple[GraphTool, ...]:
    """``propose_edge``, ``edit_edge`` and ``rollback``."""

    def edit_of(arguments: EditArguments) -> Edit:
        graph, ends = overlay.graph, (arguments.source, arguments.target)
        if arguments.action == "retype":
            change = graph.retyping(*ends, arguments.from_type or "", arguments.type, arguments.reason)
        else:
            build = graph.addition if arguments.action == "add" else graph.removal
            change = build(*ends, arguments.type, arguments.reason)
        return Edit(arguments.action, clean_reason(arguments.reason), change)

    def propose(arguments: EditArguments) -> ToolResult:
        related = _related(overlay, arguments.source, arguments.target)
        try:
            edit = edit_of(arguments)
            overlay.try_out(edit)
        except GraphError as error:
            if error.unknown:
                raise
            return _refused(error, **related)
        return _done(would={"action": edit.action, **edit.change.as_json()}, **related)

    def make(arguments: EditArguments) -> ToolResult:
        return _carried_out(overlay.commit(edit_of(arguments)))

    def undo(arguments: RollbackArguments) -> ToolResult:
        edit = overlay.history.rollback(
            arguments.reason,
            entry=arguments.entry or "",
            task_id=arguments.task_id or "",
            steps=arguments.steps or 0,
        )
        return _carried_out(overlay.commit(edit))

    example = {
        "action": "add",
        "source": "id of a skill",
        "target": "id of a skill",
        "type": "depends_on",
        "reason": "what in this task shows it",
    }
    return (
        _tool(
            "propose_edge",
            example,
            "says what an edit of the relations between two skills would do, and what is known about the pair, without"
            " doing it; arguments as for edit_edge",
            overlay,
            EditArguments,
            propose,
        ),
        _tool(
            "edit_edge",
            example,
            "edits a relation: `action` add, remove or retype (then `from_type` is the present type); `type` depends_on"
            " (source needs target first), specializes (source is narrower than target), composes_with, similar_to or"
            " conflicts_with; `reason` is evidence from this task",
            overlay,
            EditArguments,
            make,
        ),
        _tool(
            "rollback",
            {"steps": 1, "reason": "why it was wrong"},
            "undoes the latest `steps` edits, or one `entry` by its id, or all edits of one `task_id`",
            overlay,
            RollbackArguments,
            undo,
        ),
    )


def _tool(
    name: str,
    example: dict[str, Any],
    description: str,
    overlay: Overlay,
    schema: type[_A],
    answer: Callable[[_A], ToolResult],
) -> GraphTool:
    def checked(arguments: Mapping[str, Any]) -> ToolResult:
        try:
            return answer(schema.model_validate(dict(arguments)))
        except ValidationError as error:
            return _refused(GraphError("INVALID_ARGUMENTS", _problems(error)), usage=example)
        except GraphError as error:
            near = {"did_you_mean": overlay.suggest(error.unknown)} if error.unknown else {}
            return _refused(error, **near)

    return GraphTool(name, orjson.dumps(example).decode(), description, checked)


def _problems(error: ValidationError) -> str:
    return "; ".join(": ".join([*map(str, problem["loc"]), problem["msg"]]) for problem in error.errors())


def _related(overlay: Overlay, source: str, target: str) -> dict[str, Any]:
    """What the graph and its journal say about a pair."""
    pair = (min(source, target), max(source, target))
    return {
        "related": {
            "edges": [edge.as_json() for edge in overlay.graph.between(*pair)],
            "edits": [_described(entry, overlay) for entry in overlay.history.latest_on(pair)],
        }
    }


def _described(entry: Entry, overlay: Overlay) -> dict[str, Any]:
    return {
        "entry": entry.id,
        "action": entry.edit.action,
        "task_id": entry.task_id,
        "reason": entry.edit.reason,
        **entry.change.as_json(),
        "undone_by": overlay.history.undone.get(entry.id),
    }


def _carried_out(entry: Entry) -> ToolResult:
    return _done(entry=entry.id, action=entry.edit.action, undone=list(entry.edit.undoes), **entry.change.as_json())


def _done(**content: Any) -> ToolResult:
    return ToolResult(orjson.dumps({"ok": True, **content}).decode())


def _refused(error: GraphError, **content: Any) -> ToolResult:
    answer = {"ok": False, "error": {"code": error.code, "message": error.message}, **content}
    return ToolResult(orjson.dumps(answer).decode(), ok=False)
