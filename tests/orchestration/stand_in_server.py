"""A small program in place of vLLM's server: the same arguments and requests, real processes, no model.

``STAND_IN`` in its environment says how it behaves; ``STAND_IN_PIDS``, where set, names a file that gets its process
ids: its own, a child's and a grandchild's. ``POST /die`` ends it with code 0 and leaves its children behind; ``POST
/sick`` makes ``/health`` fail.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from skillarena.orchestration.backbones.vllm import VLLMBackbone

SLEEP = "import time; time.sleep(600)"
CHILD = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {SLEEP!r}]).pid, flush=True)
{SLEEP}
"""


def stand_in(spec: Any, folder: Path, behaviour: str = "well", **env: str) -> Any:
    """``spec``, served by this program."""
    added = {"STAND_IN": behaviour, "STAND_IN_PIDS": str(folder / "pids"), "PYTHONPATH": str(Path(__file__).parent)}
    return replace(spec, module="stand_in_server", env={**added, **env})


class StandInBackbone(VLLMBackbone):
    """Its servers are this program."""

    def __init__(
        self, *, folder: str, behaviour: str = "well", latency_s: float = 0, endpoints: Any = None, **options: Any
    ) -> None:
        super().__init__(endpoints=endpoints, **options)
        self._spec = stand_in(self._spec, Path(folder), behaviour, STAND_IN_LATENCY=str(latency_s))

    def _check_engine(self) -> None:
        """This program needs no vLLM."""


def pids(folder: Path) -> list[int]:
    """Processes of all servers started with ``folder``."""
    file = folder / "pids"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def alive(folder: Path) -> list[int]:
    """Those that have not ended."""
    return [pid for pid in pids(folder) if _runs(pid)]


def wait_until(condition: Any, seconds: float) -> bool:
    """Whether ``condition()`` becomes true in time."""
    ends = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > ends:
            return False
        time.sleep(0.05)
    return True


def _runs(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    behaviour = ""
    sick = False
    model = ""

    def do_GET(self) -> None:
        well = self.path == "/health" and not self.sick and self.behaviour != "never well"
        if self.behaviour == "hangs":
            time.sleep(600)
        self._send(200 if well else 503)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        if self.path == "/die":
            os._exit(0)
        if self.path == "/sick":
            Handler.sick = True
            return self._send(200)
        if self.headers["Authorization"] != f"Bearer {os.environ['VLLM_API_KEY']}":
            return self._send(401, {"error": "Unauthorized"})
        asked = json.loads(body)
        answers = {"/v1/chat/completions": self._chat, "/v1/score": lambda _: {"data": [{"score": 0.5}]}}
        if asked["model"] != self.model or self.path not in answers:
            return self._send(404, {"error": {"message": f"The model `{asked['model']}` does not exist."}})
        if self.behaviour == "no template":
            return self._send(400, {"error": {"message": "a chat template is needed"}})
        return self._send(200, answers[self.path](asked))

    def _chat(self, asked: dict[str, Any]) -> dict[str, Any]:
        time.sleep(float(os.environ.get("STAND_IN_LATENCY", "0")))
        text = f"Thought: port {self.server.server_address[1]}\nAction: look"
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}

    def _send(self, status: int, content: Any = None) -> None:
        body = json.dumps(content).encode() if content is not None else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def _family() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    yield from (os.getpid(), child.pid, int(child.stdout.readline()))


def main(handler: type[Handler] = Handler) -> None:
    parser = argparse.ArgumentParser()
    for flag in ("--host", "--served-model-name"):
        parser.add_argument(flag)
    parser.add_argument("--port", type=int)
    given, _ = parser.parse_known_args()
    behaviour = os.environ["STAND_IN"]
    if "STAND_IN_PIDS" in os.environ:
        with Path(os.environ["STAND_IN_PIDS"]).open("a") as file:
            print(*_family(), file=file, flush=True)
    if behaviour == "ends at once":
        print("Traceback (most recent call last):\nValueError: the KV cache does not fit", flush=True)
        sys.exit(1)
    if behaviour == "ends without a word":
        os._exit(0)
    once = os.environ.get("STAND_IN_TAKEN")
    if once and not Path(once).exists():
        Path(once).touch()
        print("OSError: [Errno 98] Address already in use", flush=True)
        sys.exit(1)
    if behaviour == "deaf":
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    handler.behaviour, handler.model = behaviour, given.served_model_name
    server = ThreadingHTTPServer((given.host, given.port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main()
