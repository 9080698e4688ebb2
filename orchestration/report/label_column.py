"""Where names go in a column beside their points so that no two overlap. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Heights as near to the wanted ones as can be, in the same order and at least ``gap`` apart.

    Args:
        wanted: heights of the points.
        gap: least distance between two names; made smaller when they would not fit otherwise.
        low: lowest height.
        high: highest height.

    Returns:
        Heights in the order of ``wanted``; points of equal height keep their order, the first one lowest.
    """
    gap = min(gap, (high - low) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    # Without the gaps, names may not cross: the nearest ascending heights are means over blocks of neighbours.
    blocks: list[tuple[float, int]] = []
    for place, index in enumerate(order):
        mean, count = wanted[index] - place * gap, 1
        while blocks and blocks[-1][0] >= mean:
            before, many = blocks.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        blocks.append((mean, count))
    flat = [mean for mean, count in blocks for _ in range(count)]
    top = high - (len(wanted) - 1) * gap
    heights = dict(zip(order, (min(max(mean, low), top) + place * gap for place, mean in enumerate(flat)), strict=True))
    return [heights[index] for index in range(len(wanted))]
