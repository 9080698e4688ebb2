"""Grounding ALFWorld games in a child process, which then waits for the next game."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading

from skillarena.conf.errors import DataError, EnvError

_idle: list[_Child] = []
"""Children that wait, as many as were ever busy at once. They end when their input closes, so with this process."""


def translate(domain: str, problem: str, deadline_s: float) -> bytes:
    """The fields of an ``alfworld_translation.Translation`` as JSON.

    Args:
        domain: PDDL domain.
        problem: PDDL problem.
        deadline_s: seconds it may take.

    Raises:
        DataError: the translator refuses the PDDL.
        EnvError: the translator is late or killed, or cannot be started.
    """
    child = _waiting() or _Child()
    answer = child.answer(json.dumps({"domain": domain, "problem": problem}).encode(), deadline_s)
    _idle.append(child)
    return answer


def _waiting() -> _Child | None:
    while True:
        try:
            child = _idle.pop()
        except IndexError:
            return None
        if child.is_alive():
            return child
        child.end()


class _Child:
    """A running ``alfworld_translate``. Starting it takes as long as grounding a small game, so it is kept."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by end
        command = [sys.executable, "-P", "-m", "skillarena.envs.alfworld_translate"]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        except BaseException:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def is_alive(self) -> bool:
        """False when something else has ended it."""
        return self._process.poll() is None

    def answer(self, request: bytes, deadline_s: float) -> bytes:
        """The answer to a line; after any failure the child has ended."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(deadline_s, give_up)
        timer.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # then there is no answer, and its end tells why
                self._requests.write(request + b"\n")
                self._requests.flush()
            answer = self._answers.readline()
            timer.cancel()
            timer.join()
            if late.is_set():
                raise EnvError(
                    f"translating an ALFWorld game took over {deadline_s:g} s",
                    "raise deadline_s, or run fewer workers at once",
                )
            if not answer.endswith(b"\n"):
                raise self._failure()
        except BaseException:
            timer.cancel()
            self.end()
            raise
        return answer

    def end(self) -> None:
        """End it now. Safe to call twice."""
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close the pipes, without which the child ends, once nobody else holds them."""
        for file in (self._requests, self._answers, self._errors):
            with contextlib.suppress(BrokenPipeError):  # of what was not sent
                file.close()

    def _failure(self) -> DataError | EnvError:
        code = self._process.wait()
        if code < 0:
            return EnvError(
                f"translating an ALFWorld game was ended by signal {-code}", "free memory, or run fewer workers"
            )
        self._errors.seek(0)
        complaint = self._errors.read().decode(errors="replace").strip() or f"exit status {code}"
        return DataError(
            f"the PDDL of an ALFWorld game cannot be translated: {complaint.splitlines()[-1]}",
            "fetch the game again with `skillarena data alfworld`",
        )


def _end_all() -> None:
    while _idle:
        _idle.pop().end()


def _let_go_after_fork() -> None:
    """The children are the parent's, and must not outlive it because its pipes are open here."""
    while _idle:
        _idle.pop().let_go()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_let_go_after_fork)
