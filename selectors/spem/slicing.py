"""A won episode as the shortest procedure its texts justify: a backward slice of the execution graph (SPEM paper)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from skillarena.selectors.live import EpisodeRecord
from skillarena.selectors.spem.commands import PUTTING, TAKING, Command, Kind, undoes
from skillarena.selectors.spem.execution import Act, ExecutionGraph, accepted_acts, build_graph
from skillarena.selectors.spem.procedure import ProcedureStep


def extract_procedure(record: EpisodeRecord) -> tuple[ProcedureStep, ...]:
    """What of an episode its success depends on, in an order in which everything precedes what depends on it.

    Refused commands, changes taken back at once, exploration that nothing later depends on and walks in a circle are
    dropped. Dependencies are then found anew among what is left, so that whoever relied on a dropped step relies on the
    kept one that does its work.

    Returns:
        Steps in the order in which they were done; none for an episode that was not won or had no accepted command.
    """
    if not record.won:
        return ()
    acts = without_undone(accepted_acts(record))
    graph = build_graph(acts, record.first_observation)
    kept = without_circles([acts[number] for number in with_hands_freed(graph, backward_slice(graph))])
    return _steps(build_graph(kept, record.first_observation))


def backward_slice(graph: ExecutionGraph) -> list[int]:
    """All acts v with v ->* end along dependencies, in order."""
    return sorted(_reached(graph, [graph.end]) - {graph.end})


def with_hands_freed(graph: ExecutionGraph, kept: Sequence[int]) -> list[int]:
    """A slice in which whatever is taken up is put down again where the episode did so, with all that this takes.

    Nothing names the empty hand that the next taking needs, so no edge stands for it.
    """
    reached = set(kept)
    while puts := {put for act in reached if (put := _put_down(graph, act)) is not None} - reached:
        reached |= _reached(graph, puts)
    return sorted(reached)


def without_undone(acts: Sequence[Act]) -> list[Act]:
    """Acts without pairs of which the second takes back the first, with only looks and walks between them."""
    kept = list(acts)
    while pair := _undone_pair(kept):
        first, second = pair
        kept = [act for number, act in enumerate(kept) if number not in (first, second)]
    return kept


def without_circles(acts: Sequence[Act]) -> list[Act]:
    """Acts without walks that lead back to where they began, when nothing is done on the way."""
    kept: list[Act] = []
    here = ""
    walk: list[Act] = []
    for act in acts:
        if act.command.kind is not Kind.MOVE or act.advances:
            kept += [*walk, act]
            here, walk = _place_after([*walk, act], here), []
            continue
        passed = [here, *(move.command.target for move in walk)]
        if act.command.target in passed:
            walk = walk[: passed.index(act.command.target)]
        else:
            walk.append(act)
    return kept


def _reached(graph: ExecutionGraph, nodes: Iterable[int]) -> set[int]:
    """Nodes and all that they depend on."""
    needs = graph.needs()
    reached = set(nodes)
    waiting = list(reached)
    while waiting:
        new = needs[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def _put_down(graph: ExecutionGraph, taking: int) -> int | None:
    """The act that puts down what an act has taken up, if that is what it did."""
    taken = graph.acts[taking].command
    if taken.verb not in TAKING:
        return None
    later = range(taking + 1, graph.end)
    return next((at for at in later if _puts(graph.acts[at].command, taken.target)), None)


def _puts(command: Command, thing: str) -> bool:
    return command.verb in PUTTING and command.target == thing


def _undone_pair(acts: Sequence[Act]) -> tuple[int, int] | None:
    place = ""
    latest: tuple[int, str] | None = None
    """The latest change and its place, if the next change may take it back."""
    for number, act in enumerate(acts):
        if act.command.kind is Kind.MOVE:
            place = act.command.target
        if act.advances or act.command.kind is Kind.WAIT:
            latest = None
        elif act.command.kind is Kind.CHANGE:
            if latest and latest[1] == place and undoes(act.command, acts[latest[0]].command):
                return latest[0], number
            latest = number, place
    return None


def _place_after(acts: Sequence[Act], here: str) -> str:
    places = [act.command.target for act in acts if act.command.kind is Kind.MOVE]
    return places[-1] if places else here


def _steps(graph: ExecutionGraph) -> tuple[ProcedureStep, ...]:
    """Nodes with their dependencies; the same command several times in a row is one node."""
    runs = [list(run) for _, run in groupby(range(graph.end), key=lambda number: graph.acts[number].action)]
    position = {number: at for at, run in enumerate(runs) for number in run}
    needs = graph.needs()
    return tuple(
        ProcedureStep(
            action=graph.acts[run[0]].action,
            times=len(run),
            after=tuple(sorted({position[source] for number in run for source in needs[number]} - {at})),
        )
        for at, run in enumerate(runs)
    )
