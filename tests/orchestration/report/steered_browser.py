"""A real browser for tests: Chromium without a window, steered over its debugging pipe."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--disable-features=IsolateSandboxedIframes",  # so that scripts of a frame can be reached through its page
    "--remote-debugging-pipe",
)
_WAIT_S = 60.0
_KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    "ArrowDown": (40, ""),
    "ArrowUp": (38, ""),
    "End": (35, ""),
    "Home": (36, ""),
    "PageDown": (34, ""),
}


def chromium() -> str:
    """Path of the browser; skips the test where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("there is no Chromium on this machine")


class Browser:
    """One tab. Use as a context manager; on leaving it the browser has ended."""

    def __init__(self, profile: Path, *, width: int = 1280, height: int = 900) -> None:
        self.errors: list[str] = []
        """What the console reported as an error, and requests that failed, since the last ``open``."""
        self.requests: list[str] = []
        """Addresses of requests since the last ``open``."""
        self._profile = profile
        self._size = (width, height)
        self._loaded = False
        self._unread = b""
        self._number = 0

    def __enter__(self) -> Browser:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]  # clear of 3 and 4
        command = [chromium(), *_FLAGS, f"--user-data-dir={self._profile}", "about:blank"]
        # The browser reads commands from descriptor 3 and answers on 4.
        placed = f"import os, sys; os.dup2({ends[0]}, 3); os.dup2({ends[1]}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        self._process = subprocess.Popen(
            [sys.executable, "-c", placed, *command],
            pass_fds=ends,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (to_browser, from_browser, *ends):
            os.close(end)
        tab = self._call("Target.createTarget", {"url": "about:blank"}, session="")["targetId"]
        attached = self._call("Target.attachToTarget", {"targetId": tab, "flatten": True}, session="")
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.resize(*self._size)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._write)  # the browser ends when its commands do
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)
        os.close(self._read)

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """What the page takes for the size of the screen and for the reader's choice of colours."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._call("Emulation.setEmulatedMedia", {"features": scheme})

    def open(self, address: str) -> None:
        """Go to an address and wait until it is loaded."""
        self._load("about:blank")  # a change of the fragment alone would load nothing
        self.errors.clear()
        self.requests.clear()
        self._load(address)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; of a promise, what it becomes."""
        wanted = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = self._call("Runtime.evaluate", wanted)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Ask until the expression is true; returns its value."""
        end = time.monotonic() + _WAIT_S
        while time.monotonic() < end:
            if value := self.evaluate(expression):
                return value
            time.sleep(0.02)
        raise AssertionError(f"never true: {expression}; errors: {self.errors}")

    def wait_in_frame(self, expression: str) -> Any:
        """``wait`` in the first frame of the page."""
        end = time.monotonic() + _WAIT_S
        while time.monotonic() < end:
            if value := self.evaluate_in_frame(expression):
                return value
            time.sleep(0.02)
        raise AssertionError(f"never true in the frame: {expression}; errors: {self.errors}")

    def evaluate_in_frame(self, expression: str) -> Any:
        """The value of an expression in the first frame of the page; None while there is none or it fails."""
        children = self._call("Page.getFrameTree")["frameTree"].get("childFrames", [])
        if not children:
            return None
        world = self._call("Page.createIsolatedWorld", {"frameId": children[0]["frame"]["id"]})["executionContextId"]
        wanted = {"expression": expression, "contextId": world, "returnByValue": True}
        return self._call("Runtime.evaluate", wanted)["result"].get("value")

    def press(self, key: str, times: int = 1) -> None:
        """Press a key."""
        code, text = _KEYS[key]
        for _ in range(times):
            about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
            self._call("Input.dispatchKeyEvent", {"type": "keyDown", "text": text, **about})
            self._call("Input.dispatchKeyEvent", {"type": "keyUp", **about})

    def screenshot(self, path: Path) -> None:
        """What is in sight, as PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", {"format": "png"})["data"]))

    def _call(self, method: str, params: dict[str, Any] | None = None, *, session: str | None = None) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params or {}}
        owner = self._session if session is None else session
        os.write(self._write, json.dumps(message | ({"sessionId": owner} if owner else {})).encode() + b"\0")
        end = time.monotonic() + _WAIT_S
        while (answer := self._next(end)) is not None:
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)
        raise AssertionError(f"{method}: no answer from the browser within {_WAIT_S} s")

    def _load(self, address: str) -> None:
        self._loaded = False
        self._call("Page.navigate", {"url": address})
        end = time.monotonic() + _WAIT_S
        while not self._loaded:
            event = self._next(end)
            assert event is not None, f"{address}: not loaded within {_WAIT_S} s"
            self._note(event)

    def _next(self, end: float) -> dict[str, Any] | None:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return None
            part = os.read(self._read, 2**20)
            assert part, "the browser has ended"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        plain: dict[str, Any] = json.loads(message)
        return plain

    def _note(self, event: dict[str, Any]) -> None:
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.errors.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.errors.append(str(params["entry"]))
            case "Network.loadingFailed":
                self.errors.append(str(params))
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Page.loadEventFired":
                self._loaded = True
            case _:
                pass
