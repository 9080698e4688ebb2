"""Whether Ray starts here (or the configured cluster can be joined) and runs a task."""

from __future__ import annotations

import json
import platform
import sys
import time
from importlib import metadata

from skillarena.conf.errors import EnvError, SkillArenaError
from skillarena.orchestration.cluster import connected
from skillarena.orchestration.doctor.finding import Finding, ok
from skillarena.orchestration.doctor.python_process import ProcessFailed, run_python
from skillarena.orchestration.settings import ClusterSettings

_START_S = 45.0
_TASK_S = 15.0
_NO_START = (
    "check free memory, that the temporary folder is writable and has space, and that loopback connections are allowed"
)
_NO_ANSWER = "look at `ray status` on the head node, and that this node has the cluster's token ($RAY_AUTH_TOKEN)"


def ray(settings: ClusterSettings, timeout_s: float) -> Finding:
    """Start Ray as a run would, in a process of its own, and let it run one task.

    Args:
        settings: of the run.
        timeout_s: seconds for all of it.

    Raises:
        EnvError: Ray does not start, or no task is run.
    """
    version = metadata.version("ray")
    began = time.monotonic()
    try:
        run_python(["-m", __name__, settings.model_dump_json()], timeout_s)
    except ProcessFailed as error:
        message, _, fix = str(error).partition("\t")
        raise EnvError(f"ray {version}: {message}", fix or (_NO_ANSWER if settings.address else _NO_START)) from error
    took = time.monotonic() - began
    where = f"joined {settings.address}" if settings.address else "started on this machine"
    return ok(f"ray {version}; {where} and ran a task in {took:.1f} s", version=version, seconds=round(took, 1))


def _try(settings: ClusterSettings) -> None:
    short = settings.model_copy(update={"start_timeout_s": min(settings.start_timeout_s, _START_S)})
    with connected(short, cpus=1):
        import ray

        task = ray.remote(num_cpus=0)(platform.python_version)  # on a full cluster, too
        ray.get(task.remote(), timeout=_TASK_S)


def main(settings: str) -> None:
    """The process's own part: silent when all is well, else one line with the message and the fix."""
    try:
        _try(ClusterSettings.model_validate(json.loads(settings)))
    except SkillArenaError as error:
        sys.exit(f"{' '.join(error.message.split())}\t{error.fix}")
    except Exception as error:  # Ray raises many types
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


if __name__ == "__main__":
    main(sys.argv[1])
