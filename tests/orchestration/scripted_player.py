"""A stub provider that plays real games to a known end, and does what providers do wrong on a schedule."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle
from pathlib import Path

from stub_server import Recorded, Scripted, StubServer, completion, cut_short, failure

from skillarena.envs.alfworld import AlfworldBenchmark
from skillarena.envs.interface import Benchmark
from skillarena.envs.scienceworld import ScienceWorldBenchmark
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens

ALFWORLD = ("benchmark=alfworld", "benchmark.split=generated_seen", "benchmark.limit=6")
SCIENCEWORLD = ("benchmark=scienceworld", "benchmark.task_types=[find-plant]", "benchmark.limit=1")
LOSES = "pick_two_obj_and_place"
"""In tasks of this type the player looks around until its steps are used up."""
MAX_STEPS = 30


@dataclass(frozen=True)
class Game:
    """A task, how it begins, and what the player does in it."""

    task_id: str
    opening: str
    """What only this task's first prompt contains."""
    actions: tuple[str, ...]
    outcome: str


def games(cache: Path) -> list[Game]:
    """The games that ``ALFWORLD`` and ``SCIENCEWORLD`` choose, with a way to play each."""
    benchmarks: list[Benchmark] = [
        AlfworldBenchmark(split="generated_seen", limit=6, cache_dir=str(cache)),
        ScienceWorldBenchmark(task_types=["find-plant"], limit=1, cache_dir=str(cache)),
    ]
    return [game for benchmark in benchmarks for game in _games_of(benchmark)]


def _games_of(benchmark: Benchmark) -> Iterator[Game]:
    env = benchmark.make_env()
    try:
        for task in benchmark.tasks():
            opening = f"Task: {task.goal}\n\nObservation: {env.reset(task).text.strip()}"
            plan = tuple(env.plan())
            assert 0 < len(plan) <= MAX_STEPS
            loses = task.task_type == LOSES
            actions = ("look",) * MAX_STEPS if loses else plan
            yield Game(task.id, opening, actions, "step_limit" if loses else "solved")
    finally:
        env.close()


@dataclass
class Sent:
    """What the player has sent for one game."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    wasted_tokens: int = 0
    """Of replies that cannot be used, as reported, else by the rule for replies without usage."""
    replies: int = 0
    """Usable ones."""
    faults: list[str] = field(default_factory=list)


class Player(StubServer):
    """Answers with the next action of the game that the prompt belongs to; every second answer is one of ``faults``.

    Args:
        games: what is played.
        faults: names of methods of this class without ``send_``, used in turn; empty: no faults.
        latency_s: seconds that an answer takes.
        slow_s: seconds that a slow answer takes.
    """

    def __init__(
        self, games: Sequence[Game], faults: Sequence[str] = (), latency_s: float = 0.0, slow_s: float = 3.0
    ) -> None:
        super().__init__()
        self.sent: dict[str, Sent] = defaultdict(Sent)
        self._games = games
        self._faults = cycle(faults) if faults else None
        self._latency_s = latency_s
        self._slow_s = slow_s
        self._asked = 0

    def respond(self, request: Recorded) -> Scripted:
        """The next action, or the next fault."""
        if request.path != "/v1/chat/completions":
            return super().respond(request)
        messages = request.body["messages"]
        game = next(game for game in self._games if game.opening in messages[1]["content"])
        action = game.actions[sum(message["role"] == "assistant" for message in messages)]
        with self._lock:
            self._asked += 1
            sent = self.sent[game.task_id]
            usage = {
                "prompt_tokens": 400 + self._asked,
                "completion_tokens": 20 + self._asked % 7,
                "prompt_tokens_details": {"cached_tokens": 300 + self._asked % 11},
                "completion_tokens_details": {"reasoning_tokens": self._asked % 5},
            }
            good = completion(f"Thought: On with it.\nAction: {action}", usage=usage, delay_s=self._latency_s)
            if self._faults is None or self._asked % 2:
                return self._accept(good, usage, sent)
            fault = next(self._faults)
            sent.faults.append(fault)
            answer: Scripted = getattr(self, f"send_{fault}")(good, messages, sent)
            return answer

    def _accept(self, good: Scripted, usage: Mapping[str, object], sent: Sent) -> Scripted:
        plain = json.loads(json.dumps(usage))
        sent.prompt_tokens += plain["prompt_tokens"]
        sent.completion_tokens += plain["completion_tokens"]
        sent.cached_tokens += plain["prompt_tokens_details"]["cached_tokens"]
        sent.reasoning_tokens += plain["completion_tokens_details"]["reasoning_tokens"]
        sent.replies += 1
        return good

    def send_busy_until_later(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        return failure(429, "slow down", headers={"Retry-After": "0.3"})

    def send_busy(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        return failure(429, "slow down")

    def send_error(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        return failure(500, "something broke")

    def send_too_late(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        return replace(good, delay_s=self._slow_s)

    def send_cut_short(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        sent.wasted_tokens += estimate_prompt_tokens(messages) + estimate_tokens("x" * 40)  # type: ignore[arg-type]
        return cut_short(good, 40)

    def send_empty(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        sent.wasted_tokens += 512
        return completion("", usage={"prompt_tokens": 500, "completion_tokens": 12})

    def send_no_json(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        page = "<html>upstream is having a bad day</html>"
        sent.wasted_tokens += estimate_prompt_tokens(messages) + estimate_tokens(page)  # type: ignore[arg-type]
        return Scripted(body=page.encode())

    def send_no_usage(self, good: Scripted, messages: list[dict[str, str]], sent: Sent) -> Scripted:
        text = json.loads(good.body)["choices"][0]["message"]["content"]
        sent.prompt_tokens += estimate_prompt_tokens(messages)  # type: ignore[arg-type]
        sent.completion_tokens += estimate_tokens(text)
        sent.replies += 1
        return completion(text)


FAULTS = ("busy_until_later", "error", "too_late", "cut_short", "empty", "no_json", "no_usage", "busy")


def against(player: Player) -> tuple[str, ...]:
    """Overrides that let the agent play by this player's word alone."""
    return (
        "selector=none",
        "backbone=openai_compatible",
        f"backbone.base_url={player.url}",
        "backbone.model=stub-model",
        "backbone.api_key_env=null",
    )
