"""All selection methods in one sweep: what each selects, and what selecting takes.

    python benchmarks/selectors.py LIBRARY                                   bundled and generated games
    ALFWORLD_DATA=… python benchmarks/selectors.py LIBRARY alfworld_seen scienceworld_seen    the official splits
    python benchmarks/selectors.py bundled alfworld --limit 4 --only vector --only skilldag

The simulated backbone plays, so rewards say nothing about any model; skills, pairs, tokens and seconds are what the
methods really do. Where a method asks a language model to rank skills, a stand-in answers that ranks by common words,
so its choices say nothing about any model either. The methods' names and settings are those of `conf/selector`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated

import typer

METHODS = (
    "none",
    "random",
    "random_top2",
    "vector",
    "vector_top2",
    "vanilla",
    "oracle",
    "skillreranker",
    "without_parsing",
    "without_parsing_top2",
    "without_edges",
    "without_edges_top2",
    "without_split",
    "skillrouter",
    "skillrouter_top2",
    "llm_selector",
    "llm_selector_top2",
    "graph_of_skills",
    "graph_of_skills_top2",
    "graph_of_skills_released",
    "skilldag",
    "skilldag_frozen",
    "spem_frozen",
)
_TASK = re.compile(r"Task:\s*(.+)", re.IGNORECASE)
_SKILL = re.compile(r"<skill id=(\w+)>\n(.*?)\n</skill>", re.DOTALL)


class WordRanker(BaseHTTPRequestHandler):
    """A chat endpoint that ranks the skills of a prompt by the share of the task's words they hold."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """The list of models."""
        self._send({"object": "list", "data": [{"id": "stand-in", "object": "model"}]})

    def do_POST(self) -> None:
        """One ranking."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = asked["messages"][0]["content"]
        text = rank(prompt)
        message = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop", "index": 0}
        usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 2}
        self._send({"object": "chat.completion", "choices": [message], "usage": usage})

    def _send(self, plain: object) -> None:
        body = json.dumps(plain).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the terminal free."""


def rank(prompt: str) -> str:
    """Ids of the skills in a prompt, those with most of the task's words first; ties keep their order."""
    found = _TASK.search(prompt)
    words = set(re.findall(r"\w+", (found[1] if found else "").lower()))
    skills = {skill_id: set(re.findall(r"\w+", text.lower())) for skill_id, text in _SKILL.findall(prompt)}
    return ", ".join(sorted(skills, key=lambda skill_id: -len(words & skills[skill_id])))


@contextmanager
def word_ranker(port: int) -> Iterator[str]:
    """The base URL of a running stand-in."""
    server = ThreadingHTTPServer(("127.0.0.1", port), WordRanker)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()


def main(
    library: Annotated[str, typer.Argument(help="Folder or pool of skills, or 'bundled'.")] = "bundled",
    benchmarks: Annotated[list[str] | None, typer.Argument(help="Choices of the group benchmark.")] = None,
    limit: Annotated[int | None, typer.Option(help="Tasks of each benchmark; all without it.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Methods; all without it.")] = None,
    port: Annotated[int, typer.Option(help="Of the stand-in; a cell is continued with the same one only.")] = 8743,
    output: Annotated[Path, typer.Option(help="Folder of the run.")] = Path("outputs/selectors"),
) -> None:
    """Play the sweep; the same call continues an interrupted one."""
    with word_ranker(port) as url:
        arguments = [
            f"selector={','.join(only or METHODS)}",
            f"benchmark={','.join(benchmarks or ['alfworld', 'scienceworld'])}",
            *(["library=bundled"] if library == "bundled" else ["library=paths", f"library.paths=[{library}]"]),
            *(["library.rejected=list"] if library != "bundled" else []),
            *([f"benchmark.limit={limit}"] if limit else []),
            "llm=openai_compatible",
            "llm.name=word_ranker",
            "llm.model=stand-in",
            f"llm.base_url={url}",
            "llm.api_key_env=null",
            f"output_dir={output}",
            "tracking.enabled=false",
        ]
        command = [sys.executable, "-m", "skillarena.orchestration.cli", "run", "-m", *arguments]
        code = subprocess.run(command, check=False).returncode
    raise typer.Exit(code)


if __name__ == "__main__":
    typer.run(main)
