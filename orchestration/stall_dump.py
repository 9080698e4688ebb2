"""A file that says where a worker hung."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from skillarena.orchestration.signs_of_life import process_state, stacks
from skillarena.orchestration.watchdog import Stall, ask

log = logging.getLogger(__name__)

_STACKS_TIMEOUT_S = 5.0
_STATE_TIMEOUT_S = 20.0  # Ray may have to start a process for it


def write_dump(folder: Path, stall: Stall, name: str, facts: Sequence[str]) -> Path | None:
    """Write down where a worker hangs; takes seconds where it does not answer.

    Args:
        folder: gets the file; made if missing.
        stall: what was found.
        name: the worker's class.
        facts: lines about the state of the sweep.

    Returns:
        The file; None when it could not be written, which is only warned of.
    """
    now = datetime.now(UTC)
    where = f"{name} on node {stall.pulse.node}, process {stall.pulse.pid}" if stall.pulse else name
    signs = stall.pulse.episodes if stall.pulse else ()
    episodes = [f"  {sign.episode_id}: {sign.turns} turns, quiet for {sign.quiet_s:.1f} s" for sign in signs]
    text = "\n".join(
        [
            f"{now:%Y-%m-%d %H:%M:%S} UTC  {where}: {stall.reason}",
            "",
            *facts,
            "",
            "episodes under way in it when it last answered:",
            *(episodes or ["  none"]),
            "",
            _state_of(stall),
            "",
        ]
    )
    path = folder / f"{now:%Y%m%dT%H%M%S.%f}-{name}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    except OSError as error:
        log.warning("%s: cannot be written (%s)", path, error.strerror or error)
        return None
    return path


def _state_of(stall: Stall) -> str:
    """Stacks from the worker itself, else what its node's system says about the process."""
    import ray
    from ray.exceptions import RayError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    try:
        return str(ray.get(ask(stall.actor, stacks), timeout=_STACKS_TIMEOUT_S))
    except RayError as error:
        silent = f"it gives no stacks ({type(error).__name__})"
    if stall.pulse is None:
        return silent
    look: Any = ray.remote(process_state)
    there = NodeAffinitySchedulingStrategy(stall.pulse.node, soft=False)
    try:
        reference = look.options(num_cpus=0, scheduling_strategy=there).remote(stall.pulse.pid)
        return f"{silent}; {ray.get(reference, timeout=_STATE_TIMEOUT_S)}"
    except RayError as error:
        return f"{silent}; its node does not answer either ({type(error).__name__})"
