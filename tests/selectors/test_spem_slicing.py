"""From an episode to a procedure: execution graph and backward slice, on hand-made and on random episodes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.selectors.live import EpisodeRecord, Step
from skillarena.selectors.spem.execution import Edge, EdgeKind, accepted_acts, build_graph
from skillarena.selectors.spem.procedure import ProcedureStep, commands, length, skill_order
from skillarena.selectors.spem.slicing import backward_slice, extract_procedure

ROOM = "You are in the middle of a room. You see a cabinet 1, a desk 1, a desk 2, a fridge 1, and a microwave 1."


def episode(*steps: tuple[str, str] | tuple[str, str, float], opening: str = ROOM, won: bool = True) -> EpisodeRecord:
    """Steps as (action, observation[, score]); the last one wins; "Nothing happens." is a refusal."""
    last = len(steps) - 1
    return EpisodeRecord(
        opening,
        tuple(
            Step(step[0], step[1], step[2] if len(step) > 2 else float(won and at == last), "Nothing" not in step[1])
            for at, step in enumerate(steps)
        ),
        won,
        100.0 * won,
        1000,
        (),
    )


def sliced(*steps: tuple[str, str] | tuple[str, str, float], opening: str = ROOM) -> list[str]:
    return commands(extract_procedure(episode(*steps, opening=opening)))


def test_edges_say_why_a_step_was_needed() -> None:
    record = episode(
        ("go to desk 1", "On the desk 1, you see a mug 1."),
        ("look", "You are facing the desk 1."),
        ("take mug 1 from desk 1", "You pick up the mug 1."),
        ("go to desk 2", "On the desk 2, you see nothing."),
        ("move mug 1 to desk 2", "You move the mug 1."),
    )
    graph = build_graph(accepted_acts(record), ROOM)
    needed = {edge for edge in graph.edges if edge.kind is not EdgeKind.TEMPORAL}
    assert needed == {
        Edge(0, 1, EdgeKind.STATE),
        Edge(0, 2, EdgeKind.STATE),
        Edge(3, 4, EdgeKind.STATE),
        Edge(2, 4, EdgeKind.ENTITY),
        Edge(4, 5, EdgeKind.END),
    }
    assert {edge for edge in graph.edges if edge.kind is EdgeKind.TEMPORAL} == {
        Edge(at, at + 1, EdgeKind.TEMPORAL) for at in range(4)
    }
    assert backward_slice(graph) == [0, 2, 3, 4]


def test_refusals_exploration_and_looks_are_dropped() -> None:
    record = episode(
        ("inventory", "You are not carrying anything."),
        ("go to cabinet 1", "The cabinet 1 is closed."),
        ("open cabinet 1", "In it, you see a cup 1."),
        ("take mug 1 from cabinet 1", "Nothing happens."),
        ("go to desk 1", "On the desk 1, you see a mug 1."),
        ("take mug 1 from desk 1", "You pick up the mug 1."),
        ("examine mug 1", "There's nothing special about mug 1."),
        ("go to microwave 1", "The microwave 1 is closed."),
        ("heat mug 1 with microwave 1", "You heat the mug 1."),
        ("go to desk 2", "On the desk 2, you see nothing."),
        ("move mug 1 to desk 2", "You move the mug 1 to the desk 2."),
    )
    assert extract_procedure(record) == (
        ProcedureStep("go to desk 1"),
        ProcedureStep("take mug 1 from desk 1", after=(0,)),
        ProcedureStep("go to microwave 1"),
        ProcedureStep("heat mug 1 with microwave 1", after=(1, 2)),
        ProcedureStep("go to desk 2"),
        ProcedureStep("move mug 1 to desk 2", after=(3, 4)),
    )


def test_what_is_taken_back_at_once_is_dropped_with_the_ways_to_it() -> None:
    assert sliced(
        ("go to fridge 1", "The fridge 1 is closed."),
        ("open fridge 1", "In it, you see a egg 1."),
        ("take egg 1 from fridge 1", "You pick up the egg 1."),
        ("look", "You are facing the fridge 1."),
        ("move egg 1 to fridge 1", "You move the egg 1."),
        ("close fridge 1", "You close the fridge 1."),
        ("go to desk 1", "On the desk 1, you see a mug 1."),
        ("take mug 1 from desk 1", "You pick up the mug 1."),
        ("go to fridge 1", "The fridge 1 is closed."),
        ("cool mug 1 with fridge 1", "You cool the mug 1."),
    ) == ["go to desk 1", "take mug 1 from desk 1", "go to fridge 1", "cool mug 1 with fridge 1"]


def test_what_is_taken_back_after_it_served_is_kept() -> None:
    steps = [
        ("go to fridge 1", "The fridge 1 is closed."),
        ("open fridge 1", "In it, you see a mug 1."),
        ("take mug 1 from fridge 1", "You pick up the mug 1."),
        ("close fridge 1", "You close the fridge 1."),
        ("cool mug 1 with fridge 1", "You cool the mug 1."),
    ]
    assert sliced(*steps) == [action for action, _ in steps]


def test_the_first_of_two_objects_is_kept() -> None:
    steps = [
        ("go to desk 1", "On the desk 1, you see a candle 1 and a candle 2."),
        ("take candle 1 from desk 1", "You pick up the candle 1."),
        ("go to desk 2", "On the desk 2, you see nothing."),
        ("move candle 1 to desk 2", "You move the candle 1."),
        ("go to desk 1", "On the desk 1, you see a candle 2."),
        ("take candle 2 from desk 1", "You pick up the candle 2."),
        ("go to desk 2", "On the desk 2, you see a candle 1."),
        ("move candle 2 to desk 2", "You move the candle 2."),
    ]
    assert sliced(*steps) == [action for action, _ in steps]


@pytest.mark.parametrize("lamp_first", [True, False])
def test_what_is_carried_or_switched_on_at_the_end_is_kept_although_the_last_command_does_not_name_it(
    lamp_first: bool,
) -> None:
    book = [("go to desk 1", "You see a book 1."), ("take book 1 from desk 1", "You pick up the book 1.")]
    lamp = [("go to desk 2", "You see a lamp 1."), ("use lamp 1", "You turn on the lamp 1.")]
    steps = [*lamp, *book] if lamp_first else [*book, *lamp]
    procedure = extract_procedure(episode(*steps))
    assert commands(procedure) == [action for action, _ in steps]
    assert procedure[-1].after == (1, 2)


def test_what_is_taken_up_is_put_down_again_before_the_next_thing_is_taken() -> None:
    steps = [
        ("go to desk 1", "You see a pen 1."),
        ("take pen 1 from desk 1", "You pick up the pen 1."),
        ("go to cabinet 1", "The cabinet 1 is closed."),
        ("press pen 1", "A lock clicks."),
        ("go to desk 2", "You see nothing."),
        ("move pen 1 to desk 2", "You move the pen 1."),
        ("go to cabinet 1", "You see a mug 1."),
        ("take mug 1 from cabinet 1", "You pick up the mug 1."),
    ]
    assert sliced(*steps) == [action for action, _ in steps]


def test_what_came_to_light_by_a_command_depends_on_it_even_if_its_answer_does_not_say_so() -> None:
    opening = "This room is called the kitchen. You see: a cupboard. The cupboard door is closed. A drawer. A cup."
    steps = [
        ("open drawer", "The drawer is now open."),
        ("pick up cup", "You move the cup to the inventory."),
        ("open cupboard", "The cupboard is now open."),
        ("pick up metal pot", "You move the metal pot to the inventory."),
        ("move cup to metal pot", "Done."),
    ]
    procedure = extract_procedure(episode(*steps, opening=opening))
    pot = next(step for step in procedure if step.action == "pick up metal pot")
    assert "open cupboard" in {procedure[at].action for at in pot.after}
    cup = next(step for step in procedure if step.action == "pick up cup")
    assert cup.after == ()


def test_walks_through_rooms_keep_the_way_and_lose_the_circles() -> None:
    opening = "This room is called the kitchen."
    assert sliced(
        ("go to hallway", "You move to the hallway."),
        ("go to bedroom", "You move to the bedroom."),
        ("look around", "A bed."),
        ("go to hallway", "You move to the hallway."),
        ("go to workshop", "You move to the workshop."),
        ("pick up battery", "You move the battery to the inventory."),
        ("go to hallway", "You move to the hallway."),
        ("go to kitchen", "You move to the kitchen."),
        ("go to outside", "You move to the outside."),
        ("go to kitchen", "You move to the kitchen."),
        ("move battery to box", "Done."),
        opening=opening,
    ) == [
        "go to hallway",
        "go to workshop",
        "pick up battery",
        "go to hallway",
        "go to kitchen",
        "move battery to box",
    ]  # fmt: skip


def test_who_relied_on_a_dropped_step_relies_on_the_one_that_does_its_work() -> None:
    procedure = extract_procedure(
        episode(
            ("go to workshop", "You move to the workshop."),
            ("go to hallway", "You move to the hallway."),
            ("go to workshop", "You move to the workshop."),
            ("pick up battery", "You move the battery to the inventory."),
        )
    )
    # The second arrival made the pick-up possible and is dropped with the circle; the first takes its place.
    assert procedure == (ProcedureStep("go to workshop"), ProcedureStep("pick up battery", after=(0,)))


def test_the_score_says_which_steps_mattered_and_waits_lead_to_its_rise() -> None:
    procedure = extract_procedure(
        episode(
            ("focus on soap", "You focus on the soap.", 30.0),
            ("wait1", "You wait.", 30.0),
            ("wait1", "You wait.", 30.0),
            ("look at soap", "A liquid.", 60.0),
            ("open box", "The box is open.", 60.0),
            ("wait1", "You wait.", 100.0),
            opening="A soap and a box.",
        )
    )
    assert procedure == (
        ProcedureStep("focus on soap"),
        ProcedureStep("wait1", times=2),
        ProcedureStep("look at soap", after=(0, 1)),
        ProcedureStep("wait1"),
    )
    assert length(procedure) == 5


def test_steps_before_a_reset_count_for_nothing() -> None:
    assert sliced(
        ("go to desk 1", "You see a mug 1."),
        ("take mug 1 from desk 1", "You pick up the mug 1."),
        ("reset task", "The task is begun anew."),
        ("go to desk 2", "You see a cup 1."),
        ("take cup 1 from desk 2", "You pick up the cup 1."),
    ) == ["go to desk 2", "take cup 1 from desk 2"]


def test_lost_and_empty_episodes_give_no_procedure() -> None:
    lost = episode(("go to desk 1", "You see a mug 1."), won=False)
    assert extract_procedure(lost) == ()
    assert extract_procedure(episode()) == ()
    assert sliced(("dance", "Nothing happens.")) == []


def test_skills_follow_each_other_as_their_steps_depend() -> None:
    procedure = [ProcedureStep("a", skill="x"), ProcedureStep("b", after=(0,), skill="x"),
                 ProcedureStep("c", after=(0, 1), skill="y"), ProcedureStep("d", after=(2,))]  # fmt: skip
    assert skill_order(procedure) == {("x", "y")}


WORDS = st.sampled_from(
    ["go to desk 1", "go to desk 2", "go to hall", "teleport to hall", "go", "take mug 1 from desk 1", "0", "wait", "",
     "move mug 1 to desk 2", "open desk 1", "close desk 1", "look", "use lamp 1", "reset task", "take mug 1", "Ü ×"]
)  # fmt: skip

STEPS = st.lists(
    st.builds(
        Step,
        WORDS,
        st.sampled_from(["", "a mug 1", "a lamp 1 on desk 1"]),
        st.integers(-1, 3).map(float),
        st.booleans(),
    ),
    max_size=14,
)


@given(STEPS)
@settings(deadline=None, max_examples=300)
def test_any_procedure_is_a_part_of_the_episode_in_which_everything_leads_to_the_end(steps: list[Step]) -> None:
    record = EpisodeRecord(ROOM, tuple(steps), True, 100.0, 0, ())
    procedure = extract_procedure(record)
    acts = [act.action for act in accepted_acts(record)]
    rest = iter(acts)
    assert all(command in rest for command in commands(procedure))
    assert all(source < at for at, step in enumerate(procedure) for source in step.after)
    assert bool(procedure) == bool(acts)
    if procedure:
        assert commands(procedure)[-1] == acts[-1]
    assert extract_procedure(record) == procedure
