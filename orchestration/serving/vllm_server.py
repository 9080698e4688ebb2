"""The actor that keeps one replica of a model server running."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import Protocol

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.backbones.model_files import location_of
from skillarena.orchestration.serving.vllm_process import ServerProcess
from skillarena.orchestration.serving.vllm_spec import ServerSpec

_WATCH_EVERY_S = 1.0
LOOPBACK = "127.0.0.1"


class Announcer(Protocol):
    """Whom a replica tells about itself (``router.Registry``)."""

    def starting(self) -> int:
        """It begins to start; returns how often it has been up before."""

    def up(self, url: str) -> None:
        """It can answer."""

    def alive(self, url: str) -> None:
        """It still can."""

    def down(self, reason: str) -> None:
        """It has failed."""


class VLLMServer:
    """Starts a server, announces it, and watches it. Runs as an actor that Ray restarts a bounded number of times.

    A server that never was up is not tried again: its fault would show again, and ``serve`` returns it. One that dies
    later takes this process with it, whereupon Ray starts both anew and repeats the call of ``serve``.

    Args:
        spec: what to serve.
        number: of the replica.
        loopback: listen on this machine only, else on the address under which the node is known to the cluster.
        key: what requests must show.
        log_dir: folder for logs; made if missing.
        start_timeout_s: seconds a start may take.
    """

    def __init__(
        self,
        spec: ServerSpec,
        number: int,
        *,
        loopback: bool,
        key: str,
        log_dir: str,
        start_timeout_s: float,
    ) -> None:
        self._spec = spec
        self._number = number
        self._loopback = loopback
        self._key = key
        self._log_dir = Path(log_dir)
        self._start_timeout_s = start_timeout_s
        self._process: ServerProcess | None = None
        self._stopping = threading.Event()
        self._ended = threading.Event()

    def serve(self, announcer: Announcer) -> BackboneError | None:
        """Run the server until it is stopped or dies.

        Args:
            announcer: whom to tell.

        Returns:
            Why it cannot start; None after ``stop``.
        """
        try:
            return self._serve(announcer)
        finally:
            self._ended.set()

    def stop(self, timeout_s: float) -> bool:
        """End the server; whether nothing of it is left after about ``timeout_s`` seconds."""
        self._stopping.set()
        if self._process is not None:
            self._process.stop()
        return self._ended.wait(timeout_s)

    def _serve(self, announcer: Announcer) -> BackboneError | None:
        been_up = announcer.starting() > 0
        try:
            self._process = self._new_process()
            self._process.start(self._start_timeout_s)
        except BackboneError as error:
            announcer.down(error.message)
            if been_up and not self._stopping.is_set():
                self._die()  # it worked before, so another try may work again
            return None if self._stopping.is_set() else error
        announcer.up(self._process.url)
        while not self._stopping.wait(_WATCH_EVERY_S):
            reason = self._process.fault()
            if reason and not self._stopping.is_set():
                announcer.down(reason)
                self._process.stop()
                self._die()
            announcer.alive(self._process.url)
        self._process.stop()
        return None

    def _new_process(self) -> ServerProcess:
        return ServerProcess(
            self._spec,
            location=location_of(self._spec.folder or self._spec.model),
            host=LOOPBACK if self._loopback else _address_of_this_node(),
            key=self._key,
            log=self._new_log(),
            mark=self._mark,
        )

    @property
    def _mark(self) -> str:
        """The same whenever Ray starts this replica anew, so that it ends what its last life has left."""
        return hashlib.sha256(f"{self._key} {self._spec.name} {self._number}".encode()).hexdigest()

    def _new_log(self) -> Path:
        self._log_dir.mkdir(parents=True, exist_ok=True)
        number = 1
        while True:
            log = self._log_dir / f"{self._spec.name}-{self._number}-{number}.log"
            try:
                log.touch(exist_ok=False)
                return log
            except FileExistsError:
                number += 1

    def _die(self) -> None:
        os._exit(1)


def _address_of_this_node() -> str:
    import ray

    return str(ray.util.get_node_ip_address())  # type: ignore[no-untyped-call]
