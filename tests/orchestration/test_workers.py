"""Workers turn every fault into data; nothing a selector, environment or backbone does gets past them."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import pytest

from skillarena.conf.errors import BackboneError, LibraryError, RerankerError
from skillarena.envs.interface import Observation, StepResult, Task
from skillarena.orchestration.agent_settings import AgentSettings
from skillarena.orchestration.backbones.errors import RequestRefused, RetriesExhausted, WrongKey
from skillarena.orchestration.backbones.interface import Reply, Usage
from skillarena.orchestration.cells import sections
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.jobs import EpisodeJob, Method, SelectionJob
from skillarena.orchestration.workers import Failure, RolloutWorker, SelectionWorker, failure
from skillarena.selectors.interface import FixedSession, SelectedSkill, Selection
from skillarena.selectors.library import SkillLibrary

TASK = Task("alfworld", "split", "0" * 64, "name", "kind", "put a mug on the desk.")
HERE = f"{__name__}"


class OddSelector:
    """Does what its option says."""

    needs = ()

    def __init__(self, parts: Any, *, act: str) -> None:
        self._act = act

    def open(self, task: Task) -> Any:
        if self._act == "raise":
            raise ZeroDivisionError("a bug")
        if self._act == "no reranker":
            raise RerankerError("model is missing", "install it")
        if self._act == "nonsense":
            return FixedSession(["a skill"])  # type: ignore[arg-type]
        if self._act == "tools":
            return FixedSession(Selection(), tools=(print,))
        skill = SelectedSkill("a", "a", "", "text", 1.0, "why")
        logging.getLogger("skillarena.test").warning("something odd")
        return FixedSession(Selection(skills=(skill, skill) if self._act == "twice" else (skill,)))


class OddEnv:
    """Fails where its benchmark says."""

    def __init__(self, act: str) -> None:
        self._act = act
        self.closed = False

    def reset(self, task: Task) -> Observation:
        if self._act == "reset":
            raise OSError("the simulator is gone")
        return Observation("a room")

    def step(self, action: str) -> StepResult:
        if self._act == "step":
            raise OSError("the simulator is gone")
        return StepResult("fine", 1.0, 1.0, True, True, None)

    def admissible_commands(self) -> list[str]:
        return []

    def plan(self) -> list[str]:
        return []

    def close(self) -> None:
        self.closed = True


class OddBenchmark:
    name = "alfworld"
    split = "split"
    max_steps = 5

    def __init__(self, *, act: str = "") -> None:
        self._act = act

    def tasks(self) -> list[Task]:
        return [TASK]

    def make_env(self) -> OddEnv:
        return OddEnv(self._act)

    def points(self, result: StepResult) -> float:
        return 100.0 * result.won

    def action_help(self) -> str:
        return "look"


class OddBackbone:
    """Answers once, then does what its option says."""

    name = "odd"
    simulated = False

    def __init__(self, *, act: str = "") -> None:
        self._act = act

    def chat(self, messages: Any, episode: Any = None) -> Reply:
        if len(messages) > 2 and self._act == "exhausted":
            raise RetriesExhausted("busy", wasted_tokens=7)
        if self._act == "refused":
            raise RequestRefused("filtered")
        if self._act == "key":
            raise WrongKey("no key")
        text = "no command here" if self._act == "exhausted" else "Action: look"
        return Reply(text, Usage(100, 0, 10), "stop", 0.0)

    def check(self) -> None:
        """Always reachable."""

    def close(self) -> None:
        """Nothing to free."""


def select(tmp_path: Path, act: str, **changes: Any) -> Any:
    settings = compose(["selector=none"])
    chosen = sections(settings) | {"selector": {"_target_": f"{HERE}.OddSelector", "act": act}}
    fingerprint = SkillLibrary.load(["bundled"]).fingerprint
    return SelectionWorker(str(tmp_path), {}).work(
        SelectionJob(Method(chosen, changes.get("fingerprint", fingerprint)), TASK)
    )


def play(tmp_path: Path, env: str = "", backbone: str = "", worker: RolloutWorker | None = None) -> Any:
    job = EpisodeJob(
        benchmark={"_target_": f"{HERE}.OddBenchmark", "act": env},
        backbone={"_target_": f"{HERE}.OddBackbone", "act": backbone},
        agent=AgentSettings(),
        task=TASK,
        selection=Selection(),
        episode_id="e",
        seed=0,
    )
    return (worker or RolloutWorker(str(tmp_path), {})).play(job)


def test_a_selection_comes_back_with_its_cost_and_the_warnings_of_the_worker(tmp_path: Path) -> None:
    answer = select(tmp_path, "choose")
    assert [skill.id for skill in answer.result.skills] == ["a"]
    assert answer.result.cost.seconds > 0
    assert answer.warnings == ("something odd",)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("nonsense", "where a Selection"),
        ("twice", "chose a skill twice"),
        ("tools", "offers tools"),
        ("no reranker", "install it"),
    ],
)
def test_a_selector_that_cannot_work_fails_for_good(tmp_path: Path, act: str, message: str) -> None:
    result = select(tmp_path, act).result
    assert isinstance(result, Failure)
    assert result.permanent
    assert message in result.message


def test_a_bug_in_a_selector_keeps_its_traceback(tmp_path: Path) -> None:
    result = select(tmp_path, "raise").result
    assert isinstance(result, Failure)
    assert "ZeroDivisionError: a bug" in result.message
    assert "in open" in result.message


def test_a_library_that_changed_since_preflight_is_refused(tmp_path: Path) -> None:
    result = select(tmp_path, "choose", fingerprint="another").result
    assert isinstance(result, Failure)
    assert "changed while the run" in result.message


@pytest.mark.parametrize("env", ["reset", "step"])
def test_a_broken_environment_is_a_passing_failure_and_the_next_episode_gets_another(tmp_path: Path, env: str) -> None:
    worker = RolloutWorker(str(tmp_path), {})
    result = play(tmp_path, env=env, worker=worker).result
    assert isinstance(result, Failure)
    assert "the simulator is gone" in result.message
    assert not result.permanent and not result.worker_lost
    assert result.wasted_tokens == 0
    assert play(tmp_path, worker=worker).result.trajectory.won


@pytest.mark.parametrize(("act", "permanent"), [("refused", False), ("key", True)])
def test_only_what_every_task_would_meet_is_permanent(tmp_path: Path, act: str, permanent: bool) -> None:
    result = play(tmp_path, backbone=act).result
    assert isinstance(result, Failure)
    assert result.permanent is permanent


def test_tokens_of_an_attempt_that_broke_off_are_counted_as_wasted(tmp_path: Path) -> None:
    result = play(tmp_path, backbone="exhausted").result
    assert isinstance(result, Failure)
    assert result.wasted_tokens == 110 + 7


def test_an_unexpected_exception_is_told_in_a_line_and_where_it_was_raised() -> None:
    def fails() -> None:
        try:
            {}["key"]
        except KeyError as error:
            raise ValueError("no such thing") from error

    with pytest.raises(ValueError, match="no such thing") as caught:
        fails()
    made = failure(caught.value, repeats=True)
    first, place, *_, cause = made.message.splitlines()
    assert first == "ValueError: no such thing" and made.permanent
    assert place.startswith(f"  at {__file__}:") and " in fails: raise ValueError" in place
    assert "raised from KeyError: 'key'" in made.message and '{}["key"]' in cause


def test_a_failure_keeps_the_text_and_survives_pickling() -> None:
    made = failure(LibraryError("no skills", "name a folder"))
    assert pickle.loads(pickle.dumps(made)) == made
    assert "no skills" in made.message and "name a folder" in made.message
    assert made.permanent
    assert not failure(BackboneError("down")).permanent
