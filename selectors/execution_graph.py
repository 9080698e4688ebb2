"""The execution graph of SkillReranker (arXiv 2607.06283, section 3) as pure functions on arrays.

Nodes are the n states s_0..s_{n-1} of a task, edges are its K candidate skills. In the method's order::

    edges = build_edges(precondition_scores, completion_scores)
    splits = split_points(*edges, relevance, n=n)
    chosen = select_by_stage(*edges, relevance, {stage: logits for stage in stages(splits, n=n)})

Everywhere ``relevance[k]`` is the raw logit rho_k = r(q, c_k), not a probability; its sigmoid is the edge's weight w_k.
Arrays of length K belong together: index k is the same candidate in each. Whatever an edge with ``keep[k]`` false
holds is ignored. All sums are correctly rounded, so results do not depend on the order of the candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

StageCandidates = Literal["all", "overlapping"]
"""Which kept edges compete in a stage (a, b): every one, or those with src < b and tgt > a."""

STAGE_CANDIDATES: tuple[str, ...] = get_args(StageCandidates)


Stage = tuple[int, int]
"""The states (a, b) a stage leads from and to; its sub-tasks are t_a..t_{b-1}."""


class Edges(NamedTuple):
    """Where each candidate skill leads from and to."""

    src: NDArray[np.intp]
    """intp[K]: state in which the skill can start."""
    tgt: NDArray[np.intp]
    """intp[K]: state the skill leads to; ``tgt > src`` always, so the graph has no cycle."""
    keep: NDArray[np.bool_]
    """bool[K]: false where no state lies after ``src`` (``tgt`` is then n, no state)."""


class Flow(NamedTuple):
    """How much relevance ends before, starts after and passes over each state."""

    inflow: NDArray[np.float64]
    """float64[n]: In(i), weights of edges that end at or before i, less the farther away they end."""
    outflow: NDArray[np.float64]
    """float64[n]: Out(i), weights of edges that start at or after i, less the farther away they start."""
    cross: NDArray[np.float64]
    """float64[n]: Cross(i), weights of edges that start before and end after i."""


def logsigmoid(logits: ArrayLike) -> NDArray[np.float64]:
    """float64 of the input's shape: log(1 / (1 + exp(-x))) without overflow for any finite or infinite x."""
    return -np.logaddexp(0.0, -np.asarray(logits, dtype=np.float64))


def sigmoid(logits: ArrayLike) -> NDArray[np.float64]:
    """float64 of the input's shape: 1 / (1 + exp(-x)) without overflow."""
    return np.exp(logsigmoid(logits))


def phi(relevance: ArrayLike, part_relevance: ArrayLike) -> NDArray[np.float64]:
    """float64[K]: log sigmoid(r(q, c_k)) + log sigmoid(r(part, c_k)), the fit of skills to a task and to a part of it.

    Both arguments are raw logits.
    """
    return logsigmoid(relevance) + logsigmoid(part_relevance)


def build_edges(precondition_scores: ArrayLike, completion_scores: ArrayLike) -> Edges:
    """Connect each candidate skill to the state it starts in and the state it leads to.

    Args:
        precondition_scores: float[K, n-1]; entry (k, i) is r(s_i, p_k). A row of NaN means that skill k requires
            nothing and starts in s_0.
        completion_scores: float[K, n]; entry (k, j) is r(s_j, e_k). Column 0 is never looked at but for NaN.

    Returns:
        K edges; ties go to the earliest state.

    Raises:
        ValueError: shapes that do not fit, a row of ``precondition_scores`` that is NaN in part, a NaN in
            ``completion_scores``.
    """
    before, after = (np.asarray(scores, dtype=np.float64) for scores in (precondition_scores, completion_scores))
    _check_scores(before, after)
    count, n = after.shape
    src = np.zeros(count, dtype=np.intp)
    if n > 1:
        required = ~np.isnan(before[:, 0])
        src[required] = np.argmax(before[required], axis=1)
    keep = src + 1 < n
    tgt = src + 1
    for start in np.unique(src[keep]):  # argmax over each tail: right even where scores are -inf, unlike a mask
        rows = src == start
        tgt[rows] += np.argmax(after[rows, start + 1 :], axis=1)
    return Edges(src, tgt, keep)


def flow(src: ArrayLike, tgt: ArrayLike, keep: ArrayLike, relevance: ArrayLike, *, n: int) -> Flow:
    """In, Out and Cross of every state, the two outer ones included.

    Args:
        src: int[K], as from :func:`build_edges`.
        tgt: int[K], likewise.
        keep: bool[K], likewise.
        relevance: float[K], raw logits rho_k.
        n: number of states.

    Raises:
        ValueError: arrays of different lengths, n < 1, kept edges that do not satisfy 0 <= src < tgt < n or whose
            relevance is NaN.
    """
    edges, relevance = _checked(src, tgt, keep, relevance)
    kept = np.flatnonzero(edges.keep)
    start, end, weight = edges.src[kept], edges.tgt[kept], sigmoid(relevance[kept])
    if n < 1:
        raise ValueError(f"n is the number of states and at least 1, not {n}")
    if np.any((start < 0) | (start >= end) | (end >= n)):
        raise ValueError(f"every kept edge must satisfy 0 <= src < tgt < n = {n}")
    longest = max(n - 1, 1)  # with one state there is no kept edge to measure
    result = Flow(np.zeros(n), np.zeros(n), np.zeros(n))
    for i in range(n):
        ended, ahead, over = end <= i, start >= i, (start < i) & (i < end)
        result.inflow[i] = fsum(weight[ended] / (1 + (i - end[ended]) / longest))
        result.outflow[i] = fsum(weight[ahead] / (1 + (start[ahead] - i) / longest))
        result.cross[i] = fsum(weight[over])
    return result


def split_points(src: ArrayLike, tgt: ArrayLike, keep: ArrayLike, relevance: ArrayLike, *, n: int) -> list[int]:
    """Inner states at which the task falls into stages, ascending; the outer states 0 and n-1 are not among them.

    State i is a split point exactly when In(i) > Cross(i) and Out(i) > Cross(i). Arguments and errors are those of
    :func:`flow`. :func:`stages` turns the result into stages.
    """
    inflow, outflow, cross = flow(src, tgt, keep, relevance, n=n)
    return [i for i in range(1, n - 1) if inflow[i] > cross[i] and outflow[i] > cross[i]]


def stages(splits: Sequence[int], *, n: int) -> list[Stage]:
    """Stages (a, b) between consecutive members of {0} + splits + {n-1}; none when there is only one state.

    Raises:
        ValueError: n < 1, or split points that are not ascending inner states.
    """
    bounds = [0, *splits, n - 1]
    if n == 1 and not splits:
        return []
    if any(a >= b for a, b in pairwise(bounds)):
        raise ValueError(f"split points must ascend strictly between 0 and n - 1 = {n - 1}, got {list(splits)}")
    return list(pairwise(bounds))


def stage_winners(
    src: ArrayLike,
    tgt: ArrayLike,
    keep: ArrayLike,
    relevance: ArrayLike,
    stage_scores: Mapping[Stage, ArrayLike],
    *,
    candidates: StageCandidates = "all",
) -> dict[Stage, int]:
    """Index of the skill with the best :func:`phi` of each stage, in stage order; ties go to the smallest index.

    Args:
        src: int[K], as from :func:`build_edges`.
        tgt: int[K], likewise.
        keep: bool[K], likewise.
        relevance: float[K], raw logits rho_k.
        stage_scores: for each stage (a, b) the raw logits float[K] of r(tau, c_k), tau being its sub-tasks.
        candidates: ``all`` kept edges compete in every stage, or only those ``overlapping`` it. A stage that no kept
            edge overlaps has no winner.

    Raises:
        ValueError: arrays of different lengths, NaN among kept edges, a stage with a >= b, an unknown ``candidates``.
    """
    if candidates not in STAGE_CANDIDATES:
        raise ValueError(f"candidates must be one of {', '.join(STAGE_CANDIDATES)}, not {candidates!r}")
    edges, relevance = _checked(src, tgt, keep, relevance)
    winners: dict[Stage, int] = {}
    for stage in sorted(stage_scores):
        competing = _competing(edges, stage, candidates)
        logits = _vector(stage_scores[stage], f"stage_scores[{stage}]", len(edges.keep), edges.keep)
        if len(competing):
            winners[stage] = int(competing[np.argmax(phi(relevance[competing], logits[competing]))])
    return winners


def select_by_stage(
    src: ArrayLike,
    tgt: ArrayLike,
    keep: ArrayLike,
    relevance: ArrayLike,
    stage_scores: Mapping[Stage, ArrayLike],
    *,
    candidates: StageCandidates = "all",
) -> list[int]:
    """Indices of the chosen skills: the winners of the stages in stage order, each skill once.

    Arguments and errors are those of :func:`stage_winners`. With stages that tile the task, as :func:`stages` gives
    them, the result holds between 1 and ``len(stage_scores)`` indices; it is empty when the graph is.
    """
    winners = stage_winners(src, tgt, keep, relevance, stage_scores, candidates=candidates)
    return list(dict.fromkeys(winners.values()))


def _competing(edges: Edges, stage: Stage, candidates: StageCandidates) -> NDArray[np.intp]:
    a, b = stage
    if a >= b:
        raise ValueError(f"a stage (a, b) needs a < b, got {stage}")
    overlaps = (edges.src < b) & (edges.tgt > a)
    return np.flatnonzero(edges.keep if candidates == "all" else edges.keep & overlaps)


def _check_scores(before: NDArray[np.float64], after: NDArray[np.float64]) -> None:
    if after.ndim != 2 or after.shape[1] < 1:
        raise ValueError(f"completion_scores must be of shape (K, n) with n >= 1, got {after.shape}")
    count, n = after.shape
    if before.shape != (count, n - 1):
        raise ValueError(f"precondition_scores must be of shape (K, n - 1) = {(count, n - 1)}, got {before.shape}")
    missing = np.isnan(before)
    partial = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(partial):
        raise ValueError(f"rows {partial.tolist()} of precondition_scores are NaN in part: all or none of a row may be")
    if np.isnan(after).any():
        rows = np.flatnonzero(np.isnan(after).any(axis=1)).tolist()
        raise ValueError(f"rows {rows} of completion_scores hold NaN: every skill has a completion state")


def _checked(
    src: ArrayLike, tgt: ArrayLike, keep: ArrayLike, relevance: ArrayLike
) -> tuple[Edges, NDArray[np.float64]]:
    flags = np.asarray(keep, dtype=np.bool_)
    if flags.ndim != 1:
        raise ValueError(f"keep must be of shape (K,), got {flags.shape}")
    count = len(flags)
    ends = [np.asarray(values, dtype=np.intp) for values in (src, tgt)]
    for name, values in zip(("src", "tgt"), ends, strict=True):
        if values.shape != (count,):
            raise ValueError(f"{name} must be of shape (K,) = {(count,)} like keep, got {values.shape}")
    return Edges(ends[0], ends[1], flags), _vector(relevance, "relevance", count, flags)


def _vector(values: ArrayLike, name: str, count: int, keep: NDArray[np.bool_]) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (count,):
        raise ValueError(f"{name} must be of shape (K,) = {(count,)}, got {array.shape}")
    if np.isnan(array[keep]).any():
        raise ValueError(f"{name} is NaN for a kept edge")
    return array
