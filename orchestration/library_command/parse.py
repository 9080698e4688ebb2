"""`skillarena library parse`: every skill parsed before the first run, at a price that is named first."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from rich.console import Console
from rich.text import Text

from skillarena.conf.errors import ConfigError
from skillarena.orchestration.assembly import AssembledParts, build_selector, load_library
from skillarena.orchestration.backbones.tokens import estimate_tokens
from skillarena.orchestration.cells import cache_folder, indexing_of, sections
from skillarena.orchestration.console import EXIT_INCOMPLETE, EXIT_OK, console_for_results, logging_to, plain
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.plan_estimate import Use, cost_of, expected_skill_parse
from skillarena.orchestration.pricing import price_of
from skillarena.orchestration.progress_bar import ProgressBar
from skillarena.orchestration.settings import Settings, label
from skillarena.selectors.interface import ParsedSkill, Skill
from skillarena.selectors.parser_cache import CachedParser

_MOST_AT_ONCE = 32
"""LLM calls under way; the model limits itself further while its server answers 429."""


@dataclass(frozen=True, slots=True)
class Work:
    """Calls of one language model that are still to be made."""

    what: str
    model: str
    """Name of the language model; empty where none is asked."""
    use: Use
    cost: float | None
    """Money; None: no known price."""

    @property
    def line(self) -> str:
        """A sentence for the reader."""
        if not self.use.calls:
            return f"{self.what}: no LLM call"
        tokens = f"{self.use.prompt:,.0f} prompt and {self.use.completion:,.0f} completion tokens"
        money = (
            "price unknown"
            if self.cost is None
            else "no price per token"
            if not self.cost
            else f"cost {self.cost:,.2f}"
        )
        return f"{self.what}: about {self.use.calls:,.0f} LLM calls of {self.model}, {tokens}, {money}"


@dataclass(frozen=True, slots=True)
class Done:
    """What parsing took."""

    parsed: int = 0
    fallbacks: int = 0
    llm_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, skill: ParsedSkill) -> Done:
        return Done(
            self.parsed + 1,
            self.fallbacks + skill.fallback,
            self.llm_calls + skill.llm_calls,
            self.prompt_tokens + skill.prompt_tokens,
            self.completion_tokens + skill.completion_tokens,
        )


def parse(overrides: Sequence[str], config_dir: Path | None, *, yes: bool, as_json: bool) -> int:
    """Say what parsing all skills takes, and do it where it takes nothing or was agreed to.

    Args:
        overrides: as for ``run``.
        config_dir: folder of further configuration files.
        yes: make the LLM calls.
        as_json: print JSON.

    Returns:
        0; 1 when calls would have to be made and were not agreed to.

    Raises:
        ConfigError: a mistake, or more is expected than ``run.max_tokens`` or ``run.max_cost`` allow.
        BackboneError: the parser's model cannot be reached; what is parsed is kept.
    """
    settings = compose(overrides, config_dir)
    with logging_to(Console(stderr=True, highlight=False)):
        parts = AssembledParts(sections(settings), load_library(settings.library), cache_folder(settings))
        parser = cast("CachedParser", parts.parser)
        skills = parts.library.skills
        left = parser.unparsed(skills)
        parsing, indexing = parsing_work(settings, left), indexing_work(settings, parts)
        lines = [f"{len(skills):,} skills, {len(left):,} texts to parse with {label(settings.parser)}", parsing.line]
        lines += [f"{indexing.line}; its first run makes them"] if indexing else []
        _say(lines, sys.stderr if as_json else sys.stdout)
        asked = bool(parsing.use.calls)
        done = Done()
        if not asked or yes:
            if asked:
                _check_budget(settings, parsing)
                parser.check()
            done = _parse(parser, left, threads=_threads(settings) if asked else 1)
    if as_json:
        facts = {"skills": len(skills), "to_parse": len(left), "parsing": _plain(parsing), "indexing": _plain(indexing)}
        sys.stdout.write(json.dumps({**facts, "done": asdict(done)}, indent=2) + "\n")
    else:
        _say([_summary(done) if not asked or yes else "Nothing was asked: add --yes to make these calls."], sys.stdout)
    return EXIT_INCOMPLETE if asked and not yes else EXIT_OK


def parsing_work(settings: Settings, left: Sequence[Skill]) -> Work:
    """LLM calls for skills that are not parsed yet, each understood at the first try."""
    model = settings.parser.get("model")
    if not isinstance(model, dict) or not left:
        return Work("parsing", "", Use(), 0.0)
    use = expected_skill_parse(fmean(estimate_tokens(skill.text) for skill in left)) * len(left)
    return Work("parsing", str(model.get("model", "?")), use, cost_of(use, price_of(model, "parser.model")))


def indexing_work(settings: Settings, parts: AssembledParts) -> Work | None:
    """LLM calls by which the configured selector makes its graph, at most; None for one that makes none."""
    work = indexing_of(build_selector(settings.selector, parts))
    if work is None:
        return None
    use = Use(work.calls, work.prompt_tokens, 0, work.completion_tokens)
    cost = cost_of(use, price_of(settings.llm, "llm"))
    return Work(f"graph of {label(settings.selector)}, at most", str(settings.llm.get("model", "?")), use, cost)


def _check_budget(settings: Settings, work: Work) -> None:
    run, tokens = settings.run, work.use.prompt + work.use.completion
    if run.max_tokens is not None and tokens > run.max_tokens:
        raise ConfigError(
            f"run.max_tokens={run.max_tokens:,} is less than {tokens:,.0f} tokens", "raise it or leave it"
        )
    if run.max_cost is not None and (work.cost is None or work.cost > run.max_cost):
        expected = "an unknown price" if work.cost is None else f"{work.cost:,.2f}"
        raise ConfigError(
            f"run.max_cost={run.max_cost:g} is less than {expected}", "raise it, or set the model's price"
        )


def _threads(settings: Settings) -> int:
    return min(_MOST_AT_ONCE, int(settings.parser["model"].get("max_concurrency") or 1))


def _parse(parser: CachedParser, skills: Sequence[Skill], threads: int) -> Done:
    """Each result is kept as it comes, so that a stopped command has lost only what was under way."""
    done = Done()
    with ProgressBar("parsing skills", len(skills)) as bar, ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(parser.parse_skill, skill) for skill in skills]
        try:
            for future in as_completed(futures):
                done += future.result()
                bar.advance()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def _summary(done: Done) -> str:
    tokens = f"{done.prompt_tokens:,} prompt and {done.completion_tokens:,} completion tokens"
    spent = f"; {done.llm_calls:,} LLM calls, {tokens}"
    fallbacks = f", {done.fallbacks:,} of them by their descriptions only" if done.fallbacks else ""
    return f"{done.parsed:,} skills parsed{fallbacks}{spent if done.llm_calls else ''}"


def _plain(work: Work | None) -> dict[str, Any] | None:
    return None if work is None else asdict(work)


def _say(lines: Sequence[str], to: Any) -> None:
    out = console_for_results() if to is sys.stdout else Console(stderr=True, highlight=False)
    for line in lines:
        out.print(Text(plain(line)), soft_wrap=True)
