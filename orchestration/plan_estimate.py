"""What a sweep should take in turns, tokens and money: pure functions from facts to expectations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from skillarena.orchestration.backbones.interface import Usage
from skillarena.orchestration.backbones.prices import Price

MEASURED_WITH = "skillarena run -m benchmark=alfworld,scienceworld selector=none"
"""The command behind ``BARE_EPISODES``: the simulated backbone without skills, 24 and 194 episodes."""

SKILLS_SELECTED = 1.3
"""Skills an adaptive selector gives an agent, mean over tasks (arXiv 2607.06283, section 4: 1.28 to 1.30)."""


@dataclass(frozen=True, slots=True)
class Use:
    """Calls of a chat model and their tokens, as sums or as means."""

    calls: float = 0.0
    prompt: float = 0.0
    """Prompt tokens, cached ones included."""
    cached: float = 0.0
    """The part of ``prompt`` that comes from a prefix cache."""
    completion: float = 0.0

    def __add__(self, other: Use) -> Use:
        return Use(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )

    def __mul__(self, times: float) -> Use:
        return Use(self.calls * times, self.prompt * times, self.cached * times, self.completion * times)


BARE_EPISODES = {
    "alfworld": Use(calls=29.4, prompt=23_890, cached=22_608, completion=501),
    "scienceworld": Use(calls=28.3, prompt=50_795, cached=47_951, completion=484),
}
"""Means of one episode without skills, by benchmark (``MEASURED_WITH``); other benchmarks count as the dearest."""

TASK_PARSE = Use(calls=1, prompt=280, completion=120)
"""One task parsed by a language model at the first try: the length of the prompt, and seven sentences."""

SKILL_PARSE = Use(calls=1, prompt=175, completion=80)
"""One skill parsed at the first try, its document not counted: the length of the prompt, and four sentences."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What episodes are compared by."""

    benchmark: str
    selector: str
    """Method with the options that tell its cells apart."""
    backbone: str
    simulated: bool


@dataclass(frozen=True, slots=True)
class PastEpisode:
    """A finished episode."""

    kind: Kind
    use: Use
    skill_tokens: float | None
    """Tokens of the skills in its prompt; None when they are not in the library at hand."""
    parsing: Use
    """Online calls of its selection."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """A mean and where it comes from."""

    use: Use
    source: str
    """A clause for the reader."""
    skills_added: bool = False
    """The episodes behind it had other skills in their prompts; the expected ones were put in."""


def expected_episode(kind: Kind, skill_tokens: float, past: Sequence[PastEpisode]) -> Expectation:
    """One episode of the agent.

    The nearest finished episodes decide: those of the same benchmark, method and backbone as they are; else those of
    the same benchmark (with this backbone, else with real ones, else simulated ones), with the skills in their prompts
    exchanged for the expected ones; else the measured assumption. Skills are in every prompt, so they count once for
    each turn.

    Args:
        kind: what is to be played.
        skill_tokens: expected tokens of the skills in one prompt.
        past: finished episodes of any kind.
    """
    here = [episode for episode in past if episode.kind.benchmark == kind.benchmark]
    own = [episode.use for episode in here if episode.kind == kind]
    if own:
        return Expectation(_mean(own), f"means of {len(own)} finished episodes of the same kind")
    nearer: list[tuple[str, Callable[[Kind], bool]]] = [
        (f"with {kind.backbone}", lambda other: other.backbone == kind.backbone),
        ("with other models", lambda other: not other.simulated),
        ("with the simulated backbone", lambda other: other.simulated),
    ]
    for words, fits in nearer:
        bare = [_without_skills(e.use, e.skill_tokens) for e in here if fits(e.kind) and e.skill_tokens is not None]
        if bare:
            source = f"means of {len(bare)} finished episodes {words}, skills exchanged"
            return Expectation(_with_skills(_mean(bare), skill_tokens), source, skills_added=True)
    dearest = max(BARE_EPISODES.values(), key=lambda use: use.prompt)
    return Expectation(
        _with_skills(BARE_EPISODES.get(kind.benchmark, dearest), skill_tokens),
        f"assumed, short replies without reasoning, as measured without skills by `{MEASURED_WITH}`, plus skills;"
        " once some episodes are finished, they count instead",
        skills_added=True,
    )


def expected_task_parse(benchmark: str, past: Sequence[PastEpisode]) -> Expectation:
    """One task parsed online: as in finished episodes of the benchmark, else as assumed."""
    known = [episode.parsing for episode in past if episode.kind.benchmark == benchmark and episode.parsing.prompt]
    if known:
        return Expectation(_mean(known), f"means of {len(known)} finished selections")
    return Expectation(TASK_PARSE, "assumed: the prompt's length and seven sentences, understood at the first try")


def expected_skill_parse(document_tokens: float) -> Use:
    """One skill parsed offline.

    Args:
        document_tokens: mean tokens of a skill's text.
    """
    return SKILL_PARSE + Use(prompt=document_tokens)


def cost_of(use: Use, price: Price | None) -> float | None:
    """Money for ``use``; None when the price is unknown, which is not the same as 0."""
    usage = Usage(round(use.prompt), round(use.cached), round(use.completion))
    return None if price is None else price.cost(usage)


def total(uses: Iterable[Use]) -> Use:
    """Sum."""
    return sum(uses, Use())


def _mean(uses: Sequence[Use]) -> Use:
    return total(uses) * (1 / len(uses))


def _without_skills(use: Use, skill_tokens: float) -> Use:
    share = use.cached / use.prompt if use.prompt else 0.0
    prompt = max(0.0, use.prompt - use.calls * skill_tokens)
    return Use(use.calls, prompt, prompt * share, use.completion)


def _with_skills(bare: Use, skill_tokens: float) -> Use:
    """The cached share stays as it is; where nothing is cached, skills are not either."""
    share = bare.cached / bare.prompt if bare.prompt else 0.0
    prompt = bare.prompt + bare.calls * skill_tokens
    return Use(bare.calls, prompt, prompt * share, bare.completion)
