"""Ray on this machine: started once for a command, stopped with it."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from skillarena.conf.errors import ConfigError, EnvError
from skillarena.orchestration.settings import ClusterSettings

_OBJECT_STORE_BYTES = 256 * 1024 * 1024  # jobs and results are small; Ray's default would claim 30 % of the memory


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


def rollout_workers(settings: ClusterSettings, episodes: int) -> int:
    """Number of rollout processes: as configured, else one for each core, never more than there are episodes."""
    return max(1, min(settings.rollout_workers or cores(), episodes))


@contextmanager
def local_cluster(settings: ClusterSettings, workers: int) -> Iterator[None]:
    """Start Ray for ``workers`` rollout processes and the selection workers; stop it on the way out.

    Raises:
        EnvError: Ray does not come up.
        ConfigError: this process is connected to a cluster already.
    """
    # `uv run` would otherwise make Ray ship the working directory and build a second environment for its workers.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", str(int(settings.start_timeout_s)))
    import ray

    on_sigterm = signal.getsignal(signal.SIGTERM)
    if ray.is_initialized():
        raise ConfigError("Ray is running in this process already", "start SkillArena from a process of its own")
    try:
        ray.init(
            "local",  # never a cluster that happens to run on this machine
            num_cpus=workers + settings.selection_workers,
            num_gpus=0,
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            namespace="skillarena",
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except SystemExit:  # Ray's answer to SIGTERM while it starts
        raise KeyboardInterrupt from None
    except Exception as error:  # Ray raises many types here; all mean that it did not start
        raise EnvError(
            f"Ray did not start: {error}", "check free memory and that the temporary folder is writable"
        ) from error
    signal.signal(signal.SIGTERM, on_sigterm)  # Ray puts in a handler of its own that ends the process
    try:
        yield
    finally:
        ray.shutdown()
