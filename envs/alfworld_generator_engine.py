"""ALFWorld's own engine, used to plan through a generated game and to play the plan to its end."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from skillarena.conf.errors import EnvError


class Engine:
    """Fast Downward behind TextWorld's PDDL state, for games that share one domain and grammar."""

    def __init__(self, domain: str, grammar: str) -> None:
        from textworld.envs.pddl.logic import GameLogic

        self._library = _planner_library()
        self._logic = GameLogic(domain=domain, grammar=grammar)

    def walkthrough(self, problem: str) -> list[str]:
        """Commands in visible names that reach the goal when played; empty when there is no plan or nothing to do.

        Raises ``EnvError`` when the translator refuses ``problem`` or the plan does not lead to the goal.
        """
        from textworld.envs.pddl.logic import PddlState

        try:
            state = PddlState(self._library, problem, self._logic)
        except SystemExit as error:
            raise EnvError("The PDDL translator refused a generated ALFWorld game.") from error
        except KeyError as error:
            # The translator puts a dummy task in place of a goal it proves out of reach; TextWorld cannot read that.
            if error.args != ("val1",):
                raise
            return []
        names = _visible_names(state)
        commands: list[str] = state.replan(names)
        for command in commands:
            state.apply(_action(state, names, command))
        if commands and not state.check_goal():
            raise EnvError(f"The planner's commands do not solve a generated ALFWorld game: {commands}.")
        return commands


@contextmanager
def engine(domain: str, grammar: str) -> Iterator[Engine]:
    """An ``Engine``; afterwards the process's arguments and ``ALFWORLD_DATA`` are as before.

    The translator overwrites ``sys.argv``. Importing alfworld makes the folder that ``ALFWORLD_DATA`` names, or one in
    the user's home, and sets the variable: it is shown a folder that exists.
    """
    arguments, data = sys.argv, os.environ.get("ALFWORLD_DATA")
    os.environ["ALFWORLD_DATA"] = tempfile.gettempdir()
    try:
        yield Engine(domain, grammar)
    finally:
        sys.argv = arguments
        if data is None:
            del os.environ["ALFWORLD_DATA"]
        else:
            os.environ["ALFWORLD_DATA"] = data


@cache
def _planner_library() -> Any:
    """One copy of the planner per process: each copy stays mapped, and unloading one can crash Python at its end."""
    import fast_downward

    return fast_downward.load_lib()


def _visible_names(state: Any) -> dict[str, Any]:
    """Entity infos of ``state`` by PDDL symbol, named as ALFWorld shows them (``mug 2``)."""
    from alfworld.agents.utils.misc import Demangler
    from textworld.generator.game import EntityInfo

    infos = {
        variable.name: EntityInfo(variable.name, variable.type) for fact in state.facts for variable in fact.arguments
    }
    demangler = Demangler(game_infos=infos)
    for symbol, info in infos.items():
        info.name = demangler.demangle_alfred_name(symbol)
    return infos


def _action(state: Any, names: dict[str, Any], command: str) -> Any:
    """The action that ``command`` stands for now; raises ``EnvError`` when it is not possible."""
    for action in state.all_applicable_actions():
        # The template of this one action is a query, which gives the same words.
        template = "go to {r}" if action.name == "gotolocation" else action.command_template
        words = {parameter.name: names[variable.name].name for parameter, variable in action.mapping.items()}
        if template.format(**words) == command:
            return action
    raise EnvError(f"A generated ALFWorld game does not accept its own planner's command {command!r}.")
