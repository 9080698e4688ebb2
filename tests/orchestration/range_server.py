"""A file server on the loopback interface that answers ranges, and breaks off where a test says so."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class RangeServer:
    """Serves files by name.

    Args:
        files: contents by name.
        breaks: for how many answers from now on only half of what is left is sent.
    """

    def __init__(self, files: Mapping[str, bytes], breaks: int = 0) -> None:
        self.files = dict(files)
        self.breaks = breaks
        self.ranges: list[str] = []
        """``NAME RANGE`` of each request; an empty range for the whole file."""
        self.sent = 0
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rsplit("/", 1)[-1]
                if name not in server.files:
                    self.send_error(404)
                    return
                content, tag = server.files[name], f'"{hash(server.files[name]):x}"'
                asked = self.headers.get("Range", "") if self.headers.get("If-Range") == tag else ""
                server.ranges.append(f"{name} {asked}".strip())
                start = int(asked.removeprefix("bytes=").removesuffix("-") or 0)
                body = content[start:]
                self.send_response(206 if asked else 200)
                self.send_header("ETag", tag)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if server.breaks:
                    server.breaks -= 1
                    body = body[: len(body) // 2]
                self.wfile.write(body)
                server.sent += len(body)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class says so
                """Nothing on the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> RangeServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
