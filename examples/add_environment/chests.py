"""A benchmark of one's own: find the key of a chest in a house, then open the chest."""

import hashlib

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.interface import EndReason, Observation, StepResult, Task
from skillarena.envs.task_choice import choose_tasks

ROOMS, COLOURS = ("hall", "kitchen", "study"), ("red", "green", "blue")


class House:
    """Score 0.5 for the key, 1 for the open chest; an action that cannot be done costs a step like any other."""

    def __init__(self, max_steps: int) -> None:
        self._max_steps, self._over = max_steps, True

    def reset(self, task: Task) -> Observation:
        colour, room, key_room = (str(task.source.get(what, "")) for what in ("colour", "room", "key"))
        if "" in (colour, room, key_room):
            raise DataError(f"task {task.name} does not say where its chest and key are")
        self._goals = [(key_room, f"take {colour} key"), (room, f"open {colour} chest")]
        self._here, self._steps, self._over = "hall", 0, False
        return Observation(f"This house has a {', a '.join(ROOMS)}. {self._look()}")

    def step(self, action: str) -> StepResult:
        if self._over:
            raise EnvError("no episode is running", "reset the environment first")
        self._steps, valid = self._steps + 1, action in self.admissible_commands()
        gained = valid and action == self._goals[0][1]
        self._goals = self._goals[gained:]
        self._here = action.removeprefix("go to ") if valid and action.startswith("go to ") else self._here
        won, late = not self._goals, self._steps >= self._max_steps
        self._over, reason = won or late, EndReason.SOLVED if won else EndReason.STEP_LIMIT if late else None
        text = "The chest is open." if won else self._look() if valid else "You cannot do that."
        return StepResult(text, 1 - len(self._goals) / 2, gained / 2, self._over, won, reason, valid)

    def _look(self) -> str:
        return f"You are in the {self._here}. You can: {'; '.join(self.admissible_commands())}."

    def admissible_commands(self) -> list[str]:
        walks = (f"go to {room}" for room in ROOMS if room != self._here)
        return ["look", *walks, *(do for room, do in self._goals[:1] if room == self._here)]

    def plan(self) -> list[str]:
        rooms = [self._here, *(room for room, _ in self._goals)]
        ways = zip(rooms, self._goals, strict=False)
        return [step for at, (to, do) in ways for step in ([do] if at == to else [f"go to {to}", do])]

    def close(self) -> None:
        self._over = True


class Chests:
    """27 tasks: a chest's colour, its room, and the room of its key. Plain data, so that it can be pickled."""

    name, split = "chests", "all"

    def __init__(self, *, max_steps: int = 12, limit: int | None = None) -> None:
        self.max_steps, self._limit = max_steps, limit

    def tasks(self) -> list[Task]:
        return choose_tasks([_task(c, at, key) for c in COLOURS for at in ROOMS for key in ROOMS], limit=self._limit)

    def make_env(self) -> House:
        return House(self.max_steps)

    def points(self, result: StepResult) -> float:
        return 100.0 * result.score

    def action_help(self) -> str:
        return "look\ngo to {room}\ntake {colour} key\nopen {colour} chest"


def _task(colour: str, room: str, key: str) -> Task:
    digest = hashlib.sha256(f"chests 1: {colour} chest in {room}, key in {key}".encode()).hexdigest()
    kind, name = "one_room" if room == key else "two_rooms", f"{colour}/{room}/{key}"
    source: dict[str, str | int] = {"colour": colour, "room": room, "key": key}
    return Task(Chests.name, Chests.split, digest, name, kind, f"open {colour} chest.", source)
