"""Every edit can be undone once, an undoing too, and only where the graph allows it."""

from __future__ import annotations

import pytest

from skillarena.selectors.skilldag.edges import GraphError, make_edge
from skillarena.selectors.skilldag.graph import SkillGraph
from skillarena.selectors.skilldag.history import Edit, History

AB = ("a", "b", "depends_on")


class Story:
    """A history with short words for edits."""

    def __init__(self, *edges: tuple[str, str, str]) -> None:
        self.history = History(SkillGraph("abcd", [make_edge(*edge, reason="given") for edge in edges]))

    def add(self, source: str, target: str, edge_type: str, task: str = "t", reason: str = "seen") -> str:
        return self._do(Edit("add", reason, self.history.graph.addition(source, target, edge_type, reason)), task)

    def remove(self, source: str, target: str, edge_type: str, task: str = "t") -> str:
        return self._do(Edit("remove", "x", self.history.graph.removal(source, target, edge_type, "x")), task)

    def retype(self, source: str, target: str, from_type: str, to_type: str, task: str = "t") -> str:
        change = self.history.graph.retyping(source, target, from_type, to_type, "x")
        return self._do(Edit("retype", "x", change), task)

    def undo(self, entry: str = "", task_id: str = "", steps: int = 0) -> str:
        return self._do(self.history.rollback("wrong", entry=entry, task_id=task_id, steps=steps), "u")

    def refused(self, entry: str = "", task_id: str = "", steps: int = 0) -> str:
        before = (self.edges, dict(self.history.undone), list(self.history.entries))
        with pytest.raises(GraphError) as caught:
            self.undo(entry, task_id, steps)
        assert (self.edges, self.history.undone, list(self.history.entries)) == before
        return caught.value.code

    def _do(self, edit: Edit, task: str) -> str:
        return self.history.commit(edit, f"e{self.history.revision + 1}", task).id

    @property
    def edges(self) -> list[str]:
        return [f"{edge.source} {edge.type} {edge.target}" for edge in self.history.graph.edges]


def test_every_kind_of_edit_is_undone_by_its_opposite() -> None:
    story = Story(AB, ("b", "c", "similar_to"))
    before = story.history.graph.edges
    story.add("c", "d", "conflicts_with")
    story.remove(*AB)
    story.retype("b", "c", "similar_to", "composes_with")
    for _ in range(3):
        story.undo(steps=1)
    assert story.history.graph.edges == before


def test_nothing_is_undone_twice() -> None:
    story = Story(AB)
    entry = story.remove(*AB)
    story.undo(entry)
    assert story.refused(entry) == "ALREADY_ROLLED_BACK"
    assert story.refused(steps=1) == "NOTHING_TO_ROLLBACK"
    assert story.edges == ["a depends_on b"]


def test_steps_count_edits_in_force_and_pass_over_rollbacks() -> None:
    story = Story()
    first, second, third = (story.add("a", other, "similar_to") for other in "bcd")
    undo = story.undo(third)
    again = story.undo(steps=2)
    assert story.history.entries[again].edit.undoes == (second, first)
    assert story.history.undone == {third: undo, second: again, first: again}
    assert story.edges == []


def test_more_steps_than_edits_undo_them_all() -> None:
    story = Story()
    story.add(*AB)
    story.undo(steps=50)
    assert story.edges == []


def test_a_task_is_undone_as_a_whole_and_others_stay() -> None:
    story = Story(("a", "b", "similar_to"))
    story.retype("a", "b", "similar_to", "conflicts_with", task="one")
    story.add("c", "d", "depends_on", task="two")
    story.remove("a", "b", "conflicts_with", task="one")
    story.add("b", "a", "depends_on", task="one")
    story.undo(task_id="one")
    assert story.edges == ["c depends_on d", "a similar_to b"]
    assert story.refused(task_id="one") == "NOTHING_TO_ROLLBACK"


def test_undoing_a_removal_may_not_close_a_cycle() -> None:
    story = Story(AB)
    entry = story.remove(*AB)
    story.add("b", "c", "depends_on")
    story.add("c", "a", "specializes")
    assert story.refused(entry) == "WOULD_CREATE_CYCLE"


def test_undoing_a_removal_may_not_contradict() -> None:
    story = Story(("a", "b", "similar_to"))
    entry = story.remove("a", "b", "similar_to")
    story.add("a", "b", "conflicts_with")
    assert story.refused(entry) == "CONTRADICTORY_EDGE"


def test_undoing_does_not_take_what_others_have_changed_since() -> None:
    story = Story()
    entry = story.add(*AB)
    story.remove(*AB)
    assert story.refused(entry) == "EDGE_NOT_FOUND"
    story.add(*AB, reason="a better one")
    assert story.refused(entry) == "EDGE_CHANGED"


def test_a_task_is_not_undone_across_what_others_did_in_between() -> None:
    story = Story()
    story.add(*AB, task="one", reason="first")
    story.remove(*AB, task="two")
    story.add(*AB, task="one", reason="second")
    assert story.refused(task_id="one") == "EDGE_CHANGED"


def test_a_rollback_can_be_rolled_back_and_then_undone_anew() -> None:
    story = Story(AB)
    removal = story.remove(*AB)
    undo = story.undo(removal)
    redo = story.undo(undo)
    assert story.edges == []
    assert story.history.undone == {undo: redo}
    story.undo(redo)
    assert story.edges == ["a depends_on b"]
    assert story.history.undone[removal] == undo
    assert story.refused(removal) == "ALREADY_ROLLED_BACK"


def test_an_edit_undone_on_its_own_keeps_the_rollback_before_it_from_coming_back() -> None:
    story = Story(AB)
    removal = story.remove(*AB)
    undo = story.undo(removal)
    redo = story.undo(undo)
    story.undo(removal)
    assert story.refused(redo) == "ALREADY_ROLLED_BACK"


def test_unknown_entries_tasks_and_empty_reasons_are_refused() -> None:
    story = Story(AB)
    assert story.refused(entry="e9") == "ENTRY_NOT_FOUND"
    assert story.refused(task_id="t") == "NOTHING_TO_ROLLBACK"
    with pytest.raises(GraphError) as caught:
        story.history.rollback("", steps=1)
    assert caught.value.code == "INVALID_REASON"


def test_the_latest_entries_of_a_pair_are_found() -> None:
    story = Story()
    story.add("c", "d", "similar_to")
    for _ in range(4):
        story.add("b", "a", "similar_to")
        story.remove("a", "b", "similar_to")
    assert [entry.id for entry in story.history.latest_on(("a", "b"))] == ["e5", "e6", "e7", "e8", "e9"]
    assert story.history.latest_on(("a", "c")) == []


def test_forks_do_not_see_each_other() -> None:
    story = Story(AB)
    fork = story.history.fork()
    fork.commit(Edit("remove", "x", fork.graph.removal(*AB, "x")), "own1", "t")
    assert (story.history.revision, story.edges, story.history.on_pair) == (0, ["a depends_on b"], {})
