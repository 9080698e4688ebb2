"""Servers beside a sweep that die, freeze and come back: a provider's and MLflow's."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
from faults import Fault
from sweep_under_fire import SweepUnderFire

_UP_WITHIN_S = 120.0
_DOWN_S = (0.5, 4.0)


def free_port() -> int:
    """A port of the loopback interface that nobody has by now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Service:
    """A server program of its own process group.

    Args:
        name: for the table.
        arguments: its command.
        health: URL that answers 200 once it is up.
        log: file for its output.
        env: further environment variables.
    """

    def __init__(
        self, name: str, arguments: Sequence[str], health: str, log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._arguments = list(arguments)
        self._health = health
        self._log = log
        self._env = dict(env or {})
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.send(signal.SIGKILL)

    def start(self) -> None:
        """Start it and wait until it is up."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._arguments, env={**os.environ, **self._env}, stdout=log, stderr=log, start_new_session=True
            )
        ends = time.monotonic() + _UP_WITHIN_S
        while True:
            try:
                if httpx.get(self._health, timeout=5, trust_env=False).is_success:
                    return
            except httpx.HTTPError:
                pass
            assert self._process.poll() is None, self._log.read_text()[-3000:]
            assert time.monotonic() < ends, self._log.read_text()[-3000:]
            time.sleep(0.1)

    def send(self, number: signal.Signals) -> None:
        """A signal to it and all it has started; after SIGKILL it is gone."""
        assert self._process is not None
        os.killpg(self._process.pid, number)
        if number is signal.SIGKILL:
            self._process.wait(30)


def restart(service: Service) -> Fault:
    """Kill it, and start it again some seconds later."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        service.send(signal.SIGKILL)
        time.sleep(rng.uniform(*_DOWN_S))
        service.start()
        return lambda: None

    return Fault(f"kill -9 and start again: {service.name}", lambda sweep: sweep.code is None, inject)


def pause(service: Service) -> Fault:
    """Freeze it for some seconds."""

    def inject(sweep: SweepUnderFire, rng: random.Random) -> Callable[[], None]:
        service.send(signal.SIGSTOP)
        time.sleep(rng.uniform(*_DOWN_S))
        service.send(signal.SIGCONT)
        return lambda: None

    return Fault(f"SIGSTOP, then SIGCONT: {service.name}", lambda sweep: sweep.code is None, inject)
