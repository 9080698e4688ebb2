"""The connection to Ray: a cluster of this command's own on this machine, or one that runs already."""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from skillarena.conf.errors import ConfigError, EnvError
from skillarena.orchestration.api_keys import key_variables
from skillarena.orchestration.process_family import end_family
from skillarena.orchestration.settings import ClusterSettings

_OBJECT_STORE_BYTES = 256 * 1024 * 1024  # jobs and results are small; Ray's default would claim 30 % of the memory
_KNOCK_TIMEOUT_S = 10.0
_MARK = "SKILLARENA_RAY"  # environment variable by which everything that a Ray of our own has started is found
_LEAVE_S = 5.0
_SHIPPED = ("conf", "envs", "orchestration", "selectors")


def cores() -> int:
    """CPU cores that this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def connected(settings: ClusterSettings, cpus: int) -> Iterator[None]:
    """Ray while the block runs.

    Args:
        settings: ``address`` null starts a Ray of our own, anything else is joined.
        cpus: processes that a Ray of our own must have room for, whatever the machine's cores.

    Raises:
        EnvError: Ray does not come up, or nothing answers at the address.
        ConfigError: this process is connected to a cluster already, or the address is of another kind.
    """
    # `uv run` would otherwise make Ray ship the working directory and build a second environment for its workers.
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", str(int(settings.start_timeout_s)))
    if settings.address is None and "ray" not in sys.modules:
        _keep_to_this_machine()
    import ray

    if ray.is_initialized():
        raise ConfigError("Ray is running in this process already", "start SkillArena from a process of its own")
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with _package(settings) as modules:
        try:
            try:
                if settings.address is None:
                    _start(cpus)
                else:
                    _join(settings.address, modules)
            except SystemExit:  # Ray's answer to SIGTERM while it starts
                raise KeyboardInterrupt from None
            signal.signal(signal.SIGTERM, on_sigterm)  # Ray puts in a handler of its own that ends the process
            yield
        finally:
            _end()


def _end() -> None:
    """Disconnect; what a Ray of our own leaves behind, such as a frozen process whose raylet has died, is ended."""
    import ray

    ray.shutdown()
    if mark := os.environ.pop(_MARK, None):
        end_family(_MARK, mark, leave_s=_LEAVE_S)


def _keep_to_this_machine() -> None:
    """Let a Ray of our own listen on loopback only and take orders from this process's children only.

    Ray reads this when it is imported; in a process that has done so before, Ray keeps its own ways. The first variable
    is what it has for systems on which it never forms clusters; it is the only one that makes all its servers, the
    workers' included, listen on loopback. The token is a new one for each process and known by inheritance, where Ray
    would make one that lies in the home folder for good.
    """
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if not {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _start(cpus: int) -> None:
    import ray

    os.environ[_MARK] = secrets.token_hex(8)
    try:
        ray.init(
            "local",  # never a cluster that happens to run on this machine
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=_OBJECT_STORE_BYTES,
            namespace="skillarena",
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # Ray raises many types here; all mean that it did not start
        raise EnvError(
            f"Ray did not start: {error}",
            "on a busy machine wait or raise cluster.start_timeout_s, else check free memory and that the temporary"
            " folder is writable; the same command tries again",
        ) from error


def _join(address: str, modules: Sequence[str]) -> None:
    import ray

    if address.startswith("ray://"):
        raise ConfigError(
            f"cluster.address={address}: Ray's client protocol is not supported",
            "run the command on a node of the cluster with cluster.address=auto, or send it there: ray job submit",
        )
    _knock(address)
    try:
        ray.init(
            address,
            runtime_env={"py_modules": list(modules)},
            namespace="skillarena",
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except Exception as error:  # as above
        raise _no_cluster(address, (str(error).splitlines() or [type(error).__name__])[0]) from error


def _knock(address: str) -> None:
    """Ray itself tries for minutes before it says that nothing is there. Raises ``EnvError``."""
    host, _, port = (_found() if address == "auto" else address).rpartition(":")
    if not port.isdecimal():  # nothing is found, which Ray says at once
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_KNOCK_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, str(error)) from error


def _found() -> str:
    """What ``auto`` stands for: a cluster that is named in the environment or was started here, maybe one long gone."""
    from ray._private import services

    try:
        return str(services.canonicalize_bootstrap_address("auto") or "")
    except Exception:  # none, or several, which Ray says at once as well
        return ""


def _no_cluster(address: str, reason: str) -> EnvError:
    return EnvError(
        f"no Ray cluster at cluster.address={address}: {reason}",
        "start one (`ray start --head`) or correct the address; Python, Ray and the token ($RAY_AUTH_TOKEN or"
        " ~/.ray/auth_token) must be the same on all nodes",
    )


@contextmanager
def _package(settings: ClusterSettings) -> Iterator[list[str]]:
    """Folders that nodes without this version of the package get; empty for a Ray of our own, which shares ours."""
    if settings.address is None:
        yield []
        return
    own = [Path(path).expanduser().absolute() for path in settings.py_modules]
    for path in own:
        if not path.exists():
            raise ConfigError(f"cluster.py_modules: there is no {path}", "name folders or files of Python packages")
    with TemporaryDirectory(prefix="skillarena-") as stage:
        package = Path(stage) / "skillarena"
        package.mkdir()
        for name in _SHIPPED:  # links: Ray follows them when it packs the folder
            module: Any = importlib.import_module(f"skillarena.{name}")
            (package / name).symlink_to(Path(next(iter(module.__path__))), target_is_directory=True)
        yield [str(package), *map(str, own)]


def secrets_to_send(settings: ClusterSettings, sections: Sequence[object]) -> dict[str, str]:
    """The keys that workers are told when they start.

    Those of a Ray of our own inherit the environment and are told nothing. Workers on other machines do not share it;
    they are told in memory, never by configuration, but Ray's head node sees what they are told.
    """
    return {} if settings.address is None else secrets_in(sections)


def secrets_in(sections: Sequence[object]) -> dict[str, str]:
    """The API keys that configuration sections name, out of this process's environment.

    Args:
        sections: plain data; every key ``api_key_env`` in it names a variable. Those not set are left out.
    """
    return {name: os.environ[name] for name in key_variables(list(sections)) if name in os.environ}


def living_nodes() -> dict[str, dict[str, float]]:
    """Resources in all of each node that is up, by Ray's id of the node."""
    import ray

    return {str(node["NodeID"]): dict(node["Resources"]) for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]


def check_own_node() -> None:
    """Raises ``EnvError`` when Ray's own process on this machine has died, and with it all that it had started."""
    import ray

    if ray.get_runtime_context().get_node_id() not in living_nodes():
        raise EnvError(
            "Ray on this machine has died (its raylet process is gone)",
            "run the same command again, finished episodes are kept; if it happens again, look for a lack of memory",
        )
