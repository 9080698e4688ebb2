"""`skillarena run` on real games against a provider that misbehaves, and within a budget."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest
from command import cells, rows_of, run_command
from scripted_player import ALFWORLD, FAULTS, SCIENCEWORLD, Game, Player, against, games

from skillarena.orchestration.ledger import EpisodeRow

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

QUICK = ("backbone.timeout_s=1.5", "backbone.max_wait_s=0.5", "cluster.rollout_workers=2", "tracking.enabled=false")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def played(cache: Path) -> list[Game]:
    return games(cache)


@pytest.fixture(scope="module")
def faulty(
    cache: Path, played: list[Game], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Player, dict[str, EpisodeRow], subprocess.CompletedProcess[str]]:
    """Both benchmarks, one command each, against one provider; its rows by task."""
    folder = tmp_path_factory.mktemp("faulty")
    rows: dict[str, EpisodeRow] = {}
    with Player(played, FAULTS) as player:
        for benchmark in (ALFWORLD, SCIENCEWORLD):
            price = "backbone.price={prompt: 1.0, cached: 0.1, completion: 10.0}"
            done = run_command("run", *benchmark, *against(player), *QUICK, price, cache=cache, cwd=folder)
            assert done.returncode == 0, done.stderr
    for cell in cells(folder / "outputs"):
        rows |= {row.task_id: row for row in rows_of(cell)}
    return player, rows, done


def test_every_fault_was_met(
    faulty: tuple[Player, dict[str, EpisodeRow], subprocess.CompletedProcess[str]],
) -> None:
    player, _, _ = faulty
    met = Counter(fault for sent in player.sent.values() for fault in sent.faults)
    assert set(met) == set(FAULTS)
    assert min(met.values()) >= 3


def test_every_episode_ends_as_it_would_without_faults(
    faulty: tuple[Player, dict[str, EpisodeRow], subprocess.CompletedProcess[str]], played: list[Game]
) -> None:
    _, rows, _ = faulty
    assert {task: row.outcome for task, row in rows.items()} == {game.task_id: game.outcome for game in played}
    assert {game.outcome for game in played} == {"solved", "step_limit"}
    for row in rows.values():
        assert row.reward == (100 if row.outcome == "solved" else 0)
        assert (row.attempts, row.error) == (1, "")


def test_tokens_of_accepted_replies_are_those_the_provider_reported(
    faulty: tuple[Player, dict[str, EpisodeRow], subprocess.CompletedProcess[str]],
) -> None:
    player, rows, _ = faulty
    for task, row in rows.items():
        sent = player.sent[task]
        assert row.llm_turns == sent.replies
        assert row.prompt_tokens == sent.prompt_tokens
        assert row.cached_tokens == sent.cached_tokens
        assert row.completion_tokens == sent.completion_tokens
        assert row.reasoning_tokens == sent.reasoning_tokens
        assert row.tokens_estimated is ("no_usage" in sent.faults)


def test_tokens_of_discarded_replies_are_apart_and_complete(
    faulty: tuple[Player, dict[str, EpisodeRow], subprocess.CompletedProcess[str]],
) -> None:
    player, rows, _ = faulty
    assert {task: row.wasted_tokens for task, row in rows.items()} == {
        task: sent.wasted_tokens for task, sent in player.sent.items()
    }
    assert sum(row.wasted_tokens for row in rows.values()) > 1000


def test_cost_follows_from_the_tokens_and_stands_in_the_table(
    faulty: tuple[Player, dict[str, EpisodeRow], subprocess.CompletedProcess[str]],
) -> None:
    _, rows, done = faulty
    for row in rows.values():
        read = row.prompt_tokens - row.cached_tokens
        assert row.cost == pytest.approx((read + 0.1 * row.cached_tokens + 10 * row.completion_tokens) / 1e6)
    assert "cost" in done.stdout and "reasoning" in done.stdout


def test_a_run_stops_at_its_budget_and_the_same_command_goes_on(
    cache: Path, played: list[Game], tmp_path: Path
) -> None:
    cap = 16_000  # more than the longest episode takes, and little more than half of all
    counts: list[int] = []
    with Player(played, latency_s=0.1) as player:
        for _ in range(6):
            before = sum(sent.prompt_tokens + sent.completion_tokens for sent in player.sent.values())
            done = run_command(
                "run", *ALFWORLD, *against(player), *QUICK, f"run.max_tokens={cap}", cache=cache, cwd=tmp_path
            )
            spent = sum(sent.prompt_tokens + sent.completion_tokens for sent in player.sent.values()) - before
            assert spent <= cap + 16 * 500  # calls under way, and those of two reports' time
            (cell,) = cells(tmp_path / "outputs")
            counts.append(len(rows_of(cell)))
            if done.returncode == 0:
                break
            assert done.returncode == 3, done.stderr
            assert "run.max_tokens" in done.stderr and "same command" in done.stderr
            assert "attempt lost" not in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert len(counts) >= 2 and counts == sorted(set(counts)) and counts[-1] == 6
    alfworld = {game.task_id: game.outcome for game in played[:6]}
    assert {row.task_id: row.outcome for row in rows_of(cell)} == alfworld
    assert len((cell / "episodes.jsonl").read_text().splitlines()) == 6
    assert all(row.attempts == 1 for row in rows_of(cell))


def test_a_cap_in_money_without_a_price_is_refused_before_anything_is_called(
    cache: Path, played: list[Game], tmp_path: Path
) -> None:
    with Player(played) as player:
        done = run_command("run", *ALFWORLD, *against(player), "run.max_cost=1", cache=cache, cwd=tmp_path)
        assert done.returncode == 2
        assert "backbone.price is not known" in done.stderr
        assert not player.requests
    assert not (tmp_path / "outputs" / "cells").exists()
