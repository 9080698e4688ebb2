"""The promises of ``Benchmark`` and ``TextEnv``, as tests that any implementation can subclass."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from skillarena.conf.errors import DataError, EnvError
from skillarena.envs.interface import Benchmark, EndReason, StepResult, Task, TextEnv

GARBAGE = "florble the wug"


def play(env: TextEnv, task: Task, actions: list[str]) -> tuple[str, list[StepResult]]:
    """Reset and play ``actions`` until they or the episode end; returns the first text and every result."""
    first = env.reset(task).text
    results: list[StepResult] = []
    for action in actions:
        results.append(env.step(action))
        if results[-1].done:
            break
    return first, results


class EnvContract:
    """Subclass it, give ``benchmark`` as a class-scoped fixture, and override hooks whose defaults do not fit."""

    replans = True
    """Whether ``plan`` finds a way from every state; otherwise it may be empty after a slip."""

    @pytest.fixture(scope="class")
    @classmethod
    def benchmark(cls) -> Benchmark:
        raise NotImplementedError("the subclass supplies the benchmark")

    @classmethod
    def sample(cls, tasks: list[Task]) -> list[Task]:
        """At least two tasks whose reference actions fit into the step limit."""
        return tasks[:2]

    def reference_actions(self, env: TextEnv, task: Task) -> list[str]:
        """Actions that solve ``task`` from its start."""
        env.reset(task)
        return env.plan()

    @pytest.fixture(scope="class")
    @classmethod
    def env(cls, benchmark: Benchmark) -> Iterator[TextEnv]:
        env = benchmark.make_env()
        yield env
        env.close()

    @pytest.fixture(scope="class")
    @classmethod
    def chosen(cls, benchmark: Benchmark) -> list[Task]:
        chosen = cls.sample(benchmark.tasks())
        assert len(chosen) >= 2
        return chosen

    def test_benchmark_and_env_have_the_interface(self, benchmark: Benchmark, env: TextEnv) -> None:
        assert isinstance(benchmark, Benchmark)
        assert isinstance(env, TextEnv)
        assert benchmark.name and benchmark.split and benchmark.max_steps > 0

    def test_tasks_are_labelled_and_unique(self, benchmark: Benchmark) -> None:
        tasks = benchmark.tasks()
        assert tasks
        for task in tasks:
            assert (task.benchmark, task.split) == (benchmark.name, benchmark.split)
            assert re.fullmatch(r"[0-9a-f]{64}", task.id)
            assert task.task_type and task.goal and task.goal == task.goal.strip()
        assert len({task.id for task in tasks}) == len(tasks)
        assert len({task.name for task in tasks}) == len(tasks)

    def test_tasks_are_the_same_again_and_after_pickling(self, benchmark: Benchmark) -> None:
        tasks = benchmark.tasks()
        assert benchmark.tasks() == tasks
        travelled = pickle.loads(pickle.dumps(benchmark))
        assert travelled.tasks() == tasks
        assert pickle.loads(pickle.dumps(tasks)) == tasks

    def test_action_help_gives_one_form_a_line(self, benchmark: Benchmark) -> None:
        lines = benchmark.action_help().split("\n")
        assert len(lines) > 1
        assert all(line.strip() for line in lines)

    def test_stepping_before_a_reset_is_refused(self, benchmark: Benchmark) -> None:
        fresh = benchmark.make_env()
        try:
            with pytest.raises(EnvError):
                fresh.step(GARBAGE)
        finally:
            fresh.close()

    def test_task_without_its_source_is_refused(self, env: TextEnv, chosen: list[Task]) -> None:
        with pytest.raises(DataError):
            env.reset(replace(chosen[0], source={}))

    def test_reference_actions_solve_the_task(self, benchmark: Benchmark, env: TextEnv, chosen: list[Task]) -> None:
        for task in chosen:
            actions = self.reference_actions(env, task)
            first, results = play(env, task, actions)
            assert first.strip()
            last = results[-1]
            assert last.won and last.done and last.end_reason is EndReason.SOLVED, (task.name, last)
            assert len(results) == len(actions)
            assert benchmark.points(last) == 100.0
            assert all(result.valid for result in results)

    def test_rewards_are_changes_of_the_score(self, benchmark: Benchmark, env: TextEnv, chosen: list[Task]) -> None:
        for task in chosen:
            _, results = play(env, task, [GARBAGE, *self.reference_actions(env, task)])
            before = 0.0
            for result in results:
                assert result.reward == pytest.approx(result.score - before)
                assert 0.0 <= benchmark.points(result) <= 100.0
                before = result.score

    def test_an_episode_has_a_reason_exactly_when_it_is_over(self, env: TextEnv, chosen: list[Task]) -> None:
        _, results = play(env, chosen[0], self.reference_actions(env, chosen[0]))
        assert [result.done for result in results] == [False] * (len(results) - 1) + [True]
        assert [result.end_reason is not None for result in results] == [result.done for result in results]

    def test_misunderstood_actions_cost_steps_up_to_the_limit(
        self, benchmark: Benchmark, env: TextEnv, chosen: list[Task]
    ) -> None:
        _, results = play(env, chosen[0], [GARBAGE] * (benchmark.max_steps + 1))
        assert len(results) == benchmark.max_steps
        assert not any(result.valid or result.won for result in results)
        assert [result.done for result in results] == [False] * (benchmark.max_steps - 1) + [True]
        assert results[-1].end_reason is EndReason.STEP_LIMIT
        assert benchmark.points(results[-1]) < 100.0

    def test_stepping_after_the_end_is_refused(self, env: TextEnv, chosen: list[Task]) -> None:
        play(env, chosen[0], self.reference_actions(env, chosen[0]))
        with pytest.raises(EnvError):
            env.step(GARBAGE)

    def test_traces_repeat_whatever_was_played_before(
        self, benchmark: Benchmark, env: TextEnv, chosen: list[Task]
    ) -> None:
        one, other = chosen[:2]
        actions = [GARBAGE, *self.reference_actions(env, one)]
        trace = play(env, one, actions)
        play(env, other, self.reference_actions(env, other))
        assert play(env, one, actions) == trace
        fresh = benchmark.make_env()
        try:
            assert play(fresh, one, actions) == trace
        finally:
            fresh.close()

    def test_admissible_commands_are_accepted_and_free(
        self, benchmark: Benchmark, env: TextEnv, chosen: list[Task]
    ) -> None:
        env.reset(chosen[0])
        commands = env.admissible_commands()
        assert commands and len(set(commands)) == len(commands)
        assert GARBAGE not in commands
        for _ in range(benchmark.max_steps):
            assert env.admissible_commands() == commands
        result = env.step(commands[0])
        assert result.valid
        assert result.end_reason is not EndReason.STEP_LIMIT or benchmark.max_steps == 1

    def test_plan_continues_from_the_present_state(self, env: TextEnv, chosen: list[Task]) -> None:
        for task in chosen:
            env.reset(task)
            plan = env.plan()
            assert plan, task.name
            env.step(plan[0])
            result = [env.step(action) for action in env.plan()][-1]
            assert result.won, task.name

    def test_plan_recovers_from_a_slip(self, env: TextEnv, chosen: list[Task]) -> None:
        for task in chosen:
            env.reset(task)
            wanted = env.plan()[0]
            slip = next(command for command in env.admissible_commands() if command != wanted)
            assert not env.step(slip).done
            plan = env.plan()
            if plan or self.replans:
                assert [env.step(action) for action in plan][-1].won, (task.name, slip)

    def test_closing_twice_is_safe(self, benchmark: Benchmark, chosen: list[Task]) -> None:
        fresh = benchmark.make_env()
        fresh.reset(chosen[0])
        fresh.close()
        fresh.close()
