"""Room on the cluster: reserved before it is used, and if there is none, why."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.cluster import living_nodes

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

_LOOK_EVERY_S = 0.5


def wait_for_room(
    group: PlacementGroup,
    asked: Sequence[Mapping[str, float]],
    what: str,
    *,
    timeout_s: float,
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Wait until a placement group has its place; an autoscaler may have to start nodes first.

    Args:
        group: what was asked for.
        asked: its bundles, for the message.
        what: what needs the room, for the message.
        timeout_s: seconds to wait.
        stopped: whether the user wants to stop, which ends the wait.

    Raises:
        ConfigError: the time is over; says what is asked and what there is.
    """
    ends = time.monotonic() + timeout_s
    while not group.wait(_LOOK_EVERY_S) and not stopped():
        if time.monotonic() > ends:
            raise ConfigError(
                f"no room for {what} within {timeout_s:g} s: {unplaceable(asked, list(living_nodes().values()))}",
                "free or add nodes, or ask for less under cluster and backbone",
            )


def unplaceable(asked: Sequence[Mapping[str, float]], nodes: Sequence[Mapping[str, float]]) -> str:
    """What is asked for and what the cluster has.

    Args:
        asked: CPUs and GPUs of each process that waits for room.
        nodes: resources in all of each node that is up.
    """
    has = [_amounts(node) for node in nodes]
    return f"asked for {_counted(map(_amounts, asked))}; the cluster has {_counted(has) or 'no node'}"


def _amounts(resources: Mapping[str, float]) -> str:
    known = {kind: resources.get(kind, 0.0) for kind in ("CPU", "GPU")}
    return " + ".join(f"{amount:g} {kind}" for kind, amount in known.items() if amount) or "0 CPU"


def _counted(texts: object) -> str:
    return ", ".join(f"{times} x ({text})" for text, times in Counter(texts).items())  # type: ignore[call-overload]
