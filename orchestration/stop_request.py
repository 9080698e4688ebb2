"""Ctrl-C and SIGTERM as a request that the driver looks at between two events.

A ``KeyboardInterrupt`` thrown in at any moment can be lost in a library's callback, or break off the writing of a row.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Set once by a signal, never cleared."""

    def __init__(self) -> None:
        self.made = False
        """The user, or a scheduler ending the job, wants the run to stop."""

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Turn SIGINT and SIGTERM into this request meanwhile."""
        earlier = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in earlier:
            signal.signal(number, self._make)
        try:
            yield
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)

    def _make(self, number: int, frame: FrameType | None) -> None:
        self.made = True
