"""`skillarena library parse`: nothing is spent before it is agreed to, and nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from library_files import read_json
from stub_server import StubServer, completion

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.library_command.parse import parse


def llm_parser(server: StubServer, tmp_path: Path, *more: str) -> list[str]:
    return [
        "parser=llm",
        "parser.model.model=stub-model",
        f"parser.model.base_url={server.url}",
        "parser.model.api_key_env=null",
        "parser.model.price={prompt: 1.0, cached: 0.1, completion: 2.0}",
        f"cache_dir={tmp_path / 'cache'}",
        *more,
    ]


ANSWER = completion(
    "Precondition_State: None\nCompletion_State: It is done.", usage={"prompt_tokens": 100, "completion_tokens": 10}
)


def test_no_call_is_made_before_its_price_was_agreed_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with StubServer(default=ANSWER) as server:
        overrides = llm_parser(server, tmp_path)
        assert parse(overrides, None, yes=False, as_json=False) == 1
        said = capsys.readouterr().out
        assert server.requests == []
        assert "91 LLM calls of stub-model" in said
        assert "--yes" in said
        assert parse(overrides, None, yes=True, as_json=True) == 0
        done = read_json(capsys)
        assert done["done"]["llm_calls"] == 91
        assert done["done"]["prompt_tokens"] == 9100
        use = done["parsing"]["use"]
        assert done["parsing"]["cost"] == pytest.approx((use["prompt"] + 2 * use["completion"]) / 1e6, rel=1e-3)
        asked = len(server.chats)
        assert parse(overrides, None, yes=False, as_json=True) == 0
        assert read_json(capsys)["to_parse"] == 0
        assert len(server.chats) == asked


def test_what_was_parsed_before_a_failure_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from stub_server import failure

    from skillarena.conf.errors import BackboneError

    quick = ("+parser.model.max_retries=0", "parser.model.max_concurrency=1")
    with StubServer([ANSWER] * 31, default=failure(500)) as server:
        with pytest.raises(BackboneError):
            parse(llm_parser(server, tmp_path, *quick), None, yes=True, as_json=False)
        capsys.readouterr()
        assert parse(llm_parser(server, tmp_path, *quick), None, yes=False, as_json=True) == 1
        assert read_json(capsys)["to_parse"] == 91 - 31


def test_a_budget_of_the_run_holds_for_parsing_too(tmp_path: Path) -> None:
    with StubServer(default=ANSWER) as server:
        for cap in ("run.max_cost=0.001", "run.max_tokens=1000"):
            with pytest.raises(ConfigError, match=cap.split("=")[0]):
                parse(llm_parser(server, tmp_path, cap), None, yes=True, as_json=False)
        assert server.requests == []


def test_parsing_without_a_model_needs_no_agreement_and_shows_what_a_graph_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    overrides = [f"cache_dir={tmp_path}", "selector=graph_of_skills_llm", "llm=deepseek_v4_flash"]
    assert parse(overrides, None, yes=False, as_json=True) == 0
    done = read_json(capsys)
    assert done["done"]["parsed"] == done["to_parse"] == 91
    assert done["indexing"]["use"]["calls"] == 362
    assert done["indexing"]["cost"] > 0
