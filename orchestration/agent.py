"""The agent loop: one thought and one command a turn (ReAct, Yao et al. 2023, section 2)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from skillarena.conf.errors import ContextOverflow
from skillarena.envs.interface import Benchmark, EndReason, StepResult, Task, TextEnv
from skillarena.orchestration import prompts
from skillarena.orchestration.action_parser import parse_reply
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.interface import Backbone, EpisodeContext, Message, Reply
from skillarena.orchestration.dialects import Dialect, dialect_of
from skillarena.orchestration.trajectory import Trajectory, Turn
from skillarena.selectors.interface import Selection


def run_episode(
    task: Task,
    env: TextEnv,
    benchmark: Benchmark,
    backbone: Backbone,
    selection: Selection,
    settings: AgentSettings,
    *,
    episode_id: str,
    seed: int,
    on_turn: Callable[[Turn], None] | None = None,
) -> Trajectory:
    """Play ``task`` once, from the reset to a typed outcome.

    The outcome is the environment's own (``solved``, ``failed``, ``step_limit``), or ``step_limit`` when the model has
    used up its turns, or ``token_limit`` when the token budget is spent (looked at before each call, so at most one
    call goes over it) or the prompt no longer fits the model.

    Args:
        task: what to solve.
        env: where; in production a ``GuardedEnv``.
        benchmark: for the action vocabulary, the step limit and the points.
        backbone: the model.
        selection: the skills to show.
        settings: limits.
        episode_id: identity of the episode.
        seed: seed of the episode.
        on_turn: called after every turn, for progress and for the tokens of an episode that breaks off.

    Raises:
        BackboneError: the model gave no usable reply. The episode has no outcome and can be tried again.
        EnvError: the environment failed; likewise.
        DataError: the task cannot be loaded.
    """
    started = time.perf_counter()
    dialect = dialect_of(task.benchmark)
    first = env.reset(task)
    reset_seconds = time.perf_counter() - started
    context = EpisodeContext(episode_id, seed, task, selection.skills, env.plan)
    messages: list[Message] = [*prompts.opening(benchmark.action_help(), selection.skills, task, first)]
    turns: list[Turn] = []
    last: StepResult | None = None
    max_turns = settings.max_turns or 2 * benchmark.max_steps

    while (outcome := _outcome(last, turns, max_turns, settings.max_tokens)) is None:
        try:
            reply = backbone.chat(tuple(messages), context)
        except ContextOverflow:
            outcome = EndReason.TOKEN_LIMIT
            break
        turn, result = _take(reply, env, dialect, last)
        last = result or last
        turns.append(turn)
        messages.extend(prompts.continuation(turn))
        if on_turn is not None:
            on_turn(turn)

    return Trajectory(
        episode_id=episode_id,
        seed=seed,
        benchmark=task.benchmark,
        split=task.split,
        task_id=task.id,
        task_name=task.name,
        task_type=task.task_type,
        goal=task.goal,
        backbone=backbone.name,
        simulated=backbone.simulated,
        skills=tuple(skill.id for skill in selection.skills),
        first_observation=first.text,
        turns=tuple(turns),
        outcome=outcome,
        reward=benchmark.points(last) if last else 0.0,
        score=last.score if last else 0.0,
        won=last is not None and last.won,
        seconds=time.perf_counter() - started,
        reset_seconds=reset_seconds,
    )


def _take(reply: Reply, env: TextEnv, dialect: Dialect, last: StepResult | None) -> tuple[Turn, StepResult | None]:
    """Play the command of ``reply``, if it holds one."""
    parsed = parse_reply(reply.text, dialect)
    started = time.perf_counter()
    result = env.step(parsed.action) if parsed.action is not None else None
    seen = result or last
    turn = Turn(
        reply=reply.text,
        thought=parsed.thought,
        action=parsed.action,
        normalised=parsed.normalised,
        valid=result is not None and result.valid,
        observation=result.observation if result else prompts.NO_ACTION,
        score=seen.score if seen else 0.0,
        usage=reply.usage,
        finish_reason=reply.finish_reason,
        llm_seconds=reply.latency_s,
        env_seconds=time.perf_counter() - started if result else 0.0,
    )
    return turn, result


def _outcome(
    last: StepResult | None, turns: Sequence[Turn], max_turns: int, max_tokens: int | None
) -> EndReason | None:
    """Why the episode is over, or None while it goes on; the environment's word comes first."""
    if last is not None and last.end_reason is not None:
        return last.end_reason
    if len(turns) >= max_turns:
        return EndReason.STEP_LIMIT
    if max_tokens is not None and sum(turn.usage.total_tokens for turn in turns) >= max_tokens:
        return EndReason.TOKEN_LIMIT
    return None
