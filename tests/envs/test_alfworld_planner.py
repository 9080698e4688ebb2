"""Plans for the six kinds of ALFWorld goals, from ordinary and awkward states."""

from __future__ import annotations

import pytest
from alfworld_files import make_scene

from skillarena.envs.alfworld_planner import Goal, find_plan, read_goal

KITCHEN = """
receptacletype desk_bar_1 desktype
receptacletype shelf_bar_1 shelftype
receptacletype fridge_bar_1 fridgetype
receptacletype sink_bar_1_bar_sinkbasin sinkbasintype
receptacleatlocation desk_bar_1 loc_bar_desk
receptacleatlocation shelf_bar_1 loc_bar_desk
receptacleatlocation fridge_bar_1 loc_bar_fridge
receptacleatlocation sink_bar_1_bar_sinkbasin loc_bar_sink
openable fridge_bar_1
cancontain desktype mugtype
cancontain shelftype mugtype
cancontain fridgetype mugtype
cancontain desktype lamptype
objecttype mug_bar_1 mugtype
pickupable mug_bar_1
cleanable mug_bar_1
atlocation agent1 loc_bar_start
"""


def test_fetches_from_a_closed_container() -> None:
    scene = make_scene(KITCHEN + "inreceptacle mug_bar_1 fridge_bar_1")
    assert find_plan(Goal("mugtype", place="desktype"), scene) == [
        "go to fridge 1",
        "open fridge 1",
        "take mug 1 from fridge 1",
        "go to desk 1",
        "move mug 1 to desk 1",
    ]


def test_changes_the_state_on_the_way_and_brings_the_thing_back() -> None:
    scene = make_scene(KITCHEN + "inreceptacle mug_bar_1 desk_bar_1")
    assert find_plan(Goal("mugtype", place="desktype", state="isclean"), scene) == [
        "go to desk 1",
        "take mug 1 from desk 1",
        "go to sinkbasin 1",
        "clean mug 1 with sinkbasin 1",
        "go to desk 1",
        "move mug 1 to desk 1",
    ]


def test_does_not_go_where_it_stands_already() -> None:
    scene = make_scene(KITCHEN.replace("loc_bar_start", "loc_bar_desk") + "inreceptacle mug_bar_1 desk_bar_1")
    assert find_plan(Goal("mugtype", place="shelftype"), scene) == ["take mug 1 from desk 1", "move mug 1 to shelf 1"]


def test_puts_a_wrong_thing_away_first() -> None:
    scene = make_scene(
        KITCHEN + "inreceptacle mug_bar_1 shelf_bar_1\nholds agent1 lamp_bar_1\nobjecttype lamp_bar_1 lamptype"
    )
    assert find_plan(Goal("mugtype", place="desktype"), scene) == [
        "go to desk 1",
        "move lamp 1 to desk 1",
        "take mug 1 from shelf 1",
        "move mug 1 to desk 1",
    ]


def test_has_no_plan_when_what_is_held_fits_nowhere() -> None:
    scene = make_scene(
        KITCHEN + "inreceptacle mug_bar_1 shelf_bar_1\nholds agent1 roll_bar_1\nobjecttype roll_bar_1 rolltype"
    )
    assert find_plan(Goal("mugtype", place="desktype"), scene) == []


def test_has_no_plan_without_the_thing() -> None:
    assert find_plan(Goal("cuptype", place="desktype"), make_scene(KITCHEN)) == []


def test_a_thing_in_two_receptacles_stays_in_the_other_one() -> None:
    scene = make_scene(KITCHEN + "inreceptacle mug_bar_1 desk_bar_1\ninreceptacle mug_bar_1 fridge_bar_1")
    assert find_plan(Goal("mugtype", place="fridgetype", state="isclean"), scene) == [
        "go to desk 1",
        "take mug 1 from desk 1",
        "go to sinkbasin 1",
        "clean mug 1 with sinkbasin 1",
    ]


def test_two_things_go_to_the_same_place_and_the_held_one_first() -> None:
    scene = make_scene(
        KITCHEN
        + "objecttype mug_bar_2 mugtype\npickupable mug_bar_2\nholds agent1 mug_bar_2\n"
        + "inreceptacle mug_bar_1 desk_bar_1"
    )
    assert find_plan(Goal("mugtype", count=2, place="shelftype"), scene) == [
        "go to shelf 1",
        "move mug 1 to shelf 1",
        "take mug 2 from desk 1",
        "move mug 2 to shelf 1",
    ]


@pytest.mark.parametrize(("fact", "last"), [("", ["use lamp 1"]), ("istoggled lamp_bar_1", [])])
def test_carries_the_thing_to_the_lamp(fact: str, last: list[str]) -> None:
    scene = make_scene(
        KITCHEN
        + "objecttype lamp_bar_1 lamptype\ninreceptacle lamp_bar_1 desk_bar_1\ninreceptacle mug_bar_1 fridge_bar_1\n"
        + fact
    )
    assert find_plan(Goal("mugtype", lamp="lamptype"), scene) == [
        "go to fridge 1",
        "open fridge 1",
        "take mug 1 from fridge 1",
        "go to desk 1",
        *last,
    ]


PLACED = "(inReceptacle ?o ?r) (objectType ?o MugType) (receptacleType ?r DeskType)"


@pytest.mark.parametrize(
    ("conditions", "goal"),
    [
        (PLACED, Goal("mugtype", place="desktype")),
        (f"(heatable ?o) {PLACED} (isHot ?o)", Goal("mugtype", place="desktype", state="ishot")),
        (
            PLACED.replace("?o", "?o1") + " (not (= ?o1 ?o2)) " + PLACED.replace("?o", "?o2"),
            Goal("mugtype", count=2, place="desktype"),
        ),
        (
            "(objectType ?ot LampType) (toggleable ?ot) (isToggled ?ot) (receptacleAtLocation ?r ?l) (atLocation ?a ?l)"
            " (inReceptacle ?ot ?r) (objectType ?o MugType) (holds ?a ?o)",
            Goal("mugtype", lamp="lamptype"),
        ),
        (f"{PLACED} (isSliced ?o)", None),
        ("(inReceptacle ?o ?r)", None),
    ],
)
def test_reads_the_goals_it_knows(conditions: str, goal: Goal | None) -> None:
    assert (
        read_goal(f"(define (problem p) (:init (objectType a B)) (:goal (and (exists (?o - x) {conditions}))))") == goal
    )
