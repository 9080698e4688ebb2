"""Sessions of selectors, without Ray around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillarena.conf.errors import ConfigError, LibraryError, ModelHostLost
from skillarena.envs.interface import Task
from skillarena.orchestration.cells import sections
from skillarena.orchestration.hydra_run import compose
from skillarena.orchestration.jobs import Method
from skillarena.orchestration.session_desk import SessionDesk
from skillarena.selectors.interface import Selection
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.live import EpisodeRecord, Lesson

TASK = Task("alfworld", "split", "0" * 64, "name", "kind", "put a mug on the desk.")
WON = EpisodeRecord("a room", (), True, 100.0, 10, ())


def method(selector: dict[str, Any] | None = None, **changes: Any) -> Method:
    chosen = sections(compose(["selector=none"]))
    if selector is not None:
        chosen = chosen | {"selector": {"_target_": "diary.Diary", **selector}}
    return Method(chosen, changes.pop("fingerprint", SkillLibrary.load(["bundled"]).fingerprint), **changes)


@pytest.fixture
def desk(tmp_path: Path) -> SessionDesk:
    return SessionDesk(str(tmp_path), {})


def test_sessions_do_not_mix(desk: SessionDesk) -> None:
    first, second = (desk.open(method({}), TASK, Selection()).token for _ in range(2))
    desk.call(first, "write", {"note": "one"})
    desk.call(second, "write", {"note": "two"})
    lessons = [desk.close(token, WON) for token in (second, first)]
    assert all(isinstance(lesson, Lesson) for lesson in lessons)
    assert [lesson.content["notes"] for lesson in lessons if lesson] == [["two"], ["one"]]


def test_a_session_starts_from_the_memory_that_comes_with_it(desk: SessionDesk) -> None:
    known = []
    for memory in (None, b"[1, 2, 3]", b"[1]"):
        token = desk.open(method({}, memory=memory), TASK, Selection()).token
        lesson = desk.close(token, WON)
        assert lesson is not None
        known.append(lesson.content["known"])
    assert known == [0, 3, 1]


def test_what_the_session_offers_travels(desk: SessionDesk) -> None:
    info = desk.open(method({}), TASK, Selection()).info
    assert [tool.name for tool in info.tools] == ["search", "show", "write"]
    assert info.trigger is not None
    assert info.review


def test_a_session_that_is_closed_or_of_an_earlier_process_is_lost(desk: SessionDesk) -> None:
    token = desk.open(method({}), TASK, Selection()).token
    desk.close(token, WON)
    with pytest.raises(ModelHostLost, match="started anew"):
        desk.call(token, "search", {})


def test_a_selector_that_decides_before_the_episode_has_no_session(desk: SessionDesk) -> None:
    with pytest.raises(ConfigError, match="takes no part in episodes"):
        desk.open(method(), TASK, Selection())


def test_a_library_that_changed_is_refused(desk: SessionDesk) -> None:
    with pytest.raises(LibraryError, match="changed while the run"):
        desk.open(method({}, fingerprint="another"), TASK, Selection())
