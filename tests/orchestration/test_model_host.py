"""A model process merges what waits, keeps callers' faults apart, and can be lost without losing the run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from skillarena.conf.errors import ConfigError, ModelHostLost, RerankerError
from skillarena.envs.interface import Task
from skillarena.orchestration.assembly import AssembledParts, is_hosted
from skillarena.orchestration.serving.model_host import Batcher, ModelHost
from skillarena.orchestration.serving.remote_models import RemoteEmbedder, RemoteReranker
from skillarena.selectors.interface import Embedder, FixedSession, Reranker, SelectedSkill, Selection, Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.measure import measured

MINILM = {"_target_": "skillarena.selectors.embedders.SentenceTransformerEmbedder", "model": "minilm", "device": "cpu"}
SIMILARITY = {"_target_": "skillarena.selectors.rerankers.SimilarityReranker", "scale": 25.0, "threshold": 0.3}
LENGTHS = {"_target_": "test_model_host.Lengths"}


class Lengths:
    """Scores by lengths; some words in a query make it fail, and its loading can be slow."""

    def __init__(self, load_s: float = 0.0, broken: bool = False) -> None:
        self.identity = "lengths"
        self.loads = 0
        self._load_s = load_s
        self._broken = broken
        self._loaded = False

    def score(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        if not self._loaded:
            self.loads += 1
            time.sleep(self._load_s)
            if self._broken:
                raise RerankerError("no such weights")
            self._loaded = True
        for query, _ in pairs:
            if query == "bad":
                raise RerankerError("cannot read 'bad'")
            if query == "die":
                os._exit(1)
        return np.array([10 * len(query) - len(document) for query, document in pairs], dtype=np.float32)


class Gate:
    """A model that is kept busy until it is told to go on."""

    def __init__(self) -> None:
        self.busy = threading.Event()
        self.go_on = threading.Event()
        self.calls: list[list[Any]] = []

    def run(self, kind: str, items: list[Any]) -> NDArray[np.float32]:
        self.busy.set()
        assert self.go_on.wait(20)
        self.calls.append(items)
        if "bad" in items:
            raise RerankerError("bad item")
        return np.array([[float(item), 1.0] for item in items], dtype=np.float32)


def ask_while_busy(gate: Gate, batcher: Batcher, requests: list[tuple[str, list[str]]]) -> list[Any]:
    """What comes back for requests that all arrive while the model works on another one."""

    def ask(request: tuple[str, list[str]]) -> Any:
        try:
            return batcher.ask(*request)
        except RerankerError as error:
            return error

    with ThreadPoolExecutor(len(requests) + 1) as pool:
        first = pool.submit(batcher.ask, "query", ["0"])
        assert gate.busy.wait(20)
        answers = [pool.submit(ask, request) for request in requests]
        deadline = time.monotonic() + 20
        while batcher._waiting.qsize() < len(requests) and time.monotonic() < deadline:
            time.sleep(0.001)
        gate.go_on.set()
        first.result(20)
        return [answer.result(20) for answer in answers]


def test_requests_that_wait_together_become_one_batch_of_distinct_items() -> None:
    gate = Gate()
    batcher = Batcher(gate.run)
    one, other, none = ask_while_busy(gate, batcher, [("query", ["1", "2", "1"]), ("query", ["3", "2"]), ("query", [])])
    assert one.tolist() == [[1, 1], [2, 1], [1, 1]]
    assert other.tolist() == [[3, 1], [2, 1]]
    assert none.shape == (0, 2)
    assert gate.calls == [["0"], ["1", "2", "3"]]
    assert (batcher.done.requests, batcher.done.batches, batcher.done.items) == (3, 2, 4)
    assert batcher.done.seconds > 0


def test_kinds_are_not_mixed() -> None:
    gate = Gate()
    batcher = Batcher(gate.run)
    ask_while_busy(gate, batcher, [("query", ["1"]), ("document", ["1"]), ("query", ["2"])])
    assert sorted(gate.calls) == [["0"], ["1"], ["1", "2"]]


def test_a_fault_goes_to_whoever_asked_for_it() -> None:
    gate = Gate()
    batcher = Batcher(gate.run)
    good, bad, other = ask_while_busy(gate, batcher, [("query", ["1"]), ("query", ["bad"]), ("query", ["2"])])
    assert isinstance(bad, RerankerError)
    assert (good.tolist(), other.tolist()) == ([[1, 1]], [[2, 1]])
    assert batcher.ask("query", ["7"]).tolist() == [[7, 1]]


def test_a_batch_has_an_upper_size() -> None:
    gate = Gate()
    items = [str(number) for number in range(9000)]
    answers = ask_while_busy(gate, Batcher(gate.run), [("query", items[n : n + 3000]) for n in (0, 3000, 6000)])
    assert [len(answer) for answer in answers] == [3000] * 3
    assert [len(call) for call in gate.calls] == [1, 6000, 3000]


def test_a_model_that_gives_too_few_rows_is_refused() -> None:
    batcher = Batcher(lambda kind, items: np.zeros((1, 2), dtype=np.float32))
    with pytest.raises(RerankerError, match="1 rows for 2 query"):
        batcher.ask("query", ["a", "b"])


def test_a_host_gives_what_its_model_gives() -> None:
    host = ModelHost("reranker", LENGTHS)
    assert host.identity() == "lengths"
    pairs = [("ab", "c"), ("a", "cd"), ("ab", "c")]
    assert (host.score(pairs) == Lengths().score(pairs)).all()
    assert host.score([]).shape == (0,)
    assert (host.load().requests, host.load().batches, host.load().items) == (1, 1, 2)


def test_a_host_knows_the_secrets_that_its_section_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_MODEL_KEY", "before")
    ModelHost("reranker", LENGTHS, {"TEST_MODEL_KEY": "after"})
    assert os.environ["TEST_MODEL_KEY"] == "after"


def test_loading_that_fails_for_good_is_tried_once_however_many_wait() -> None:
    host = ModelHost("reranker", {**LENGTHS, "broken": True, "load_s": 0.05})

    def fails(_: int) -> bool:
        with pytest.raises(RerankerError, match="no such weights"):
            host.score([("a", "b")])
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fails, range(8)))
    assert host._built().loads == 1


def test_a_wrong_section_is_an_error_of_the_calls() -> None:
    with pytest.raises(ConfigError, match="takes no such option"):
        ModelHost("reranker", {**LENGTHS, "lengths": 1}).identity()
    with pytest.raises(RerankerError, match="Lengths encodes no texts"):
        ModelHost("embedder", LENGTHS).encode(["a"], "query")


def test_what_is_built_from_an_embedder_stays_where_it_is_used() -> None:
    assert is_hosted(MINILM, "embedder")
    assert is_hosted(LENGTHS, "reranker")
    assert not is_hosted(SIMILARITY, "reranker")


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., Any]]:
    import ray

    here = str(Path(__file__).parent)
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)

    def start_host(*arguments: Any) -> Any:
        env = {"PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]), "OMP_NUM_THREADS": "1"}
        options = {"max_concurrency": 64, "max_restarts": 1, "runtime_env": {"env_vars": env}}
        return ray.remote(ModelHost).options(**options).remote(*arguments)

    yield start_host
    ray.shutdown()


@pytest.mark.slow
def test_many_callers_share_batches_and_get_what_the_model_gives_alone(start: Callable[..., Any]) -> None:
    import ray

    from skillarena.selectors.embedders import SentenceTransformerEmbedder

    host = start("embedder", MINILM)
    embedder = RemoteEmbedder(host, "embedder")
    direct = SentenceTransformerEmbedder(model="minilm", device="cpu")
    assert isinstance(embedder, Embedder)
    assert embedder.identity == direct.identity
    texts = [[f"put the {thing} on shelf {n}" for thing in ("mug", "book", "lamp")] for n in range(16)]
    embedder.encode([], "document")  # loads
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda some: embedder.encode(some, "document"), texts))
    for some, rows in zip(texts, answers, strict=True):
        np.testing.assert_allclose(rows, direct.encode(some, "document"), atol=1e-5)
    load = ray.get(host.load.remote(), timeout=60)
    assert (load.requests, load.items) == (16, 48)
    assert load.batches < 16


@pytest.mark.slow
def test_a_callers_fault_leaves_the_others_alone_and_keeps_its_type(start: Callable[..., Any]) -> None:
    reranker = RemoteReranker(start("reranker", LENGTHS), "reranker")
    assert isinstance(reranker, Reranker)

    def ask(query: str) -> Any:
        try:
            return float(reranker.score([(query, "xx")])[0])
        except RerankerError as error:
            return error.message

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, ["a", "bad", "ab", "bad", "abc", ""])) == [
            8.0,
            "cannot read 'bad'",
            18.0,
            "cannot read 'bad'",
            28.0,
            -2.0,
        ]
    assert reranker.score([]).shape == (0,)


@pytest.mark.slow
def test_a_lost_process_is_an_error_that_trying_again_mends(start: Callable[..., Any]) -> None:
    reranker = RemoteReranker(start("reranker", LENGTHS), "reranker")
    with pytest.raises(ModelHostLost, match="the reranker process died"):
        reranker.score([("die", "")])
    deadline = time.monotonic() + 60
    while True:
        try:
            assert reranker.score([("a", "")]).tolist() == [10.0]
            break
        except ModelHostLost:  # not back yet
            assert time.monotonic() < deadline
            time.sleep(0.2)


class First:
    """Chooses the first skill after one score."""

    def __init__(self, parts: Any) -> None:
        self._parts = parts

    def open(self, task: Task) -> FixedSession:
        skill = self._parts.library.skills[0]
        score = float(self._parts.reranker.score([(task.goal, skill.text)])[0])
        chosen = SelectedSkill(skill.id, skill.name, skill.description, skill.text, score, "")
        return FixedSession(Selection((chosen,)))


@pytest.mark.slow
def test_starting_and_loading_are_on_no_selections_clock(start: Callable[..., Any], tmp_path: Path) -> None:
    library = SkillLibrary((Skill("boil-water", "boil-water", "Boils water.", "Use the stove."),))
    hosts = {"reranker": start("reranker", {**LENGTHS, "load_s": 3.0})}
    parts = AssembledParts({"reranker": LENGTHS}, library, tmp_path, hosts)
    started = time.perf_counter()
    selection = measured(First(parts), parts, Task("b", "s", "id", "type", "group", "boil water"))
    assert time.perf_counter() - started > 3
    assert selection.cost.seconds < 1.5
    assert selection.cost.pairs_scored == 1
