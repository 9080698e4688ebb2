"""The agent loop: one thought and one command a turn (ReAct, Yao et al. 2023, section 2)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from skillarena.conf.errors import BackboneError, ContextOverflow
from skillarena.envs.interface import Benchmark, EndReason, Observation, StepResult, Task, TextEnv
from skillarena.orchestration import prompts
from skillarena.orchestration.action_parser import ParsedReply, parse_reply
from skillarena.orchestration.agent_session import AgentSession, SessionInfo, refusal
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.interface import Backbone, EpisodeContext, Message, Reply
from skillarena.orchestration.dialects import dialect_of
from skillarena.orchestration.trajectory import Trajectory, Turn
from skillarena.selectors.interface import SelectedSkill, Selection
from skillarena.selectors.live import Trigger

log = logging.getLogger(__name__)

LONGEST_OBSERVATION = 100_000
"""Characters of an observation that are kept; the longest of the simulators have some thousand."""


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
    session: AgentSession | None = None,
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
        session: of a selector that takes part in the episode; None for one that decided before it.
        on_turn: called after every turn, for progress and for the tokens of an episode that breaks off.

    Raises:
        BackboneError: the model gave no usable reply. The episode has no outcome and can be tried again.
        EnvError: the environment failed; likewise.
        ModelHostLost: the session's process died; likewise.
        DataError: the task cannot be loaded.
    """
    started = time.perf_counter()
    first = _readable(env.reset(task).text)
    reset_seconds = time.perf_counter() - started
    info = session.info if session is not None else SessionInfo()
    section = prompts.skill_section(selection.skills, selection.guidance, info.tools)
    context = EpisodeContext(
        episode_id, seed, task, selection.skills, env.plan, guidance=selection.guidance, tools=info.tools
    )
    opening = prompts.opening(benchmark.action_help(), section, task, Observation(first))
    talk = _Talk(backbone, env, session, settings, context, [*opening], on_turn)
    outcome = talk.play(settings.max_turns or 2 * benchmark.max_steps)
    if info.review and outcome is not EndReason.TOKEN_LIMIT:
        talk.review(info.review)
    last = talk.last
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
        first_observation=first,
        turns=tuple(talk.turns),
        outcome=outcome,
        reward=benchmark.points(last) if last else 0.0,
        score=last.score if last else 0.0,
        won=last is not None and last.won,
        seconds=time.perf_counter() - started,
        reset_seconds=reset_seconds,
    )


class _Talk:
    """The conversation of one episode."""

    def __init__(
        self,
        backbone: Backbone,
        env: TextEnv,
        session: AgentSession | None,
        settings: AgentSettings,
        context: EpisodeContext,
        messages: list[Message],
        on_turn: Callable[[Turn], None] | None,
    ) -> None:
        self.turns: list[Turn] = []
        self.last: StepResult | None = None
        """Result of the last command."""
        self._backbone = backbone
        self._env = env
        self._session = session
        self._settings = settings
        self._context = context
        self._messages = messages
        self._on_turn = on_turn
        self._dialect = dialect_of(context.task.benchmark)
        self._advised = 0
        self._quiet = 0  # turns that no longer count for the trigger

    def play(self, max_turns: int) -> EndReason:
        """Turns until the episode has an outcome."""
        while (outcome := self._outcome(max_turns)) is None:
            try:
                reply = self._backbone.chat(tuple(self._messages), self._context)
            except ContextOverflow:
                return EndReason.TOKEN_LIMIT
            parsed = parse_reply(reply.text, self._dialect, tools=bool(self._context.tools))
            turn = self._lookup(reply, parsed) if parsed.tool else self._act(reply, parsed)
            self._add(self._with_advice(turn))
        return outcome

    def review(self, question: str) -> None:
        """After the end: up to ``review_turns`` replies that may call tools; one that calls none ends it.

        The episode has its outcome by then, so a model that fails ends the review and nothing else.
        """
        self._context = replace(self._context, over=True)
        heard = self._messages[-1]
        self._messages[-1] = {"role": heard["role"], "content": f"{heard['content']}\n\n{question}"}
        for _ in range(self._settings.review_turns):
            if self._tokens_spent:
                return
            try:
                reply = self._backbone.chat(tuple(self._messages), self._context)
            except ContextOverflow:
                return
            except BackboneError as error:
                log.warning("task %s: no review after the episode: %s", self._context.task.name, error.message)
                return
            parsed = parse_reply(reply.text, self._dialect, tools=True)
            if parsed.tool is None:
                self._add(self._turn(reply, parsed, valid=True, observation=""))
                return
            self._add(self._lookup(reply, parsed))

    def _outcome(self, max_turns: int) -> EndReason | None:
        """Why the episode is over, or None while it goes on; the environment's word comes first."""
        if self.last is not None and self.last.end_reason is not None:
            return self.last.end_reason
        free = 0 if self._settings.skill_calls_cost_turns else min(self._lookups, self._settings.max_skill_calls)
        if len(self.turns) - free >= max_turns:
            return EndReason.STEP_LIMIT
        return EndReason.TOKEN_LIMIT if self._tokens_spent else None

    @property
    def _tokens_spent(self) -> bool:
        most = self._settings.max_tokens
        return most is not None and sum(turn.usage.total_tokens for turn in self.turns) >= most

    @property
    def _lookups(self) -> int:
        return sum(bool(turn.tool) for turn in self.turns)

    def _add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self._messages.extend(prompts.continuation(turn))
        if self._on_turn is not None:
            self._on_turn(turn)

    def _act(self, reply: Reply, parsed: ParsedReply) -> Turn:
        """Play the command of ``reply``, if it holds one."""
        started = time.perf_counter()
        result = self._env.step(parsed.action) if parsed.action is not None else None
        seconds = time.perf_counter() - started if result else 0.0
        self.last = result or self.last
        turn = self._turn(
            reply,
            parsed,
            valid=result is not None and result.valid,
            observation=_readable(result.observation) if result else prompts.NO_ACTION,
        )
        return replace(turn, env_seconds=seconds)

    def _lookup(self, reply: Reply, parsed: ParsedReply) -> Turn:
        """Answer the tool call of ``reply``."""
        assert self._session is not None
        assert parsed.tool is not None
        started = time.perf_counter()
        if self._lookups < self._settings.max_skill_calls:
            result = self._session.call(parsed.tool.name, parsed.tool.arguments)
        else:
            most = self._settings.max_skill_calls
            result = refusal("NO_CALLS_LEFT", f"all {most} tool calls of this episode are used up; go on without")
        return replace(
            self._turn(reply, parsed, valid=result.ok, observation=_writable(result.text)),
            tool=parsed.tool.text,
            tool_seconds=time.perf_counter() - started,
            skills_read=self._read(result.skills),
        )

    def _turn(self, reply: Reply, parsed: ParsedReply, *, valid: bool, observation: str) -> Turn:
        return Turn(
            reply=reply.text,
            thought=parsed.thought,
            action=None if self._context.over else parsed.action,
            normalised=parsed.normalised,
            valid=valid,
            observation=observation,
            score=self.last.score if self.last else 0.0,
            usage=reply.usage,
            finish_reason=reply.finish_reason,
            llm_seconds=reply.latency_s,
            env_seconds=0.0,
        )

    def _with_advice(self, turn: Turn) -> Turn:
        """The turn, with what the selector adds where its trigger fires."""
        trigger = self._session.info.trigger if self._session is not None else None
        if self._session is None or trigger is None or self._advised >= trigger.times:
            return turn
        if not fires(trigger, [*self.turns[self._quiet :], turn]):
            return turn
        started = time.perf_counter()
        self._advised += 1
        self._quiet = len(self.turns) + 1
        actions = [past.action for past in (*self.turns, turn) if past.action is not None]
        advice = self._session.advise(turn.observation, actions)
        known = f"{self._context.guidance}\n\n{advice.guidance}".strip()
        self._context = replace(self._context, guidance=known)
        return replace(
            turn,
            advice=prompts.skill_section(advice.skills, advice.guidance),
            tool_seconds=time.perf_counter() - started,
            skills_read=self._read(advice.skills),
        )

    def _read(self, skills: Sequence[SelectedSkill]) -> tuple[str, ...]:
        """Note what the agent has read now; returns the ids."""
        known = {skill.id for skill in self._context.skills}
        new = tuple(skill for skill in skills if skill.id not in known)
        self._context = replace(self._context, skills=(*self._context.skills, *new))
        return tuple(skill.id for skill in skills)


def _readable(observation: str) -> str:
    """An environment's text, the end of one that no model could read left out."""
    if len(observation) <= LONGEST_OBSERVATION:
        return observation
    left_out = len(observation) - LONGEST_OBSERVATION
    return f"{observation[:LONGEST_OBSERVATION]}\n[{left_out:,} characters are left out]"


def _writable(text: str) -> str:
    """Without half characters, which an answer that quotes odd skills may hold."""
    return text.encode("utf-8", "replace").decode("utf-8")


def fires(trigger: Trigger, turns: Sequence[Turn]) -> bool:
    """Whether the latest turns are reason enough to ask a selector for advice; tool calls count for nothing."""
    played = [turn for turn in turns if not turn.tool]
    if not played or played[-1] is not turns[-1]:
        return False
    invalid = sum(1 for _ in takewhile(lambda turn: not turn.valid, reversed(played)))
    scores = [0.0, *(turn.score for turn in played if turn.action is not None)]
    stale = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], reversed(list(pairwise(scores)))))
    return stale >= trigger.stale_steps or invalid >= trigger.invalid_in_a_row
