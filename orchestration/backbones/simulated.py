"""A seeded stand-in for a model: it follows a reference plan and slips more often where no skill helps."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Sequence

from skillarena.conf.errors import BackboneError
from skillarena.orchestration.backbones.coverage import covers
from skillarena.orchestration.backbones.interface import EpisodeContext, Message, Reply, Usage
from skillarena.orchestration.backbones.options import check_ranges
from skillarena.orchestration.backbones.prices import FREE
from skillarena.orchestration.backbones.simulated_tools import next_call
from skillarena.orchestration.backbones.tokens import estimate_prompt_tokens, estimate_tokens
from skillarena.orchestration.dialects import Dialect, dialect_of

DISTRACTION = 0.02
"""What 1000 tokens of skills that do not help with the next action add to the chance of a slip."""

MOST_SLIPS = 0.95
"""The chance of a slip never exceeds this, so every plan is finished some day."""

MUMBLES = 0.1
"""The part of all slips in which the reply holds no action at all."""


class SimulatedBackbone:
    """No language model: exercises the system and estimates cost; its results say nothing about any model.

    Each turn it asks for the reference plan from the present state. It gives the plan's next action, or slips: a
    harmless action (``look``, ``inventory``, a walk to another place of the opening description) or a reply without
    an action. The chance of a slip is ``slip_covered`` if a skill in the prompt teaches the next action
    (``coverage.covers``), else ``slip_uncovered``; skills that do not teach it add ``DISTRACTION`` for each 1000
    tokens, so a larger selection is not a free lunch.

    Stateless: a reply depends on the seed, the episode id, the number of turns so far and the environment's state.
    Usage follows the rule of ``tokens.estimate_tokens`` and is marked as estimated; as prompts only grow at the end,
    everything but the last two messages counts as cached.

    Args:
        slip_covered: chance of a slip when a skill teaches the next action, 0 to 1.
        slip_uncovered: chance of a slip when none does, 0 to 1.
        latency_s: seconds each call takes, to imitate a slow model.

    Raises:
        ConfigError: a value out of range.
    """

    name = "simulated"
    simulated = True
    price = FREE

    def __init__(self, *, slip_covered: float = 0.6, slip_uncovered: float = 0.8, latency_s: float = 0.0) -> None:
        check_ranges(
            slip_covered=(slip_covered, 0, 1), slip_uncovered=(slip_uncovered, 0, 1), latency_s=(latency_s, 0, 3600)
        )
        self._slip_covered = slip_covered
        self._slip_uncovered = slip_uncovered
        self._latency_s = latency_s

    def chat(self, messages: Sequence[Message], episode: EpisodeContext | None = None) -> Reply:
        """One turn of an episode.

        Raises:
            BackboneError: the call belongs to no episode.
            EnvError: the environment failed to give its plan.
        """
        if episode is None:
            raise BackboneError(
                "the simulated backbone can only play episodes, not answer free prompts",
                "use a parser or selector without a language model, or give it a real backbone",
            )
        started = time.perf_counter()
        time.sleep(self._latency_s)
        dialect = dialect_of(episode.task.benchmark)
        turn = sum(message["role"] == "assistant" for message in messages)
        rng = _random(episode, turn)
        call = next_call(episode, messages, rng) if episode.tools else None
        plan = episode.plan() if call is None and not episode.over else []
        if call is not None:
            text = f"Thought: The library may help.\nTool: {call}"
        elif episode.over:
            text = "Thought: There is nothing more to note."
        elif plan and rng.random() >= self.slip_chance(plan[0], episode):
            text = f"Thought: Next I should {plan[0]}.\nAction: {plan[0]}"
        elif not plan:
            text = f"Thought: I see no way forward.\nAction: {dialect.idle[0]}"
        else:
            text = _slip(rng, dialect, messages)
        usage = Usage(
            prompt_tokens=estimate_prompt_tokens(messages),
            cached_tokens=estimate_prompt_tokens(messages[:-2]) if turn else 0,
            completion_tokens=estimate_tokens(text),
            estimated=True,
        )
        return Reply(text, usage, "stop", latency_s=time.perf_counter() - started)

    def slip_chance(self, action: str, episode: EpisodeContext) -> float:
        """Chance of a slip where the plan says ``action``; guidance teaches like a skill."""
        texts = [skill.text for skill in episode.skills] + ([episode.guidance] if episode.guidance else [])
        teaching = [covers(text, action, episode.task.benchmark) for text in texts]
        idle_tokens = sum(estimate_tokens(text) for text, teaches in zip(texts, teaching, strict=True) if not teaches)
        base = self._slip_covered if any(teaching) else self._slip_uncovered
        return min(MOST_SLIPS, base + DISTRACTION * idle_tokens / 1000)

    def check(self) -> None:
        """Nothing to reach."""

    def close(self) -> None:
        """Nothing to free."""


def _random(episode: EpisodeContext, turn: int) -> random.Random:
    key = hashlib.sha256(f"{episode.seed}:{episode.episode_id}:{turn}".encode()).digest()
    return random.Random(key)  # noqa: S311 (no secret depends on it)


def _slip(rng: random.Random, dialect: Dialect, messages: Sequence[Message]) -> str:
    if rng.random() < MUMBLES:
        return "I am not sure what to do next. Let me think about it some more."
    places = [
        place for message in messages if message["role"] == "user" for place in dialect.places(message["content"])
    ]
    walks = [dialect.travel.format(rng.choice(places))] if places else []
    action = rng.choice([*dialect.idle, *walks])
    return f"Thought: Perhaps I should look elsewhere first.\nAction: {action}"
