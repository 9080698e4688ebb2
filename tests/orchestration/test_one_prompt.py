"""Every selection method talks to the agent with the same words; only the skill section is its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from stub_server import StubServer, completion
from test_agent import client

from skillarena.envs.interface import Task
from skillarena.orchestration.agent import run_episode
from skillarena.orchestration.agent_session import AgentSession, LocalSession
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.assembly import AssembledParts, build, build_selector, load_library
from skillarena.orchestration.cells import sections
from skillarena.orchestration.hydra_run import CONF_DIR, compose
from skillarena.orchestration.prompts import skill_section
from skillarena.selectors.interface import Selection
from skillarena.selectors.live import LearningSelector, LiveSelector
from skillarena.selectors.measure import measured

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

METHODS = sorted(path.stem for path in (CONF_DIR / "selector").glob("*.yaml"))
SENTENCES = ("Here is guidance", "Here are skills", "There is a library")


@dataclass
class Arena:
    """One task of a benchmark with its environment, and the models of all methods."""

    benchmark: Any
    env: Any
    task: Task
    parts: AssembledParts

    def first_prompt(self, method: str) -> tuple[list[dict[str, str]], Selection, AgentSession | None]:
        """The first messages that a model gets in an episode."""
        selector = build_selector(compose([f"selector={method}"]).selector, self.parts)
        if isinstance(selector, LearningSelector):
            selector = selector.with_memory(selector.initial_memory())
        selection = measured(selector, self.parts, self.task)
        session: AgentSession | None = None
        if isinstance(selector, LiveSelector):
            session = LocalSession(selector.attend(self.task, selection))
        with StubServer([], default=completion("Action: look around")) as stub:
            played = run_episode(
                self.task,
                self.env,
                self.benchmark,
                client(stub),
                selection,
                AgentSettings(max_turns=1, review_turns=0),
                episode_id="e",
                seed=0,
                session=session,
            )
            assert played.llm_turns == 1
            return stub.chats[0].body["messages"], selection, session


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AssembledParts]:
    with StubServer([], default=completion("A")) as asked:
        llm = ("llm=openai_compatible", "llm.model=stub-model", f"llm.base_url={asked.url}", "llm.api_key_env=null")
        settings = compose(llm)
        yield AssembledParts(sections(settings), load_library(settings.library), tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module", params=["alfworld", "scienceworld"])
def arena(
    request: pytest.FixtureRequest, parts: AssembledParts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Arena]:
    section = compose([f"benchmark={request.param}", "benchmark.limit=1"]).benchmark
    benchmark = build(section, "benchmark", cache_dir=str(tmp_path_factory.mktemp("games")))
    env = benchmark.make_env()
    yield Arena(benchmark, env, benchmark.tasks()[0], parts)
    env.close()


@pytest.fixture(scope="module")
def bare(arena: Arena) -> list[dict[str, str]]:
    """The prompt without any skill."""
    messages, _, _ = arena.first_prompt("none")
    assert not any(sentence in message["content"] for message in messages for sentence in SENTENCES)
    return messages


@pytest.mark.parametrize("method", METHODS)
def test_only_the_skill_section_is_a_methods_own(arena: Arena, bare: list[dict[str, str]], method: str) -> None:
    system, user = bare
    (own_system, own_user), selection, session = arena.first_prompt(method)
    assert own_system == system
    assert own_user["content"].endswith(user["content"])
    section = own_user["content"].removesuffix(user["content"])
    tools = session.info.tools if session is not None else ()
    assert section == skill_section(selection.skills, selection.guidance, tools)
    shown = (bool(selection.guidance), bool(selection.skills), bool(tools))
    assert tuple(sentence in section for sentence in SENTENCES) == shown
