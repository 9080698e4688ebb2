"""Room for the files that a sweep keeps open: each cell's ledger, trajectories and lock, and often its selections."""

from __future__ import annotations

import resource

from skillarena.conf.errors import ConfigError

_EACH_CELL = 4
_OTHERS = 512  # Ray's connections, MLflow's store, logs, libraries


def allow_open_files(cells: int) -> None:
    """Raise this process's soft limit of open files where a sweep needs more, as far as the hard limit allows.

    Args:
        cells: of the sweep.

    Raises:
        ConfigError: the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = cells * _EACH_CELL + _OTHERS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise ConfigError(
            f"{cells:,} cells need about {needed:,} open files; this user may have {hard:,} (ulimit -Hn)",
            "raise that limit, or run the cells in several sweeps with the same output_dir",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
