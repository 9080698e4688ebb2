"""The program of the child process that grounds ALFWorld games with Fast Downward's translator.

The translator replaces ``sys.argv`` and ``sys.stdout``, keeps its options in globals and cannot be interrupted, so it
gets a process of its own: `python -m skillarena.envs.alfworld_translate` reads ``{"domain", "problem"}`` as a line of
JSON from standard input, writes the fields of ``alfworld_translation.Translation`` as a line of JSON to standard
output, and goes on so until its input closes. It ends at a game that it cannot ground.
"""

from __future__ import annotations

import gc
import json
import sys
from typing import Any


def translate(domain: str, problem: str) -> dict[str, Any]:
    """Ground a PDDL problem; the keys are the fields of ``alfworld_translation.Translation``."""
    import fast_downward
    from fast_downward.translate.pddl.conditions import Atom

    task, sas = fast_downward.pddl2sas(domain, problem)
    if "Atom dummy(val1)" in sas:  # what the translator writes for a goal it finds out of reach
        raise SystemExit("the goal cannot be reached")
    return {
        "sas": sas,
        "objects": {thing.name: thing.type_name for thing in task.objects},
        "supertypes": {kind.name: [kind.name, *kind.supertype_names] for kind in task.types},
        "parameters": {action.name: _parameters(action) for action in task.actions},
        "changing": sorted({effect.literal.predicate for action in task.actions for effect in action.effects}),
        "initial": sorted(
            [fact.predicate, *fact.args] for fact in task.init if isinstance(fact, Atom) and fact.predicate != "="
        ),
    }


def _parameters(action: Any) -> list[list[str]]:
    """Those written in the domain; behind them come variables that the translator took out of conditions."""
    written = action.parameters[: action.num_external_parameters]
    return [[parameter.name.strip("?"), parameter.type_name] for parameter in written]


def main() -> None:
    """Answer line by line."""
    gc.disable()  # it takes a tenth of the time, and can be done while nobody waits
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(translate(request["domain"], request["problem"])), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
