"""A real model on a real server ranks real skills that do not fit into its context."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from real_libraries import HashedWords, public_skills
from selector_contract import HOT_MUG, ScoredParts, task

from skillarena.conf.errors import ContextOverflow
from skillarena.orchestration.backbones.openai_compatible import OpenAICompatible
from skillarena.orchestration.backbones.smollm2 import converted
from skillarena.orchestration.serving.vllm_process import ServerProcess
from skillarena.orchestration.serving.vllm_spec import ServerSpec
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.llm_selector import LlmSelector
from skillarena.selectors.measure import measured

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

START_S = 600
CONTEXT = 2048
ANSWER = 96
KEY = "LLM_SELECTOR_TEST_KEY"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenAICompatible]:
    folder = converted()
    spec = ServerSpec(
        model=str(folder),
        served_name="smollm2",
        device="cpu",
        num_cpus=1,
        dtype="float32",
        max_model_len=CONTEXT,
        kv_cache_gib=1,
    )
    log = tmp_path_factory.mktemp("server") / "log"
    server = ServerProcess(spec, location=str(folder), host="127.0.0.1", key=KEY, log=log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(KEY, KEY)
        try:
            server.start(START_S)
            yield OpenAICompatible(base_url=server.url, model="smollm2", api_key_env=KEY, max_tokens=ANSWER)
        finally:
            server.stop()


def test_bodies_are_trimmed_until_the_server_takes_the_prompt(model: OpenAICompatible, tmp_path: Path) -> None:
    parts = ScoredParts(public_skills("alfworld"), HashedWords(), HeuristicParser(), tmp_path, model)
    selection = measured(LlmSelector(parts, k=6, top_k=2), parts, task(HOT_MUG))
    details, cost = selection.details, selection.cost
    print(f"\n{selection.marks} {details['body_chars']} characters a body, named {details['named']}, {cost}")
    print(details["problems"])
    assert "bodies_trimmed" in selection.marks
    assert details["body_chars"] > 100
    assert sorted(details["ranking"]) == sorted(row["id"] for row in details["candidates"])
    assert cost.llm_calls == details["answers"]
    longest = CONTEXT - ANSWER
    assert 0.6 * longest * cost.llm_calls < cost.prompt_tokens <= longest * cost.llm_calls
    assert 0 < cost.completion_tokens <= ANSWER * cost.llm_calls


def test_names_that_do_not_fit_are_an_error_about_k(model: OpenAICompatible, tmp_path: Path) -> None:
    parts = ScoredParts(public_skills("alfworld"), HashedWords(), HeuristicParser(), tmp_path, model)
    with pytest.raises(ContextOverflow, match="names and descriptions of 37 skills alone"):
        LlmSelector(parts, k=37).open(task(HOT_MUG))
