"""From an episode to a procedure: commands, execution graph, backward slice, on hand-made and on real episodes."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillarena.selectors.live import EpisodeRecord, Step
from skillarena.selectors.spem.commands import Kind, mentions, parse_command, parse_commands
from skillarena.selectors.spem.execution import Edge, EdgeKind, accepted_acts, build_graph
from skillarena.selectors.spem.procedure import ProcedureStep, commands, length, skill_order
from skillarena.selectors.spem.slicing import backward_slice, extract_procedure

REAL_GAMES = Path(__file__).parents[3] / "shared" / "data" / "alfworld_games.tar.xz"
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


@pytest.mark.parametrize(
    ("text", "kind", "target", "names", "changes"),
    [
        ("go to desk 1", Kind.MOVE, "desk 1", "desk 1", "desk 1"),
        ("take mug 1 from desk 1", Kind.CHANGE, "mug 1", "mug 1|desk 1", "mug 1"),
        ("move mug 1 to desk 2", Kind.CHANGE, "mug 1", "mug 1|desk 2", "mug 1|desk 2"),
        ("put mug 1 in/on desk 2", Kind.CHANGE, "mug 1", "mug 1|desk 2", "mug 1|desk 2"),
        ("heat mug 1 with microwave 1", Kind.CHANGE, "mug 1", "mug 1|microwave 1", "mug 1"),
        ("Examine the Mug 1", Kind.LOOK, "mug 1", "mug 1", "mug 1"),
        ("inventory", Kind.LOOK, "", "", ""),
        ("look around", Kind.LOOK, "", "", ""),
        ("pick up metal pot", Kind.CHANGE, "metal pot", "metal pot", "metal pot"),
        ("pour cup in inventory into pot", Kind.CHANGE, "cup", "cup|pot", "cup|pot"),
        ("connect battery anode to red wire terminal 1", Kind.CHANGE, "battery anode",
         "battery anode|red wire terminal 1", "battery anode|red wire terminal 1"),
        ("wait1", Kind.WAIT, "", "", ""),
        ("", Kind.CHANGE, "", "", ""),
    ],
)  # fmt: skip
def test_a_command_names_things(text: str, kind: Kind, target: str, names: str, changes: str) -> None:
    command = parse_command(text)
    assert (command.kind, command.target) == (kind, target)
    assert command.names == frozenset(filter(None, names.split("|")))
    assert command.changes == frozenset(filter(None, changes.split("|")))


def test_rooms_are_walked_to_and_furniture_is_within_reach() -> None:
    ways = {text: parse_command(text).needs_way for text in ("go to kitchen", "go to desk 1", "teleport to kitchen")}
    assert ways == {"go to kitchen": True, "go to desk 1": False, "teleport to kitchen": False}
    assert not parse_command("take mug").needs_way


def test_a_number_answers_the_question_before() -> None:
    first, second = parse_commands(["pick up seed in jar", "0"])
    assert second == first
    assert parse_commands(["0"])[0].names == frozenset()


def test_names_are_found_as_whole_words() -> None:
    assert mentions("On the desk 1, you see a Mug 1.", "mug 1")
    assert not mentions("You see a mug 12.", "mug 1")
    assert not mentions("You see a smug 1", "mug 1")


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


class ToyHouse:
    """Furniture that may be shut, things in it, one hand. ``act`` answers like ALFWorld."""

    def __init__(self, rng: Random) -> None:
        self.places = [f"drawer {number}" for number in range(1, 5)] + ["desk 1", "desk 2"]
        self.drawers = frozenset(self.places[:4])
        self.shut = set(self.drawers)
        self.where = {f"{kind} {number}": rng.choice(self.places) for kind in ("mug", "pen") for number in (1, 2)}
        self.warm: set[str] = set()
        self.here = self.hand = ""
        self.opening = "You see " + ", ".join(f"a {place}" for place in self.places)

    def act(self, action: str) -> str | None:
        verb, *names = re.match(r"(\w+)(?: to)?(?: (\w+ \d))(?: \w+ (\w+ \d))?", action).groups()  # type: ignore[union-attr]
        thing, place = names
        open_here = self.here not in self.shut
        match verb:
            case "go" if thing != self.here:
                self.here = thing
                return f"You arrive at {self.here}. {self._seen()}"
            case "open" | "close" if thing == self.here in self.drawers and (verb == "open") != open_here:
                self.shut ^= {self.here}
                return f"You {verb} the {self.here}. {self._seen()}"
            case "take" if not self.hand and self.where.get(thing) == place == self.here and open_here:
                self.hand, self.where[thing] = thing, ""
                return f"You pick up the {thing}."
            case "move" if self.hand == thing and place == self.here and open_here:
                self.hand, self.where[thing] = "", place
                return f"You move the {thing}."
            case "heat" if self.hand == thing:
                self.warm.add(thing)
                return f"You heat the {thing}."
        return None

    def won(self) -> bool:
        """A warm mug is on desk 2."""
        return any(self.where[mug] == "desk 2" and mug in self.warm for mug in ("mug 1", "mug 2"))

    def some_action(self, rng: Random) -> str:
        thing, place = rng.choice(list(self.where)), rng.choice([self.here or "desk 1", rng.choice(self.places)])
        held = self.hand or thing
        return rng.choice(
            [
                f"go to {rng.choice(self.places)}",
                f"go to {self.where[thing] or place}",
                f"open {place}",
                f"close {place}",
                f"take {thing} from {place}",
                f"move {held} to {place}",
                f"heat {held} with desk 1",
            ]
        )

    def _seen(self) -> str:
        if self.here in self.shut:
            return f"The {self.here} is closed."
        return "You see " + ", ".join(thing for thing, place in self.where.items() if place == self.here)


@given(st.integers(0, 2**32))
@settings(deadline=None, max_examples=150)
def test_in_a_toy_house_the_procedure_alone_wins_after_any_wandering(seed: int) -> None:
    rng, house = Random(seed), ToyHouse(Random(seed))
    steps: list[Step] = []
    while not house.won() and len(steps) < 3000:
        action = house.some_action(rng)
        answer = house.act(action)
        steps.append(Step(action, answer or "Nothing happens.", float(house.won()), answer is not None))
    if not house.won():
        return
    record = EpisodeRecord(house.opening, tuple(steps), True, 100.0, 0, ())
    again = ToyHouse(Random(seed))
    for command in commands(extract_procedure(record)):
        again.act(command)
    assert again.won()


def wander(env: object, task: object, rng: Random) -> EpisodeRecord | None:
    """A game won by its plan, with commands between that are of any accepted kind, some of them refused."""
    first = env.reset(task)  # type: ignore[attr-defined]
    steps: list[Step] = []

    def play(action: str) -> bool:
        result = env.step(action)  # type: ignore[attr-defined]
        steps.append(Step(action, result.observation, result.score, result.valid))
        return bool(result.done)

    while True:
        for _ in range(rng.choice([0, 0, 1, 2, 4])):
            known = env.admissible_commands()  # type: ignore[attr-defined]
            verb = rng.choice(sorted({command.split()[0] for command in known}))
            if play(rng.choice([command for command in known if command.split()[0] == verb] + ["go to nowhere 1"])):
                break
        else:
            plan: list[str] = env.plan()  # type: ignore[attr-defined]
            if not plan:
                return None
            if not play(plan[0]):
                continue
        break
    if not steps[-1].score:
        return None
    return EpisodeRecord(first.text, tuple(steps), True, 100.0, 0, ())


def replay(env: object, task: object, actions: Sequence[str]) -> bool:
    env.reset(task)  # type: ignore[attr-defined]
    result = None
    for action in actions:
        result = env.step(action)  # type: ignore[attr-defined]
        assert result.valid, f"{action} is refused"
        if result.done:
            break
    return result is not None and bool(result.won)


@pytest.fixture(scope="module")
def real_games(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not REAL_GAMES.exists():
        pytest.skip(f"no real ALFWorld games at {REAL_GAMES}")
    root = tmp_path_factory.mktemp("games")
    with tarfile.open(REAL_GAMES) as archive:
        archive.extractall(root, filter="data")
    return str(root)


@pytest.mark.slow
def test_real_games_are_won_by_the_sliced_commands_alone(
    real_games: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    from skillarena.envs.alfworld import AlfworldBenchmark

    benchmark = AlfworldBenchmark(
        split="valid_unseen", data=real_games, cache_dir=str(tmp_path), limit=48, max_steps=300
    )
    env = benchmark.make_env()
    played: list[tuple[int, int]] = []
    try:
        for task in benchmark.tasks():
            record = wander(env, task, Random(task.id))
            if record is None:
                continue  # the detour led to where no plan is known from
            procedure = extract_procedure(record)
            assert replay(env, task, commands(procedure)), (task.goal, [step.action for step in record.steps])
            played.append((len(record.steps), length(procedure)))
    finally:
        env.close()
    assert len(played) >= 40
    steps, kept = (sum(column) / len(played) for column in zip(*played, strict=True))
    record_property("mean steps", f"{steps:.1f} -> {kept:.1f}")
    assert kept < 0.6 * steps
