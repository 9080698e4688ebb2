"""A scripted OpenAI-compatible server on the loopback interface; it records every request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Scripted:
    """One response of the server."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Seconds before the response starts."""
    sent_bytes: int | None = None
    """Bytes of the body that are really sent before the connection closes; None: all."""
    drip_s: float = 0.0
    """Seconds between the single bytes of the body; 0: all at once."""


@dataclass(frozen=True)
class Recorded:
    """One request the server got."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any
    at: float
    """``time.monotonic()`` when it came."""


def completion(
    text: str | None = "Thought: go on\nAction: look",
    *,
    usage: Mapping[str, Any] | None = None,
    finish_reason: str = "stop",
    **how: Any,
) -> Scripted:
    """A 200 with one choice. ``usage=None`` leaves usage out."""
    message = {"role": "assistant", "content": text}
    content: dict[str, Any] = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
    }
    if usage is not None:
        content["usage"] = usage
    return Scripted(body=json.dumps(content).encode(), **how)


def failure(status: int, message: str = "scripted failure", *, code: str = "", **how: Any) -> Scripted:
    """An error in OpenAI's shape."""
    return Scripted(status, json.dumps({"error": {"message": message, "code": code or None}}).encode(), **how)


def cut_short(scripted: Scripted, sent_bytes: int = 20) -> Scripted:
    """The same response, but the connection closes after ``sent_bytes`` of its body."""
    return Scripted(scripted.status, scripted.body, scripted.headers, sent_bytes=sent_bytes)


NOT_JSON = Scripted(body=b"<html>upstream is having a bad day</html>")
HALF_JSON = Scripted(body=completion("Thought: and so").body[:60])
EMPTY = completion("", usage={"prompt_tokens": 30, "completion_tokens": 2})
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 64}}


class StubServer:
    """Answers chat requests with ``script`` in order, then with ``default``.

    Args:
        script: responses in the order of the chat requests, whoever sends them.
        default: the response once the script is used up.
        models: served names, in ``GET /models`` and for the 404 on others; None: no list (404), any name is served.
        key: wanted bearer key; None: every request is let in.
        max_prompt: longest prompt in characters; longer ones are a 400 as vLLM words it.
    """

    def __init__(
        self,
        script: Sequence[Scripted] = (),
        *,
        default: Scripted | None = None,
        models: Sequence[str] | None = ("stub-model",),
        key: str | None = None,
        max_prompt: int | None = None,
    ) -> None:
        self.requests: list[Recorded] = []
        self._script = list(script)
        self._default = default or completion(usage=USAGE)
        self._models = models
        self._key = key
        self._max_prompt = max_prompt
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def chats(self) -> list[Recorded]:
        return [request for request in self.requests if request.path == "/v1/chat/completions"]

    def __enter__(self) -> StubServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()

    def respond(self, request: Recorded) -> Scripted:
        """Choose the response to a request."""
        if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
            sent = request.headers.get("authorization", "none").removeprefix("Bearer ")
            return failure(401, f"Incorrect API key provided: {sent}", code="invalid_api_key")
        if request.path == "/v1/models" and self._models is not None:
            listed = [{"id": name, "object": "model"} for name in self._models]
            return Scripted(body=json.dumps({"object": "list", "data": listed}).encode())
        if request.path != "/v1/chat/completions":
            return failure(404, "Not Found")
        if self._models is not None and request.body["model"] not in self._models:
            return failure(404, f"The model `{request.body['model']}` does not exist.", code="model_not_found")
        length = sum(len(message["content"]) for message in request.body["messages"])
        if self._max_prompt is not None and length > self._max_prompt:
            words = f"This model's maximum context length is {self._max_prompt} tokens, your request has {length}."
            return failure(400, words, code="BadRequestError")
        with self._lock:
            return self._script.pop(0) if self._script else self._default

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._answer(None)

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def log_message(self, *_: object) -> None:
                pass

            def _answer(self, body: Any) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = Recorded(self.command, self.path, headers, body, time.monotonic())
                with stub._lock:
                    stub.requests.append(request)
                self._send(stub.respond(request))

            def _send(self, scripted: Scripted) -> None:
                stub._stopping.wait(scripted.delay_s)
                self.close_connection = scripted.sent_bytes is not None
                try:
                    self.send_response(scripted.status)
                    for name, value in {"Content-Type": "application/json", **scripted.headers}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(scripted.body)))
                    self.end_headers()
                    sent = scripted.body[: scripted.sent_bytes]
                    step = 1 if scripted.drip_s else max(1, len(sent))
                    for start in range(0, len(sent), step):
                        self.wfile.write(sent[start : start + step])
                        if stub._stopping.wait(scripted.drip_s):
                            return
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True  # the client gave up waiting

        return Handler
