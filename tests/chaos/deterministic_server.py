"""The stand-in for a model server, with replies that depend on the conversation alone, whichever server gives them."""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from processes import python_path
from stand_in_server import Handler, StandInBackbone, main

ACTIONS = ("look", "inventory", "go to shelf 1", "go to drawer 1", "open drawer 1", "examine shelf 1", "think of it")


class Answering(Handler):
    """Plays by a digest of the conversation."""

    def do_GET(self) -> None:  # noqa: N802 (the name is http.server's)
        if self.path == "/v1/models":
            return self._send(200, {"object": "list", "data": [{"id": self.model, "object": "model"}]})
        return super().do_GET()

    def _chat(self, asked: dict[str, Any]) -> dict[str, Any]:
        time.sleep(float(os.environ.get("STAND_IN_LATENCY", "0")))
        said = json.dumps([message["content"] for message in asked["messages"]])
        number = int.from_bytes(hashlib.sha256(said.encode()).digest()[:4])
        text = f"Thought: {number % 1000}\nAction: {ACTIONS[number % len(ACTIONS)]}"
        usage = {"prompt_tokens": len(said) // 4, "completion_tokens": 5 + number % 20}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}


class DeterministicBackbone(StandInBackbone):
    """Its servers are this program."""

    def __init__(self, *, endpoints: Any = None, **options: Any) -> None:  # named, as only what is named is passed in
        super().__init__(endpoints=endpoints, **options)
        here = Path(__file__).parent
        paths = python_path(here, here.parent / "orchestration")
        # Without the file of process ids no children are started, which outlive a keeper that is killed.
        env = {key: value for key, value in self._spec.env.items() if key not in ("PYTHONPATH", "STAND_IN_PIDS")}
        self._spec = replace(self._spec, module="deterministic_server", env={**env, "PYTHONPATH": paths})


if __name__ == "__main__":
    main(Answering)
