"""What a model server lets nobody do without its key. Loaded by vLLM, which itself guards a part of its paths only."""

from __future__ import annotations

import hmac
import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Message, Receive, Send], Awaitable[None]]

_OPEN = ("/health", "/metrics")
"""Whether it works, and how much: no text, and nothing that it would do."""
_REFUSAL = b'{"error": {"message": "this server wants its key", "code": "invalid_api_key"}}'


class WantsKey:
    """ASGI middleware that refuses every request without ``Authorization: Bearer $VLLM_API_KEY``.

    Args:
        app: what answers the others.

    Raises ``KeyError`` when there is no key, so that no server starts without one.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._wanted = f"Bearer {os.environ['VLLM_API_KEY']}".encode()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request or refuse it."""
        if scope["type"] == "lifespan" or scope.get("path") in _OPEN or self._has_key(scope):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(_REFUSAL)).encode())]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSAL})

    def _has_key(self, scope: Message) -> bool:
        shown = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self._wanted)
