"""No key of a user is in anything that a run writes, prints or hands to another process as an argument."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from urllib.parse import quote

import pytest
from canaries import CANARIES, canary, forms, in_content, in_folders
from command import cells, environment, rows_of
from stub_server import USAGE, Recorded, Scripted, StubServer, completion, failure
from watching import Watched, watch, watch_program

from skillarena.orchestration.cluster import secrets_to_send
from skillarena.orchestration.settings import ClusterSettings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


class EchoServer(StubServer):
    """Repeats the key that a request shows: in headers, and in every form in what it says.

    Args:
        chat_status: what chats are answered with.
        list_status: what the list of models is answered with.
    """

    def __init__(self, chat_status: int = 200, list_status: int = 200) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self._chat_status = chat_status
        self._list_status = list_status

    def respond(self, request: Recorded) -> Scripted:
        key = request.headers.get("authorization", "Bearer none").removeprefix("Bearer ")
        self.seen.add(key)
        # The second time the key lies where a quote of 300 characters is cut.
        said = " ".join(forms(key).values()) + " " + "." * (290 - len(key) // 2 - 7 * len(key)) + key
        shifted = "." * (300 - len(key) // 2) + key
        headers = {"X-Api-Key": key, "WWW-Authenticate": f'Bearer key="{key}"'}
        is_list = request.path == "/v1/models"
        status = self._list_status if is_list else self._chat_status
        if status != 200:
            return failure(status, shifted if len(self.requests) % 2 else said, code=key, headers=headers)
        if is_list:
            listed = {"data": [{"id": "stub-model"}, {"id": key}]}
            return Scripted(body=json.dumps(listed).encode(), headers=headers)
        return completion(f"Thought: {said}\nAction: look", usage=USAGE, headers=headers)


@dataclass
class Place:
    """Where the commands of a test run and write."""

    root: Path
    ray: Path
    """Ray's folder; its sockets allow short paths only."""
    watched: list[Watched] = field(default_factory=list)

    def run(self, *arguments: str, **extra: str) -> Watched:
        probe = self.root / "probe"
        probe.mkdir(exist_ok=True)
        temporary = {name: str(self.ray) for name in ("TMPDIR", "RAY_TMPDIR")}
        env = {**CANARIES, **temporary, "PROBE_FOLDER": str(probe), "PYTHONPATH": str(Path(__file__).parent), **extra}
        self.watched.append(watch(*arguments, cache=self.root / "cache", cwd=self.root, **env))
        return self.watched[-1]

    def hits(self) -> list[str]:
        """Canaries in files, outputs and command lines."""
        found = in_folders([self.root, self.ray])
        for watched in self.watched:
            found += [f"output: {hit}" for hit in in_content(watched.output.encode())]
            found += [f"{line[:60]}: {hit}" for line in watched.commands for hit in in_content(line.encode())]
        return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    ray = Path(mkdtemp(prefix="sa-"))
    yield Place(tmp_path, ray)
    shutil.rmtree(ray, ignore_errors=True)


def overrides(server: StubServer) -> list[str]:
    where = [f"{part}.base_url={server.url}" for part in ("backbone", "llm", "parser.model")]
    models = [f"{part}.model=stub-model" for part in ("backbone", "llm", "parser.model")]
    keys = ["backbone.api_key_env=BACKBONE_KEY", "llm.api_key_env=LLM_KEY", "parser.model.api_key_env=PARSER_KEY"]
    return [
        *("backbone=openai_compatible", "llm=openai_compatible", "parser=llm", *where, *models, *keys),
        "backbone._target_=probing_backbone.ProbingBackbone",
        *("library.limit=6", "selector.k=4", "benchmark.limit=2", "agent.max_turns=2", "run.max_attempts=1"),
        *("backbone.max_retries=0", "llm.max_retries=0", "+parser.model.max_retries=0"),
        *("tracking.traces=true", "run.keep_selections=true"),
    ]


def test_a_server_that_repeats_keys_in_its_replies_leaves_none_behind(place: Place) -> None:
    with EchoServer() as server:
        chosen = overrides(server)
        done = place.run("run", "-m", "selector=llm_selector,skillreranker", *chosen)
        assert done.code == 0, done.output
        assert {CANARIES[name] for name in ("BACKBONE_KEY", "LLM_KEY", "PARSER_KEY")} <= server.seen
        (sweep,) = (place.root / "outputs" / "sweeps").iterdir()
        episode = rows_of(cells(place.root / "outputs")[0])[0].episode_id
        for words in (
            ["plan", "selector=llm_selector", *chosen],
            ["select", "put a hot mug in cabinet", "selector=llm_selector", *chosen, "--figure", "case.html"],
            ["report", "outputs"],
            ["show", episode[:12]],
            ["show", episode[:12], "--json"],
            ["sync", str(sweep)],
            ["run", "--cfg", "job", *chosen],
        ):
            done = place.run(*words)
            assert done.code == 0, f"{words[0]}: {done.output}"
        place.run("doctor", *chosen)  # whatever it finds lacking on this machine
        trajectories = cells(place.root / "outputs")[0] / "trajectories.jsonl"
        assert "***" in trajectories.read_text("utf-8"), "the replies were to hold the key"
    logs = list(place.ray.glob("**/session_*/logs/gcs_server*"))
    assert logs, "Ray's own files are elsewhere, so they were not searched"
    probes = [path.read_text() for path in (place.root / "probe").iterdir()]
    assert probes and all("runtime_env" in text and "actors" in text for text in probes)
    assert place.hits() == []


@pytest.mark.parametrize(("chat_status", "list_status"), [(401, 401), (401, 200), (500, 200), (404, 200)])
def test_a_server_that_repeats_keys_in_its_errors_leaves_none_behind(
    place: Place, chat_status: int, list_status: int
) -> None:
    with EchoServer(chat_status, list_status) as server:
        done = place.run("run", "selector=llm_selector", *overrides(server))
        assert done.code in (1, 2), done.output
        assert {CANARIES["LLM_KEY"], CANARIES["BACKBONE_KEY"]} & server.seen
    assert "Traceback" not in done.output
    assert place.hits() == []


def test_a_tracking_server_that_repeats_the_password_leaves_none_behind(place: Place) -> None:
    class Tracking(StubServer):
        def respond(self, request: Recorded) -> Scripted:
            shown = request.headers.get("authorization", "")
            return failure(401, f"{shown} {CANARIES['MLFLOW_TRACKING_PASSWORD']}")

    with Tracking() as server:
        uri = server.url.removesuffix("/v1")
        done = place.run("run", "selector=none", "benchmark.limit=1", f"tracking.uri={uri}")
        assert done.code == 0 and "MLflow is behind" in done.output, done.output
        assert any("authorization" in request.headers for request in server.requests), "no password was sent"
        (cell,) = cells(place.root / "outputs")
        assert place.run("sync", str(cell)).code == 2
        address = uri.replace("//", f"//user:{quote(CANARIES['HF_TOKEN'], safe='')}@")
        done = place.run("run", "selector=random", "benchmark.limit=1", MLFLOW_TRACKING_URI=address)
        assert done.code == 0 and "MLflow is behind" in done.output, done.output
    assert place.hits() == []


def test_workers_of_a_ray_of_our_own_are_sent_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKBONE_KEY", "something")
    sections = [{"api_key_env": "BACKBONE_KEY"}]
    assert secrets_to_send(ClusterSettings(), sections) == {}
    assert secrets_to_send(ClusterSettings(address="auto"), sections) == {"BACKBONE_KEY": "something"}


@pytest.mark.parametrize("form", forms("any"))
def test_the_search_finds_a_key_in_every_form_and_every_kind_of_file(tmp_path: Path, form: str) -> None:
    said = f"it said: {forms(CANARIES['LLM_KEY'])[form]}; that was all".encode()
    page = b"<html><script>" + base64.b64encode(gzip.compress(said * 9)) + b"</script>"
    for name, content in {"plain.log": said, "packed.gz": gzip.compress(said), "page.html": page}.items():
        (tmp_path / name).write_bytes(content)
    database = sqlite3.connect(tmp_path / "store.db")
    database.execute("create table kept (value blob)")
    database.execute("insert into kept values (?)", (b"x" * 5000 + said,))
    database.execute("insert into kept values (?)", (gzip.compress(said),))
    database.commit()
    database.close()
    found = in_folders([tmp_path])
    assert {hit.split(":")[0].rsplit("/", 1)[1] for hit in found} == {"plain.log", "packed.gz", "page.html", "store.db"}
    assert all("LLM_KEY" in hit for hit in found)


def test_the_search_finds_a_piece_of_a_key_that_was_cut() -> None:
    assert in_content(CANARIES["LLM_KEY"][:24].encode())
    assert not in_content(canary("another").encode())


STARTS_ANOTHER = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", "import time; time.sleep(2)", os.environ["LLM_KEY"]])
"""


def test_the_watch_sees_a_key_among_the_arguments_of_a_child(tmp_path: Path) -> None:
    env = environment(tmp_path, LLM_KEY=CANARIES["LLM_KEY"])
    watched = watch_program([sys.executable, "-c", STARTS_ANOTHER], cwd=tmp_path, env=env)
    assert any(in_content(line.encode()) for line in watched.commands)
