"""Procedures are enough: sliced out of any wandering, their commands alone win the same game again."""

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
from skillarena.selectors.spem.procedure import commands, length
from skillarena.selectors.spem.slicing import extract_procedure

REAL_GAMES = Path(__file__).parents[3] / "shared" / "data" / "alfworld_games.tar.xz"


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
