"""Tools, advice and the review after the end, with the network as the only thing that is not real."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from diary import DiarySession
from stub_server import Scripted, StubServer, completion
from test_agent import CORRIDOR, NONE, ScoredBenchmark, client, says

from skillarena.envs.interface import EndReason
from skillarena.orchestration.agent import fires, run_episode
from skillarena.orchestration.agent_session import LocalSession
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.trajectory import Trajectory, Turn, record_of
from skillarena.selectors.interface import Skill
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import Trigger

SCORED = ScoredBenchmark()


class Parts:
    library = SkillLibrary((Skill("walk", "walker", "Walks.", "Say `go right`."), Skill("rest", "rester", "", "Rest.")))


def tool(name: str, arguments: Any = None) -> Scripted:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return completion(f"Thought: let me look\nTool: {name} {written}")


@dataclasses.dataclass
class Play:
    trajectory: Trajectory
    notes: list[str]
    prompts: list[list[dict[str, str]]]


def play(
    benchmark: Any, *replies: Scripted, trigger: Trigger | None = None, with_tools: bool = True, **settings: Any
) -> Play:
    task = benchmark.tasks()[-1]
    session = DiarySession(Parts, task, NONE, 0, "")
    session.trigger = trigger  # type: ignore[assignment]
    with StubServer(replies) as stub:
        trajectory = run_episode(
            task,
            benchmark.make_env(),
            benchmark,
            client(stub),
            NONE,
            AgentSettings(**settings),
            episode_id="e1",
            seed=0,
            session=LocalSession(session) if with_tools else None,
        )
    return Play(trajectory, session.notes, [request.body["messages"] for request in stub.chats])


def test_a_tool_call_makes_no_step_and_its_answer_is_the_next_message() -> None:
    replies = [tool("search", {"query": "walking"}), *says(*["gain"] * 4), completion("Nothing.")]
    played = play(SCORED, *replies)
    first = played.trajectory.turns[0]
    assert (first.tool, first.action, first.valid) == ('search {"query": "walking"}', None, True)
    assert (played.trajectory.env_steps, played.trajectory.skill_lookups, played.trajectory.invalid_actions) == (
        4,
        1,
        0,
    )
    assert played.trajectory.won
    said, heard = played.prompts[1][-2:]
    assert said["content"] == 'Thought: let me look\nTool: search {"query": "walking"}'
    assert heard["content"].startswith('Tool answer: {"ok": true')


def test_the_prompt_lists_the_tools_in_the_skill_section_only() -> None:
    played = play(SCORED, *says(*["gain"] * 4), completion("Nothing."))
    system, user = played.prompts[0]
    assert "search" not in system["content"]
    assert 'Tool: show {"skill_id": "a skill"}' in user["content"]


def test_a_skill_that_was_shown_counts_as_read() -> None:
    replies = [tool("show", {"skill_id": "walk"}), tool("show", {"skill_id": "walk"}), *says(*["gain"] * 4)]
    played = play(SCORED, *replies, completion("Nothing."))
    assert played.trajectory.skills_read == ("walk",)
    assert record_of(played.trajectory).skills == ("walk",)
    assert Trajectory.from_dict(played.trajectory.to_dict()) == played.trajectory


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (tool("find"), "UNKNOWN_TOOL"),
        (tool("search", "{broken"), "INVALID_JSON"),
        (tool("search", '{"query": "' + "x" * 9000 + '"}'), "INVALID_JSON"),
        (tool("search", '{"query": ' + "[" * 950 + "]" * 950 + "}"), "INVALID_JSON"),
        (tool("search", '{"query": "half a character \\ud800"}'), "ok"),
        (tool("search", "[" * 5000), "ok"),  # no object at all counts as no arguments
    ],
)
def test_a_call_that_makes_no_sense_is_answered(call: Scripted, code: str) -> None:
    played = play(SCORED, call, *says(*["gain"] * 4), completion("Nothing."))
    assert code in played.trajectory.turns[0].observation
    assert played.trajectory.turns[0].valid == (code == "ok")
    assert played.trajectory.invalid_actions == 0
    assert played.trajectory.won


def test_lookups_are_free_or_cost_turns_as_the_settings_say() -> None:
    replies = [tool("search")] * 3
    free = play(SCORED, *replies, *says(*["gain"] * 4), completion("Nothing."), max_turns=4)
    assert (free.trajectory.outcome, free.trajectory.env_steps, free.trajectory.llm_turns) == (EndReason.SOLVED, 4, 8)
    costly = play(SCORED, *replies, *says("gain"), completion("Nothing."), max_turns=4, skill_calls_cost_turns=True)
    assert (costly.trajectory.outcome, costly.trajectory.env_steps, costly.trajectory.skill_lookups) == (
        EndReason.STEP_LIMIT,
        1,
        3,
    )


def test_a_model_that_only_looks_up_comes_to_an_end() -> None:
    played = play(SCORED, *[tool("search")] * 5, max_turns=3, max_skill_calls=2, review_turns=0)
    assert played.trajectory.outcome is EndReason.STEP_LIMIT
    assert [turn.valid for turn in played.trajectory.turns] == [True, True, False, False, False]
    assert "NO_CALLS_LEFT" in played.trajectory.turns[2].observation


def test_a_command_before_a_tool_call_is_played() -> None:
    both = completion("Thought: first\nAction: gain\nTool: search {}")
    played = play(SCORED, both, *says(*["gain"] * 3), completion("Nothing."))
    assert played.trajectory.turns[0].action == "gain"
    assert played.trajectory.skill_lookups == 0


def test_without_a_session_a_tool_line_is_no_call() -> None:
    played = play(SCORED, tool("search"), *says(*["gain"] * 4), with_tools=False)
    assert played.trajectory.skill_lookups == 0
    assert played.trajectory.invalid_actions == 1


def test_after_the_end_tools_may_be_called_and_commands_are_not_played() -> None:
    played = play(SCORED, *says(*["gain"] * 4), tool("write", {"note": "gaining works"}), *says("gain"))
    assert played.notes == ["gaining works"]
    assert played.trajectory.env_steps == 4
    assert played.trajectory.turns[-1].action is None
    assert played.trajectory.invalid_actions == 0
    assert played.prompts[4][-1]["content"].endswith("What is worth a note?")


def test_the_review_can_be_left_out() -> None:
    played = play(SCORED, *says(*["gain"] * 4), review_turns=0)
    assert played.trajectory.llm_turns == 4


def test_advice_comes_once_behind_the_answer_that_made_it_due() -> None:
    trigger = Trigger(stale_steps=2, invalid_in_a_row=9)
    replies = says("gain", "wait", "wait", "wait", "wait", "gain")
    played = play(SCORED, *replies, trigger=trigger, review_turns=0)
    assert [bool(turn.advice) for turn in played.trajectory.turns] == [False, False, True, False, False, False]
    heard = played.prompts[3][-1]["content"]
    assert heard.startswith("Observation: wait")
    assert "3 commands so far" in heard


def turn(action: str | None, score: float, *, valid: bool = True, tool: str = "") -> Turn:
    return Turn("", "", action, False, valid, "", score, Usage(), "stop", 0.0, 0.0, tool=tool)


@pytest.mark.parametrize(
    ("turns", "due"),
    [
        ([turn("a", 0), turn("b", 0)], False),
        ([turn("a", 0), turn("b", 0), turn("c", 0)], True),
        ([turn("a", 1), turn("b", 1), turn("c", 1)], False),  # the first one changed the score
        ([turn("a", 1), turn("b", 1), turn("c", 1), turn("d", 1)], True),
        ([turn("a", 0), turn("b", 0), turn("c", 5)], False),
        ([turn(None, 0, valid=False), turn("x", 0, valid=False)], True),
        ([turn(None, 0, valid=False), turn("x", 0), turn(None, 0, valid=False)], False),
        ([turn("a", 0), turn("b", 0), turn("c", 0), turn(None, 0, tool="search")], False),  # asked for by itself
        ([], False),
    ],
)
def test_the_trigger_fires_after_stale_steps_or_invalid_replies_in_a_row(turns: list[Turn], due: bool) -> None:
    assert fires(Trigger(stale_steps=3, invalid_in_a_row=2), turns) == due


def test_an_episode_without_tool_calls_is_the_same_with_tools_and_without() -> None:
    env, task = CORRIDOR.make_env(), CORRIDOR.tasks()[-1]
    env.reset(task)
    plan = env.plan()
    with_tools = play(CORRIDOR, *says(*plan), review_turns=0).trajectory
    plain = play(CORRIDOR, *says(*plan), with_tools=False).trajectory
    assert [dataclasses.replace(turn, llm_seconds=0, env_seconds=0) for turn in with_tools.turns] == [
        dataclasses.replace(turn, llm_seconds=0, env_seconds=0) for turn in plain.turns
    ]
