"""One vLLM server process: start it, see that it works, notice when it stops working, end it with all its children."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import uuid
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.process_family import end_family
from skillarena.orchestration.serving import with_parent
from skillarena.orchestration.serving.server_log import reasons
from skillarena.orchestration.serving.vllm_spec import ServerSpec, computes_in_bf16

_PORT_TRIES = 3  # another process may take a free port before the server does
_PORT_TAKEN = "address already in use"
_POLL_S = 0.5
_PROBE_TIMEOUT_S = 10.0
_FAILED_PROBES = 3  # in a row; a busy machine may be slow once
_GRACE_S = 10.0  # to end by itself
_IMPORTS = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # also where this package was sent along by Ray
_MARK = "SKILLARENA_SERVER"  # environment variable by which everything a server has started is found


class ServerProcess:
    """A server on this machine, and everything it starts.

    It is a child in the same process group, so that whatever ends the group ends it too; it also ends when the thread
    that called ``start`` does.

    Args:
        spec: what to run.
        location: where the model is: a folder or a hub id.
        host: address to listen on.
        key: what requests must show; passed by environment.
        log: file for all its output.
        mark: by which everything that it starts is found; what an earlier one of the same mark has left is ended before
            the start. None makes a new one.
    """

    def __init__(
        self, spec: ServerSpec, *, location: str, host: str, key: str, log: Path, mark: str | None = None
    ) -> None:
        self._spec = spec
        self._location = location
        self._host = host
        self._key = key
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._mark = mark or uuid.uuid4().hex
        self._stopping = threading.Lock()
        self._failed_probes = 0
        self._port = 0
        self.url = ""
        """Before ``/chat/completions``; empty until it has started."""

    @property
    def pid(self) -> int | None:
        """Process id of the server; None before the start."""
        return self._process.pid if self._process else None

    def start(self, timeout_s: float) -> None:
        """Start it, wait until it is healthy, and ask it one question.

        Args:
            timeout_s: seconds for all of it.

        Raises:
            BackboneError: it ended, was not up in time, or answered wrongly; nothing of it is left.
        """
        ends = time.monotonic() + timeout_s
        end_family(_MARK, self._mark, within_s=_GRACE_S)
        try:
            for attempt in range(1, _PORT_TRIES + 1):
                self._spawn(_free_port(self._host))
                if self._came_up(ends):
                    break
                if attempt == _PORT_TRIES or _PORT_TAKEN not in self._logged().lower():
                    raise self._error(self._ended())
            self._ask_once(max(1.0, ends - time.monotonic()))
        except BaseException:
            self.stop()
            raise

    def fault(self) -> str:
        """Why the server is of no use any more; empty while it is well. To be asked about once a second."""
        assert self._process is not None
        if self._process.poll() is not None:
            return self._with_reasons(self._ended())
        self._failed_probes = 0 if self._healthy() else self._failed_probes + 1
        if self._failed_probes >= _FAILED_PROBES:
            return self._with_reasons(f"it failed {_FAILED_PROBES} health checks")
        return ""

    def stop(self) -> None:
        """End the server and everything it has started: asked at first, killed after ten seconds."""
        with self._stopping:
            if self._process is not None:
                self._end(self._process)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_GRACE_S)
        end_family(_MARK, self._mark, within_s=_GRACE_S)

    def _spawn(self, port: int) -> None:
        cpuinfo = Path("/proc/cpuinfo")
        bf16 = cpuinfo.is_file() and computes_in_bf16(cpuinfo.read_text())
        arguments = self._spec.arguments(self._host, port, location=self._location, bf16_cpu=bf16)
        self._port = port
        self.url = f"http://{self._host}:{port}/v1"
        # Engines give their processes titles, which overwrites the environment that others see unless told not to.
        own = {"VLLM_API_KEY": self._key, _MARK: self._mark, "SPT_NOENV": "1"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, with_parent.__file__, str(os.getpid()), "-m", self._spec.module, *arguments],
                env=os.environ | _IMPORTS | self._spec.environment(len(os.sched_getaffinity(0))) | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _came_up(self, ends: float) -> bool:
        """Wait until it is healthy; False when it has ended."""
        assert self._process is not None
        while self._process.poll() is None:
            if self._healthy():
                return True
            if time.monotonic() > ends:
                raise self._error("it was not up in time")
            time.sleep(_POLL_S)
        return False

    def _healthy(self) -> bool:
        connection = HTTPConnection(self._host, self._port, timeout=_PROBE_TIMEOUT_S)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == HTTPStatus.OK
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()

    def _ask_once(self, timeout_s: float) -> None:
        """One prompt through the whole model: a healthy server may still lack a chat template or serve another task."""
        import httpx

        for path, body in _questions(self._spec):
            try:
                response = httpx.post(
                    self.url + path,
                    json={"model": self._spec.served_name, **body},
                    headers={"Authorization": f"Bearer {self._key}"},
                    timeout=timeout_s,
                    trust_env=False,
                )
            except httpx.HTTPError as error:
                raise self._error(f"its first question got no answer ({type(error).__name__})") from None
            if response.is_success:
                return
        raise self._error(f"it refuses questions ({response.status_code}: {response.text.strip()[:300]})")

    def _ended(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        return f"it ended with code {code}" if code >= 0 else f"it was ended by signal {-code}"

    def _with_reasons(self, what: str) -> str:
        said = "; ".join(reasons(self._logged()))
        return f"{what}: {said}" if said else what

    def _logged(self) -> str:
        return self.log.read_text("utf-8", errors="replace") if self.log.is_file() else ""

    def _error(self, what: str) -> BackboneError:
        return BackboneError(
            f"the model server {self._spec.name} did not start: {self._with_reasons(what)}",
            f"correct the keys under backbone, or raise backbone.start_timeout_s; its log is {self.log}",
        )


def _questions(spec: ServerSpec) -> list[tuple[str, dict[str, Any]]]:
    """Paths and bodies, one of which the server must answer."""
    if spec.runner == "generate":
        return [("/chat/completions", {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1})]
    return [
        ("/embeddings", {"input": "Hello"}),
        ("/score", {"text_1": "Hello", "text_2": "Hello"}),
    ]


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])
