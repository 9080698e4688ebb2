"""A won episode as the shortest procedure its texts justify: a backward slice of the execution graph (SPEM paper)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from skillarena.selectors.live import EpisodeRecord
from skillarena.selectors.spem.commands import Kind, undoes
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
    kept = without_circles([acts[number] for number in backward_slice(graph)])
    return _steps(build_graph(kept, record.first_observation))


def backward_slice(graph: ExecutionGraph) -> list[int]:
    """All acts v with v ->* end along dependencies, in order."""
    needs = graph.needs()
    reached, waiting = set(), [graph.end]
    while waiting:
        for source in needs[waiting.pop()]:
            if source not in reached:
                reached.add(source)
                waiting.append(source)
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
