"""SPEM's templates: which one a task is given, and what a success or a use makes of those that are known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skillarena.selectors.spem.procedure import ProcedureStep
from skillarena.selectors.spem.templates import Template, nearest, with_success, with_use


def template(source: str, degrees: float, procedure: Sequence[str] = ("go", "take"), **numbers: int) -> Template:
    vector = np.array([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], dtype=np.float32)
    return Template(source, source, vector, tuple(ProcedureStep(action) for action in procedure), **numbers)


def test_the_bound_of_similarity_is_inclusive() -> None:
    goal = np.array([1.0, 0.0], dtype=np.float32)
    at = Template("at", "", np.array([0.75, np.sqrt(1 - 0.75**2)], dtype=np.float32), ())
    below = Template("below", "", np.array([0.749, np.sqrt(1 - 0.749**2)], dtype=np.float32), ())
    found = nearest([below, at], goal, 0.75)
    assert found is not None
    assert (found[0].source, found[1]) == ("at", 0.75)
    assert nearest([below], goal, 0.75) is None
    assert nearest([], goal, -1.0) is None


def test_the_nearest_template_is_taken_and_of_equals_the_more_successful() -> None:
    goal = np.array([1.0, 0.0], dtype=np.float32)
    near, far = template("near", 10, uses=5, successes=0), template("far", 20, uses=5, successes=5)
    found = nearest([far, near], goal, 0.75)
    assert found is not None
    assert found[0] is near
    equals = [template(name, 10, uses=4, successes=won) for name, won in (("a", 1), ("b", 3), ("c", 3))]
    found = nearest(equals[::-1], goal, 0.75)
    assert found is not None
    assert found[0].source == "b"


def test_a_success_adds_refines_or_confirms() -> None:
    known = (template("k", 0, ("go x", "go y", "take z"), uses=3, successes=2),)
    far = with_success(known, template("n", 60), tau=0.75, used=None)
    assert [entry.source for entry in far] == ["k", "n"]
    other_kind = with_success(known, template("n", 0, ("go", "heat")), tau=0.75, used="k")
    assert [(entry.source, entry.uses) for entry in other_kind] == [("k", 3), ("n", 1)]
    (shorter,) = with_success(known, template("n", 5), tau=0.75, used="k")
    assert (shorter.source, shorter.goal, len(shorter.procedure), shorter.uses) == ("k", "n", 2, 3)
    (longer,) = with_success(known, template("n", 5, ("go", "go a", "go b", "take")), tau=0.75, used=None)
    assert (longer.goal, len(longer.procedure), longer.uses, longer.successes) == ("k", 3, 4, 3)
    assert with_success(known, template("n", 5, ()), tau=0.75, used=None) == known


def test_use_changes_the_counts_of_the_one_that_was_given() -> None:
    pair = (template("a", 0), template("b", 0))
    a, b = with_use(pair, "b", won=False)
    assert (a.uses, a.successes, b.uses, b.successes) == (1, 1, 2, 1)
    assert b.procedure == pair[1].procedure
