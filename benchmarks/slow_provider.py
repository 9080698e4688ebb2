"""A chat endpoint that answers every question after the same time, cheap enough not to be what is measured.

Run as a script it prints its port, serves until its standard input closes, and then prints what it has seen as JSON:

    python benchmarks/slow_provider.py LATENCY_S [SHORTEST LONGEST]
    python benchmarks/slow_provider.py LEAST_S:MOST_S [SHORTEST LONGEST]

In the second form every answer takes a time of its own, drawn evenly by order of magnitude from the question.

The agent is told to look around, always. With the last two numbers every episode gets a length of its own, drawn from
its seed and its opening: its last answer claims ``END_TOKENS`` tokens, so that an agent with that limit
(``agent.max_tokens``) stops there.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
import time

import orjson

END_TOKENS = 1_000_000
"""More than any episode uses otherwise."""


def _answer(tokens: int) -> bytes:
    message = {"role": "assistant", "content": "Thought: I should look around.\nAction: look"}
    return orjson.dumps(
        {
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 500, "completion_tokens": tokens, "total_tokens": 500 + tokens},
        }
    )


_REPLY, _LAST_REPLY = _answer(12), _answer(END_TOKENS)
_MODELS = orjson.dumps({"object": "list", "data": [{"id": "slow", "object": "model"}]})


class Provider:
    """Answers ``POST`` after some time and ``GET`` with the list of models at once.

    Args:
        latency_s: least and most seconds an answer takes.
        lengths: fewest and most turns of an episode; None leaves their end to the agent.
    """

    def __init__(self, latency_s: tuple[float, float], lengths: tuple[int, int] | None = None) -> None:
        self._latency_s = latency_s
        self._lengths = lengths
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
                await self._answer(writer, head.startswith(b"POST"), await reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has gone, or everything ends
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, is_question: bool, question: bytes) -> None:
        body = _MODELS
        if is_question:
            self.asked.append(time.monotonic())
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(self._time_for(question))
            self.under_way -= 1
            body = _LAST_REPLY if self._is_last(question) else _REPLY
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    def _time_for(self, question: bytes) -> float:
        least, most = self._latency_s
        if least == most:
            return least
        drawn = int.from_bytes(hashlib.sha256(question).digest()[:4], "big") / 2**32
        return float(least * (most / least) ** drawn)

    def _is_last(self, question: bytes) -> bool:
        if self._lengths is None:
            return False
        shortest, longest = self._lengths
        asked = orjson.loads(question)
        messages = asked["messages"]
        opening = f"{asked['seed']} {messages[1]['content']}".encode()
        drawn = int.from_bytes(hashlib.sha256(opening).digest()[:8], "big")
        replies = sum(message["role"] == "assistant" for message in messages)
        return bool(replies + 1 >= shortest + drawn % (longest - shortest + 1))


async def serve(provider: Provider) -> None:
    """Serve on a free port of the loopback interface until standard input closes."""
    server = await asyncio.start_server(provider.connected, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    seen = {"asked": provider.asked, "most": provider.most, "cpu_s": time.process_time()}
    print(json.dumps(seen), flush=True)
    server.close()


if __name__ == "__main__":
    latency, *ends = sys.argv[1:]
    times = [float(word) for word in latency.split(":")]
    asyncio.run(serve(Provider((times[0], times[-1]), (int(ends[0]), int(ends[1])) if ends else None)))
