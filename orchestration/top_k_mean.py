"""Methods without a size of their own, as papers report them: the mean of one skill and of two (arXiv 2607.06283)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skillarena.orchestration.driver import CellResult
from skillarena.orchestration.settings import digest
from skillarena.orchestration.summary import Summary, summarise_mean

SIZES = (1, 2)


@dataclass(frozen=True)
class TopKMean:
    """Two cells that differ in ``selector.top_k`` only."""

    parts: tuple[CellResult, CellResult]
    """With one skill and with two."""
    summary: Summary
    """Over tasks, each with the mean of its two episodes."""

    @property
    def name(self) -> str:
        """The cells' name with both sizes."""
        return self.parts[0].cell.name.replace(" top_k=1", " mean of top_k=1,2")


def top_k_means(results: Sequence[CellResult]) -> list[TopKMean]:
    """One for each pair of cells with one and with two skills, in the order of the first."""
    found: dict[str, dict[int, CellResult]] = {}
    for result in results:
        selector = result.cell.identity["selector"]
        if selector.get("top_k") in SIZES:
            others = {key: value for key, value in selector.items() if key != "top_k"}
            key = digest({**result.cell.identity, "selector": others})
            found.setdefault(key, {})[selector["top_k"]] = result
    pairs = [(sizes[1], sizes[2]) for sizes in found.values() if len(sizes) == len(SIZES)]
    return [TopKMean(pair, _mean(pair)) for pair in pairs]


def _mean(pair: tuple[CellResult, CellResult]) -> Summary:
    cell = pair[0].cell
    resamples = cell.settings.run.bootstrap_resamples
    return summarise_mean([result.rows for result in pair], [task.id for task in cell.tasks], resamples)
