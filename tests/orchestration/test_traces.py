"""An episode's spans: in order of time, as long as the ledger says, with the tokens of the ledger."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_cells import make_cell

from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.prices import Price
from skillarena.orchestration.ledger import EpisodeRow, read_rows, read_trajectories
from skillarena.orchestration.traces import EpisodeSpan, episode_spans
from skillarena.orchestration.trajectory import Trajectory, Turn

Episode = tuple[Trajectory, EpisodeRow]


@pytest.fixture
def episode(tmp_path: Path) -> Episode:
    cell = make_cell(tmp_path, rewards=(100.0,), steps=3, tokens=999)
    (row,) = read_rows(cell).rows
    return Trajectory.from_dict(next(read_trajectories(cell))), row


def _named(spans: list[EpisodeSpan], beginning: str) -> list[EpisodeSpan]:
    return [span for span in spans if span.name.startswith(beginning)]


def _with_turn(episode: Episode, **changes: object) -> Episode:
    trajectory, row = episode
    turn: Turn = replace(trajectory.turns[0], **changes)  # type: ignore[arg-type]
    return replace(trajectory, turns=(turn, *trajectory.turns[1:])), row


def test_every_call_and_every_step_is_a_span(episode: Episode) -> None:
    spans = episode_spans(*episode, None)
    assert [span.name for span in spans] == [
        "pick_and_place_simple/0",
        "selection",
        "reset",
        *("model 1", "environment 1", "model 2", "environment 2", "model 3", "environment 3"),
    ]
    assert [span.outputs for span in _named(spans, "environment")] == [turn.observation for turn in episode[0].turns]
    assert _named(spans, "environment")[0].inputs == episode[0].turns[0].action
    assert _named(spans, "model")[0].outputs["choices"][0]["message"]["content"] == episode[0].turns[0].reply


def test_parts_lie_end_to_end_before_the_time_at_which_the_episode_was_over(episode: Episode) -> None:
    trajectory, row = episode
    whole, selection, reset, *turns = episode_spans(trajectory, row, None)
    second = 1_000_000_000
    assert whole.end_ns == int(row.finished_at * second)
    assert reset.start_ns == selection.end_ns == whole.end_ns - int(trajectory.seconds * second)
    assert selection.end_ns - selection.start_ns == int(row.selection_seconds * second)
    assert whole.start_ns == selection.start_ns
    for earlier, later in zip([reset, *turns], turns, strict=False):
        assert earlier.end_ns == later.start_ns
    assert turns[-1].end_ns <= whole.end_ns
    assert turns[0].end_ns - turns[0].start_ns == int(trajectory.turns[0].llm_seconds * second)


def test_a_selection_that_was_known_takes_no_time(episode: Episode) -> None:
    trajectory, row = episode
    selection = episode_spans(trajectory, replace(row, selection_reused=True), None)[1]
    assert selection.start_ns == selection.end_ns
    assert selection.attributes["reused"] is True
    assert selection.attributes["seconds"] == row.selection_seconds


def test_the_tokens_of_all_calls_are_those_of_the_ledger(episode: Episode) -> None:
    spans = episode_spans(*episode, None)
    usages = [span.attributes["mlflow.chat.tokenUsage"] for span in _named(spans, "model")]
    assert sum(usage["total_tokens"] for usage in usages) == episode[1].total_tokens == 999
    assert sum(usage["input_tokens"] for usage in usages) == episode[1].prompt_tokens


def test_money_and_the_models_name_are_given_where_the_price_is_known(episode: Episode) -> None:
    trajectory, row = _with_turn(episode, usage=Usage(1_000_000, 200_000, 100_000))
    unpriced, priced = (
        _named(episode_spans(trajectory, row, price), "model 1")[0].attributes
        for price in (None, Price(2.0, 0.5, 10.0))
    )
    assert not {"mlflow.llm.cost", "mlflow.llm.model"} & unpriced.keys()
    assert priced["mlflow.llm.cost"] == pytest.approx({"input_cost": 1.7, "output_cost": 1.0, "total_cost": 2.7})
    assert priced["mlflow.llm.model"] == "simulated"


def test_the_next_call_hears_what_came_of_the_last_one(episode: Episode) -> None:
    first, second, *_ = _named(episode_spans(*episode, None), "model")
    (message,) = first.inputs["messages"]
    assert episode[0].goal in message["content"]
    assert episode[0].first_observation in message["content"]
    (message,) = second.inputs["messages"]
    assert message["content"] == f"Observation: {episode[0].turns[0].observation}"


def test_a_tool_call_is_a_span_in_place_of_a_step(episode: Episode) -> None:
    called = _with_turn(episode, action=None, tool='search {"query": "x"}', tool_seconds=0.5, skills_read=("set/new",))
    span = episode_spans(*called, None)[4]
    assert (span.name, span.kind, span.inputs) == ("tool 1", "TOOL", 'search {"query": "x"}')
    assert span.end_ns - span.start_ns == 500_000_000
    assert span.attributes["skills_read"] == ["set/new"]
    assert not span.refused


def test_advice_follows_the_step_it_was_given_after(episode: Episode) -> None:
    advised = _with_turn(episode, advice="Use the microwave.", tool_seconds=0.25)
    step, advice, model = episode_spans(*advised, None)[4:7]
    assert (step.name, advice.name, model.name) == ("environment 1", "advice 1", "model 2")
    assert advice.outputs[0]["page_content"] == "Use the microwave."
    assert "Use the microwave." in model.inputs["messages"][0]["content"]


def test_what_was_refused_is_marked(episode: Episode) -> None:
    spans = episode_spans(*_with_turn(episode, valid=False), None)
    assert [span.name for span in spans if span.refused] == ["environment 1"]


def test_a_reply_without_a_command_is_a_call_alone(episode: Episode) -> None:
    spans = episode_spans(*_with_turn(episode, action=None, valid=False), None)
    assert [span.name for span in spans[3:6]] == ["model 1", "model 2", "environment 2"]
