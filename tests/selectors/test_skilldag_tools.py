"""What an agent may call: arguments are checked, refusals say what is wrong, and nothing reaches other sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from selector_contract import SKILLS
from skilldag_calls import add, attend, call, parts_of

from skillarena.selectors.live import EpisodeTool
from skillarena.selectors.skilldag.selector import SkillDag
from skillarena.selectors.skilldag.session import DagSession


@pytest.fixture
def session(tmp_path: Path) -> DagSession:
    return attend(SkillDag(parts_of(tmp_path)))


EDGE = {"source": "alpha", "target": "beta", "type": "depends_on", "reason": "seen"}


def test_tools_come_in_order_with_an_example_that_fits(session: DagSession) -> None:
    assert [tool.name for tool in session.tools] == ["search", "show", "propose_edge", "edit_edge", "rollback"]
    for tool in session.tools:
        assert isinstance(tool, EpisodeTool)
        assert "\n" not in tool.usage + tool.description
        answer = call(session, tool.name, **orjson.loads(tool.usage))
        assert answer["ok"] or answer["error"]["code"] in ("SKILL_NOT_FOUND", "NOTHING_TO_ROLLBACK")


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("search", {}, "give either `query` or `queries`"),
        ("search", {"query": "a", "queries": ["b"]}, "give either `query` or `queries`"),
        ("search", {"query": "  "}, "query: "),
        ("search", {"query": 5}, "query: "),
        ("search", {"query": "a\ud800"}, "query: "),
        ("search", {"queries": []}, "queries: "),
        ("search", {"queries": ["a"] * 6}, "queries: "),
        ("search", {"query": "a", "top_k": 0}, "top_k: "),
        ("search", {"query": "a", "top_k": True}, "top_k: "),
        ("search", {"query": "a", "top_k": 1000}, "top_k: "),
        ("search", {"query": "a", "depth": -1}, "depth: "),
        ("search", {"query": "a", "k\ud800": 1}, "unicode"),
        ("show", {}, "skill_id: "),
        ("show", {"skill_id": ["alpha"]}, "skill_id: "),
        ("edit_edge", {**EDGE, "action": "delete"}, "action: "),
        ("edit_edge", {**EDGE, "action": "retype"}, "`from_type` goes with action `retype`"),
        ("edit_edge", {**EDGE, "from_type": "similar_to"}, "`from_type` goes with action `retype`"),
        ("edit_edge", {key: value for key, value in EDGE.items() if key != "reason"}, "reason: "),
        ("propose_edge", {**EDGE, "sure": True}, "sure: "),
        ("rollback", {"reason": "x"}, "give one of"),
        ("rollback", {"reason": "x", "steps": 1, "entry": "e1"}, "give one of"),
        ("rollback", {"reason": "x", "steps": 0}, "steps: "),
    ],
)
def test_arguments_that_make_no_sense_are_refused_with_an_example(
    session: DagSession, tool: str, arguments: dict[str, Any], said: str
) -> None:
    answer = call(session, tool, **arguments)
    assert answer["error"]["code"] == "INVALID_ARGUMENTS"
    assert said in answer["error"]["message"]
    assert answer["usage"] == orjson.loads({each.name: each for each in session.tools}[tool].usage)
    assert session._overlay.edits == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("show", {"skill_id": "alhpa"}),
        ("edit_edge", {**EDGE, "source": "alhpa"}),
        ("propose_edge", {**EDGE, "target": "alhpa"}),
        ("edit_edge", {**EDGE, "source": "alhpa", "action": "remove"}),
    ],
)
def test_an_unknown_skill_brings_near_ones(session: DagSession, tool: str, arguments: dict[str, Any]) -> None:
    answer = call(session, tool, **arguments)
    assert answer["error"]["code"] == "SKILL_NOT_FOUND"
    assert answer["did_you_mean"][0] == "alpha"


def test_a_reason_is_asked_for_before_anything_else(session: DagSession) -> None:
    answer = call(session, "edit_edge", **{**EDGE, "source": "nobody", "reason": " "})
    assert answer["error"]["code"] == "INVALID_REASON"


def test_a_proposal_says_what_would_happen_and_changes_nothing(session: DagSession) -> None:
    answer = call(session, "propose_edge", **{**EDGE, "source": "beta", "target": "alpha", "type": "similar_to"})
    edge = {"source": "alpha", "target": "beta", "type": "similar_to", "reason": "seen", "origin": "online"}
    assert answer["would"] == {"action": "add", "removed": [], "added": [edge]}
    assert answer["related"] == {"edges": [], "edits": []}
    assert session._overlay.graph.edges == []
    assert session._overlay.edits == []


def test_a_proposal_brings_earlier_reasons_on_the_pair_even_when_it_is_refused(session: DagSession) -> None:
    add(session, "alpha", "beta", "similar_to", "both heat")
    call(session, "rollback", steps=1, reason="one cools")
    add(session, "beta", "alpha", "depends_on", "cooled first")
    answer = call(session, "propose_edge", **{**EDGE, "type": "conflicts_with"})
    assert answer["error"]["code"] == "CONTRADICTORY_EDGE"
    assert [edge["reason"] for edge in answer["related"]["edges"]] == ["cooled first"]
    assert [
        (edit["entry"], edit["action"], edit["reason"], edit["undone_by"]) for edit in answer["related"]["edits"]
    ] == [
        ("own1", "add", "both heat", "own2"),
        ("own2", "rollback", "one cools", None),
        ("own3", "add", "cooled first", None),
    ]


def test_a_proposed_retyping_shows_the_direction_that_would_be_written(session: DagSession) -> None:
    add(session, "alpha", "beta", "similar_to")
    arguments = {"source": "beta", "target": "alpha", "type": "depends_on", "from_type": "similar_to", "reason": "x"}
    would = call(session, "propose_edge", action="retype", **arguments)["would"]
    assert (would["added"][0]["source"], would["added"][0]["target"]) == ("beta", "alpha")
    assert would["removed"][0]["type"] == "similar_to"


def test_an_edit_is_answered_with_what_it_did(session: DagSession) -> None:
    answer = call(session, "edit_edge", **EDGE)
    assert (answer["entry"], answer["action"], answer["removed"], len(answer["added"])) == ("own1", "add", [], 1)
    removed = call(session, "edit_edge", **{**EDGE, "action": "remove"})
    assert removed["removed"] == answer["added"]
    undone = call(session, "rollback", entry="own2", reason="it was right")
    assert (undone["undone"], undone["added"]) == (["own2"], answer["added"])


def test_sessions_do_not_see_each_other(tmp_path: Path) -> None:
    dag = SkillDag(parts_of(tmp_path))
    one, other = attend(dag, "one"), attend(dag, "two")
    add(one, "alpha", "beta")
    assert add(other, "beta", "alpha") == "own1"


def test_show_gives_the_whole_text_and_edges_of_both_directions_conflicts_first(tmp_path: Path) -> None:
    session = attend(SkillDag(parts_of(tmp_path, SKILLS), max_related=2))
    for edge in session._overlay.graph.touching("heat"):
        call(session, "edit_edge", action="remove", source=edge.source, target=edge.target, type=edge.type, reason="x")
    add(session, "heat", "find")
    add(session, "place", "heat")
    add(session, "heat", "invoice", "conflicts_with")
    result = {tool.name: tool for tool in session.tools}["show"].call({"skill_id": "heat"})
    answer = orjson.loads(result.text)
    assert [(edge["source"], edge["type"], edge["target"]) for edge in answer["edges"]] == [
        ("heat", "conflicts_with", "invoice"),
        ("heat", "depends_on", "find"),
    ]
    assert answer["edges_left_out"] == 1
    assert answer["text"] == SKILLS.by_id["heat"].text
    assert [(skill.id, skill.text) for skill in result.skills] == [("heat", SKILLS.by_id["heat"].text)]


def test_other_tools_let_the_agent_read_no_skill(session: DagSession) -> None:
    tools = {tool.name: tool for tool in session.tools}
    assert tools["search"].call({"query": "alpha"}).skills == ()
    assert tools["show"].call({"skill_id": "nobody"}).skills == ()
    assert tools["edit_edge"].call(EDGE).skills == ()
