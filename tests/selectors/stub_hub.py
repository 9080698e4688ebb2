"""A Hugging Face hub on the loopback interface that holds one data set or model; it records what it is asked for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class StubHub:
    """Serves files of a data set or model at one commit, also known as ``main``.

    Args:
        repository: its id.
        files: contents by path.
        kind: ``datasets`` or ``models``.
    """

    def __init__(self, repository: str, files: Mapping[str, bytes], kind: str = "datasets") -> None:
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                self._answer()

            def do_GET(self) -> None:
                self._answer()

            def _answer(self) -> None:
                path = unquote(urlsplit(self.path).path)
                hub.asked.append(f"{self.command} {path}")
                api, folder = f"/api/{kind}/{repository}/", "" if kind == "models" else f"/{kind}"
                resolve = f"{folder}/{repository}/resolve/{COMMIT}/"
                name = path.removeprefix(resolve)
                if path == f"{api}revision/main":
                    siblings = [{"rfilename": file} for file in files]
                    self._send(json.dumps({"id": repository, "sha": COMMIT, "siblings": siblings}).encode())
                elif path == f"{api}tree/{COMMIT}":
                    self._send(
                        json.dumps(
                            [
                                {"type": "file", "path": file, "size": len(content), "oid": _oid(content)}
                                for file, content in files.items()
                            ]
                        ).encode()
                    )
                elif path.startswith(resolve) and name in files:
                    self._send(files[name])
                else:
                    code = "RevisionNotFound" if path.startswith(f"{api}revision/") else "EntryNotFound"
                    self._send(b'{"error": "not here"}', 404, {"X-Error-Code": code})

            def _send(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
                self.send_response(status)
                known = {"ETag": f'"{_oid(body)}"', "X-Repo-Commit": COMMIT, "Content-Length": str(len(body))}
                for name, value in {**known, **(headers or {})}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class says so
                """Nothing on the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> StubHub:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _oid(content: bytes) -> str:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest()
