"""A chat endpoint that answers every question after the same time, cheap enough not to be what is measured.

Run as a script it prints its port, serves until its standard input closes, and then prints what it has seen as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

REPLY = json.dumps(
    {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Thought: I should look around.\nAction: look"},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 500, "completion_tokens": 12, "total_tokens": 512},
    }
).encode()
MODELS = json.dumps({"object": "list", "data": [{"id": "slow", "object": "model"}]}).encode()


class Provider:
    """Answers ``POST`` after ``latency_s`` seconds and ``GET`` with the list of models at once."""

    def __init__(self, latency_s: float) -> None:
        self._latency_s = latency_s
        self.asked: list[float] = []
        """``time.monotonic()`` of each question."""
        self.under_way = 0
        self.most = 0
        """Most questions under way at once."""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = next(
                    (int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0
                )
                await reader.readexactly(length)
                await self._answer(writer, head.startswith(b"POST"))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or everything ends
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, question: bool) -> None:
        if question:
            self.asked.append(time.monotonic())
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(self._latency_s)
            self.under_way -= 1
        body = REPLY if question else MODELS
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()


async def serve(latency_s: float) -> None:
    """Serve on a free port of the loopback interface until standard input closes."""
    provider = Provider(latency_s)
    server = await asyncio.start_server(provider.connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    seen = {"asked": provider.asked, "most": provider.most, "cpu_s": time.process_time()}
    print(json.dumps(seen), flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
