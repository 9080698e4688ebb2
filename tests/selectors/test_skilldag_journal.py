"""Edits of parallel episodes have one writer: each is carried out or kept as refused, and all can be replayed."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import orjson
import pytest
from selector_contract import SKILLS
from skilldag_calls import add, attend, call, edges, lesson, parts_of

from skillarena.conf.errors import DataError
from skillarena.selectors.live import Lesson
from skillarena.selectors.skilldag.selector import SkillDag


@pytest.fixture
def dag(tmp_path: Path) -> SkillDag:
    return SkillDag(parts_of(tmp_path))


def lines(memory: bytes) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in memory.splitlines()]


def refusals(memory: bytes) -> dict[str, str]:
    return {line["entry"]: line["refused"]["code"] for line in lines(memory) if line.get("refused")}


def test_edits_of_one_batch_are_carried_out_in_task_order_and_checked_again(dag: SkillDag) -> None:
    first, second, third = (attend(dag, name) for name in ("one", "two", "three"))
    assert add(first, "alpha", "beta") == "own1"
    assert add(second, "beta", "gamma") == "own1"
    assert add(second, "gamma", "alpha") == "own2"  # fits this session's graph, but not the merged one
    assert add(third, "alpha", "beta", "conflicts_with") == "own1"
    assert add(third, "delta", "alpha") == "own2"
    memory = dag.learn(dag.initial_memory(), [lesson(first), lesson(second), lesson(third, won=False)])
    assert edges(dag, memory) == [
        "alpha depends_on beta",
        "beta depends_on gamma",
        "delta depends_on alpha",
    ]
    assert refusals(memory) == {"e3": "WOULD_CREATE_CYCLE", "e4": "CONTRADICTORY_EDGE"}


def test_the_journal_says_where_each_edit_comes_from(dag: SkillDag) -> None:
    session = attend(dag)
    add(session, "alpha", "beta", reason="the mug was cold")
    header, episode, edit = lines(dag.learn(dag.initial_memory(), [lesson(session, won=False)]))
    assert header["library"] == dag._parts.library.fingerprint
    assert {"benchmark": "alfworld", "split": "valid_seen", "won": False, "reward": 0.0, "base": 0}.items() <= (
        episode.items()
    )
    assert edit["task_id"] == episode["task_id"]
    assert (edit["entry"], edit["action"], edit["reason"], edit["revision"]) == ("e1", "add", "the mug was cold", 1)
    assert edit["added"][0]["origin"] == "online"


def test_an_episode_without_edits_is_noted(dag: SkillDag) -> None:
    memory = dag.learn(dag.initial_memory(), [lesson(attend(dag))])
    assert dag.graph_json(memory) == {"episodes": 1, "edits": 0, "edits_carried_out": 0, "edges": []}


def test_what_builds_on_a_refused_edit_is_refused_too(dag: SkillDag) -> None:
    first, second = attend(dag, "one"), attend(dag, "two")
    add(first, "beta", "alpha", reason="first")
    add(second, "alpha", "beta", reason="second")
    call(
        second,
        "edit_edge",
        action="retype",
        source="alpha",
        target="beta",
        type="similar_to",
        from_type="depends_on",
        reason="x",
    )
    add(second, "gamma", "delta")
    memory = dag.learn(dag.initial_memory(), [lesson(first), lesson(second)])
    assert edges(dag, memory) == ["beta depends_on alpha", "gamma depends_on delta"]
    assert refusals(memory) == {"e2": "WOULD_CREATE_CYCLE", "e3": "EDGE_NOT_FOUND"}


def test_undoing_a_refused_edit_is_refused(dag: SkillDag) -> None:
    first, second = attend(dag, "one"), attend(dag, "two")
    add(first, "alpha", "beta", "conflicts_with")
    add(second, "alpha", "beta")
    assert call(second, "rollback", entry="own1", reason="wrong")["ok"]
    memory = dag.learn(dag.initial_memory(), [lesson(first), lesson(second)])
    assert refusals(memory) == {"e2": "CONTRADICTORY_EDGE", "e3": "ENTRY_NOT_FOUND"}


def test_one_entry_is_undone_once_whoever_tries(dag: SkillDag) -> None:
    start = attend(dag)
    add(start, "alpha", "beta")
    memory = dag.learn(dag.initial_memory(), [lesson(start)])
    later = dag.with_memory(memory)
    both = [attend(later, name) for name in ("two", "three")]
    assert [call(session, "rollback", entry="e1", reason="wrong")["ok"] for session in both] == [True, True]
    merged = later.learn(memory, [lesson(session) for session in both])
    assert edges(dag, merged) == []
    assert refusals(merged) == {"e3": "ALREADY_ROLLED_BACK"}


def test_own_edits_are_undone_by_their_own_names(dag: SkillDag) -> None:
    session = attend(dag)
    add(session, "alpha", "beta")
    add(session, "beta", "gamma")
    call(session, "rollback", steps=1, reason="wrong")
    assert edges(dag, dag.learn(dag.initial_memory(), [lesson(session)])) == ["alpha depends_on beta"]


def test_the_order_in_which_episodes_end_does_not_matter(dag: SkillDag) -> None:
    def merged(closing: tuple[int, ...]) -> bytes:
        sessions = [attend(dag, name) for name in ("one", "two", "three")]
        for at in closing:
            add(sessions[at], "alpha", "beta", ("depends_on", "conflicts_with", "similar_to")[at])
        taught = {at: lesson(sessions[at]) for at in closing}
        return dag.learn(dag.initial_memory(), [taught[at] for at in range(3)])

    assert len({merged(closing) for closing in permutations(range(3))}) == 1


def test_a_memory_grows_at_its_end_and_stays_the_same_when_read(dag: SkillDag) -> None:
    memory = dag.initial_memory()
    for name, edge in (("one", ("alpha", "beta")), ("two", ("beta", "gamma"))):
        now = dag.with_memory(memory)
        session = attend(now, name)
        add(session, *edge)
        longer = now.learn(memory, [lesson(session)])
        assert longer.startswith(memory)
        memory = longer
    assert dag.learn(memory, []) == memory
    assert edges(dag, memory) == ["alpha depends_on beta", "beta depends_on gamma"]
    assert attend(dag.with_memory(memory))._overlay.base == 2


def test_a_late_lesson_is_checked_against_the_graph_as_it_is_now(dag: SkillDag) -> None:
    early, late = attend(dag, "one"), attend(dag, "two")
    add(early, "alpha", "beta")
    add(late, "beta", "alpha")
    memory = dag.learn(dag.learn(dag.initial_memory(), [lesson(early)]), [lesson(late)])
    assert refusals(memory) == {"e2": "WOULD_CREATE_CYCLE"}


def test_a_lesson_from_the_future_is_refused(dag: SkillDag) -> None:
    session = attend(dag)
    add(session, "alpha", "beta")
    later = attend(dag.with_memory(dag.learn(dag.initial_memory(), [lesson(session)])))
    with pytest.raises(DataError, match="revision 1"):
        dag.learn(dag.initial_memory(), [lesson(later)])


@pytest.mark.parametrize("content", [{}, {"won": True, "reward": 1.0, "base": 0, "edits": [{"action": "burn"}]}])
def test_a_foreign_lesson_is_refused(dag: SkillDag, content: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="none of SkillDAG's"):
        dag.learn(dag.initial_memory(), [Lesson("alfworld", "train", "t", content)])


def taught(dag: SkillDag) -> bytes:
    session = attend(dag)
    add(session, "alpha", "beta")
    add(session, "beta", "gamma")
    return dag.learn(dag.initial_memory(), [lesson(session)])


@pytest.mark.parametrize(
    "damage",
    [
        lambda memory: b"",
        lambda memory: b"{}\n",
        lambda memory: b"[1]\n" + memory,
        lambda memory: memory[:-1],
        lambda memory: memory[: len(memory) // 2],
        lambda memory: memory.replace(b"beta", b"zeta", 1),
        lambda memory: b"".join(memory.splitlines(keepends=True)[:2] + memory.splitlines(keepends=True)[3:]),
        lambda memory: memory + memory.splitlines(keepends=True)[-1],
        lambda memory: b"\x80" + memory,
    ],
    ids=["empty", "no-header", "list", "no-end", "half", "altered", "line-lost", "line-twice", "no-text"],
)
def test_a_damaged_memory_is_refused(dag: SkillDag, damage: Any) -> None:
    with pytest.raises(DataError, match="SkillDAG memory"):
        dag.with_memory(damage(taught(dag)))


def test_every_damaged_byte_is_noticed(dag: SkillDag) -> None:
    memory = taught(dag)
    for at in range(0, len(memory), 7):
        altered = bytearray(memory)
        altered[at] ^= 1
        with pytest.raises(DataError):
            dag.with_memory(bytes(altered))


def test_a_memory_with_forged_hashes_must_still_replay(dag: SkillDag) -> None:
    from skillarena.selectors.skilldag.journal import _lines

    contents = [{key: value for key, value in line.items() if key != "hash"} for line in lines(taught(dag))]
    assert dag.with_memory(_lines("", contents))
    for forged in (
        [*contents, {**contents[-1], "entry": "e3"}],
        [*contents[:-1], {**contents[-1], "revision": 7}],
        [*contents, {"won": True}],
        [*contents, {"entry": "e3", "action": "burn"}],
    ):
        with pytest.raises(DataError):
            dag.with_memory(_lines("", forged))


def test_a_memory_of_another_library_or_first_graph_is_refused(dag: SkillDag, tmp_path: Path) -> None:
    memory = dag.initial_memory()
    with pytest.raises(DataError, match="another skill library"):
        SkillDag(parts_of(tmp_path, SKILLS)).with_memory(memory)
    header = lines(memory)[0]
    from skillarena.selectors.skilldag.journal import _lines

    with pytest.raises(DataError, match="another first graph"):
        dag.with_memory(_lines("", [{"format": header["format"], "library": header["library"], "graph": "0"}]))
