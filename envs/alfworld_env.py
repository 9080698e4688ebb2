"""Playing ALFWorld games as text."""

from __future__ import annotations

from pathlib import Path

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.alfworld_engine import AlfworldEngine
from skillarena.envs.alfworld_games import Game, read_game
from skillarena.envs.alfworld_planner import find_plan, read_goal
from skillarena.envs.alfworld_text import parse_grammar
from skillarena.envs.alfworld_translation import translation_of
from skillarena.envs.interface import EndReason, Observation, StepResult, Task

REFUSAL = "Nothing happens."
"""ALFWorld's answer to whatever it does not accept."""


class AlfworldEnv:
    """A reusable ALFWorld environment with the texts, scores and commands of ALFWorld's own stack.

    It belongs to one process and serves one thread at a time. Environments in different threads do not disturb each
    other: each has a planner library of its own, and nothing else that changes is shared.

    Args:
        max_steps: calls of ``step`` in an episode.
        cache_dir: folder of translated games.
        deadline_s: seconds that ``reset`` may spend on translating a game that this machine has not seen.
    """

    def __init__(self, *, max_steps: int, cache_dir: Path, deadline_s: float) -> None:
        self._max_steps = max_steps
        self._cache_dir = cache_dir
        self._deadline_s = deadline_s
        self._engine: AlfworldEngine | None = None
        self._game: Game | None = None
        self._steps = 0
        self._untouched = True
        self._plan: list[str] = []

    def reset(self, task: Task) -> Observation:
        """Start ``task``.

        Raises:
            DataError: the task's game file is missing, damaged, or another one than when the task was listed.
            EnvError: the planner library cannot be loaded, or translating takes too long.
        """
        self._game = None
        game = _game_of(task)
        try:
            translation = translation_of(game.domain, game.problem, self._cache_dir, self._deadline_s)
            self._engine = self._engine or AlfworldEngine()
            text = self._engine.load(translation, parse_grammar(game.grammar))
        except DataError as error:
            raise DataError(f"{game.path}: {error.message}", error.fix) from error
        self._game = game
        self._steps = 0
        self._untouched = True
        self._plan = []
        return Observation(text)

    def step(self, action: str) -> StepResult:
        """Play one action; ``valid`` is False exactly when the game answers that nothing happens."""
        engine, _ = self._running()
        answer = engine.step(action)
        self._steps += 1
        if answer is not None:
            self._follow(action.strip())
        won = engine.won()
        reason = EndReason.SOLVED if won else EndReason.STEP_LIMIT if self._steps >= self._max_steps else None
        if reason is not None:
            self._game = None
        return StepResult(
            observation=REFUSAL if answer is None else answer,
            score=float(won),
            reward=float(won),  # a game is won once, and then over
            done=reason is not None,
            won=won,
            end_reason=reason,
            valid=answer is not None,
        )

    def admissible_commands(self) -> list[str]:
        """All commands the game accepts now, sorted."""
        return self._running()[0].commands()

    def plan(self) -> list[str]:
        """Commands in visible names that win from here; empty when the goal is of an unknown kind or out of reach.

        It is the walkthrough of the game file where that works, else a plan made for the present state. Every plan is
        tried out before it is returned, and kept while the game follows it.

        Raises:
            EnvError: the planner's way does not win, which is a fault in the planner.
        """
        engine, game = self._running()
        if not self._plan and self._untouched:
            self._plan = engine.winning_part(game.walkthrough)
        if not self._plan and (goal := read_goal(game.problem)):
            way = find_plan(goal, engine.scene)
            self._plan = engine.winning_part(way)
            if way and not self._plan:
                raise EnvError(f"the plan {way} does not solve {game.path}")
        return list(self._plan)

    def close(self) -> None:
        """Give the planner library back; safe to call twice."""
        self._game = None
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _running(self) -> tuple[AlfworldEngine, Game]:
        if self._engine is None or self._game is None:
            raise EnvError("no ALFWorld episode is running", "call reset first")
        return self._engine, self._game

    def _follow(self, command: str) -> None:
        self._untouched = False
        self._plan = self._plan[1:] if self._plan[:1] == [command] else []


def _game_of(task: Task) -> Game:
    if "path" not in task.source:
        raise DataError(f"the ALFWorld task {task.name} has no game file", "list the tasks again")
    game = read_game(Path(str(task.source["path"])))
    if game.id != task.id:
        raise DataError(f"{game.path} is not the game it was when {task.name} was listed", "list the tasks again")
    return game
