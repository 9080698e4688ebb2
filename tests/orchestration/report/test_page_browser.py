"""The page in a real browser: it opens from disk, hostile text does nothing, filters and keys work, widths fit."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from command import cells, rows_of, run_command
from page_parts import HOSTILE, page_of
from report_cells import LOST, make_cell
from steered_browser import Browser

pytestmark = pytest.mark.slow

SETTING = "simulated/alfworld/valid_seen"
OPTIONS = "[...document.querySelectorAll('[role=option]')].map(row => row.textContent)"
COUNT = "document.getElementById('count').textContent"
DETAIL = "document.getElementById('detail').textContent"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three methods on six tasks, of which some solve what others do not."""
    root = tmp_path_factory.mktemp("cells")
    make_cell(root, selector="none", rewards=(100.0, 100.0, 0.0, 0.0, 0.0, LOST))
    make_cell(root, selector="vector", rewards=(100.0, 0.0, 100.0, 0.0, None, 0.0))
    make_cell(root, selector="skillreranker", rewards=(100.0, 0.0, 100.0, 0.0, 0.0, 0.0))
    make_cell(root, selector="none", benchmark="scienceworld", rewards=(70.0, 100.0))
    return page_of(root, root / "index.html").as_uri()


def show(browser: Browser, page: str, **state: str) -> None:
    """Open the page with a state in its address, and wait for the viewer."""
    browser.open(f"{page}#{urlencode(state)}")
    browser.wait(f"!document.getElementById('viewer').hidden && {COUNT}")


def choose(browser: Browser, name: str, value: str) -> None:
    """Choose in a menu as a reader does."""
    menu = f"document.getElementById('filters').elements[{json.dumps(name)}]"
    browser.evaluate(f"{menu}.value = {json.dumps(value)}; {menu}.dispatchEvent(new Event('input', {{bubbles: true}}))")


def menu(browser: Browser, name: str) -> list[str]:
    found: list[str] = browser.evaluate(
        f"[...document.getElementById('filters').elements[{json.dumps(name)}].options].map(o => o.value)"
    )
    return found


def task_numbers(browser: Browser) -> list[str]:
    """Which tasks the list shows; the tasks of test cells are called TYPE/NUMBER."""
    names = "[...document.querySelectorAll('[role=option] div[title]')].map(row => row.title.split('/')[1])"
    found: list[str] = browser.evaluate(names)
    return found


def test_it_opens_from_disk_without_an_error_or_a_request(browser: Browser, page: str) -> None:
    show(browser, page)
    assert browser.errors == []
    assert [address.partition("#")[0] for address in browser.requests] == [page]
    assert browser.evaluate(COUNT) == "17 of 19 episodes"


def test_nothing_may_be_loaded_or_run_that_is_not_the_pages_own(browser: Browser, page: str) -> None:
    show(browser, page)
    assert browser.evaluate("fetch('https://example.org/').then(() => 'loaded', () => 'refused')") == "refused"
    markup = "(() => { try { document.body.innerHTML = '<b>'; return 'set' } catch { return 'refused' } })()"
    assert browser.evaluate(markup) == "refused"
    run = "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)"
    browser.evaluate(f"(() => {{ try {{ {run} }} catch {{}} }})()")
    assert browser.evaluate("window.ran === undefined")


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, tmp_path: Path) -> None:
    words = dict.fromkeys(("goal", "observation", "reply", "thought", "action"), HOSTILE)
    options = {"selector.name": f"own{HOSTILE}"}
    make_cell(tmp_path, selector="none", split=f"seen{HOSTILE}", options=options, texts=words, rewards=(100.0, LOST))
    make_cell(tmp_path, selector="vector", split=f"seen{HOSTILE}", rewards=(0.0, 0.0), fields={"error": HOSTILE})
    show(browser, page_of(tmp_path, tmp_path / "index.html").as_uri())
    for place in range(4):
        browser.evaluate(f"document.querySelectorAll('[role=option]')[{place}].click()")
        browser.wait(f"{DETAIL}.includes('{place + 1} of 4')")
    for method in menu(browser, "method")[1:]:
        choose(browser, "method", method)
    browser.evaluate("document.querySelector('.data thead button').click()")
    browser.evaluate("document.querySelector('[role=option]').click()")
    browser.wait(f"{DETAIL}.includes('<img src=x onerror=window.pwned=1>')")
    assert browser.evaluate("window.pwned === undefined && !document.querySelector('img, #detail script')")
    assert not browser.evaluate("/[\\u202e\\u0000]/.test(document.body.innerText)")
    assert browser.errors == []


def test_filters_leave_what_they_say(browser: Browser, page: str) -> None:
    show(browser, page)
    assert menu(browser, "setting") == [SETTING, "simulated/scienceworld/seen"]
    assert menu(browser, "method") == ["", "none", "skillreranker k=30", "vector top_k=1"]
    choose(browser, "method", "none")
    assert task_numbers(browser) == ["0", "1", "2", "3", "4", "5"]
    choose(browser, "outcome", "solved")
    assert task_numbers(browser) == ["0", "1"]
    choose(browser, "outcome", "infra_error")
    assert task_numbers(browser) == ["5"]
    choose(browser, "outcome", "differ")
    assert task_numbers(browser) == ["1", "2"]
    choose(browser, "outcome", "")
    choose(browser, "type", "look_at_obj_in_light")
    assert task_numbers(browser) == ["1", "3", "5"]
    choose(browser, "text", "LIGHT/3")
    assert task_numbers(browser) == ["3"]
    choose(browser, "setting", "simulated/scienceworld/seen")
    choose(browser, "type", "")
    choose(browser, "text", "")
    assert task_numbers(browser) == ["0", "1"]
    browser.evaluate("document.querySelector('#filters [type=reset]').click()")
    assert browser.evaluate(COUNT) == "2 of 19 episodes"


@pytest.mark.parametrize(
    ("outcome", "tasks"),
    [
        ("differ", ["1", "2"]),
        ("first", ["1"]),
        ("second", ["2"]),
        ("both", ["0"]),
        ("neither", ["3"]),
        ("", ["0", "1", "2", "3", "5"]),
    ],
)
def test_two_methods_are_compared_task_by_task(browser: Browser, page: str, outcome: str, tasks: list[str]) -> None:
    show(browser, page, setting=SETTING, method="none", **{"with": "vector top_k=1"}, outcome=outcome)
    assert task_numbers(browser) == tasks
    assert browser.evaluate(COUNT) == f"{len(tasks)} of 5 tasks that both methods played"


def test_disagreements_are_chosen_first_when_a_second_method_is(browser: Browser, page: str) -> None:
    show(browser, page)
    choose(browser, "method", "skillreranker k=30")
    choose(browser, "with", "none")
    assert task_numbers(browser) == ["1", "2"]
    browser.evaluate("document.querySelector('[role=option]').click()")
    browser.wait("document.querySelectorAll('#detail .side').length === 2")
    heads = browser.evaluate("[...document.querySelectorAll('#detail h4')].map(h => h.textContent)")
    assert [head.split(" ")[0] for head in heads] == ["skillreranker", "none"]


def test_a_statistics_link_opens_the_tasks(browser: Browser, page: str) -> None:
    show(browser, page)
    link = "document.querySelector('#statistics a[href*=\"with=vector\"]')"
    for _ in range(2):  # the second time the address is already the link's
        browser.evaluate(f"{link}.click()")
        assert browser.evaluate(COUNT) == "0 of 5 tasks that both methods played"
        browser.wait("Math.abs(document.getElementById('trajectories').getBoundingClientRect().top) < innerHeight / 2")


def test_keys_alone_reach_and_read_an_episode(browser: Browser, page: str) -> None:
    show(browser, page, setting=SETTING, method="none")
    browser.evaluate("document.querySelector('#filters [type=reset]').focus()")
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.id") == "list"
    browser.press("ArrowDown", 3)
    browser.press("ArrowUp")
    active = "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).textContent"
    assert "/2" in browser.evaluate(active)
    browser.press("Enter")
    browser.wait(f"{DETAIL}.includes('do task 2')")
    assert browser.evaluate("document.activeElement.id") == "detail"
    browser.press("Tab", 2)
    browser.press("Enter")  # "Next"
    browser.wait(f"{DETAIL}.includes('do task 3')")
    browser.press("Escape")
    assert browser.evaluate("document.activeElement.id") == "list"
    assert "Choose an episode" in browser.evaluate(DETAIL)
    browser.press("End")
    assert "/5" in browser.evaluate(active)
    browser.press("Enter")
    browser.wait(f"{DETAIL}.includes('worker died')")


def test_the_first_tab_stop_skips_to_the_trajectories(browser: Browser, page: str) -> None:
    show(browser, page)
    browser.press("Tab")
    assert browser.evaluate("document.activeElement.textContent") == "Skip to the trajectories"
    browser.press("Enter")
    browser.wait("document.activeElement.id === 'trajectories'")


def test_an_address_opens_an_episode_again(browser: Browser, page: str) -> None:
    show(browser, page, setting=SETTING, method="vector top_k=1")
    browser.evaluate("document.querySelectorAll('[role=option]')[1].click()")
    browser.wait(f"{DETAIL}.includes('do task 1')")
    address = browser.evaluate("location.href")
    shown = browser.evaluate(DETAIL)
    browser.open(address)
    browser.wait(f"{DETAIL}.includes('do task 1')")
    assert browser.evaluate(DETAIL) == shown
    show(browser, page, episode="0123456789ab")
    assert "There is no episode 0123456789ab" in browser.evaluate(DETAIL)


def test_an_episode_shows_all_that_happened(browser: Browser, tmp_path: Path) -> None:
    make_cell(tmp_path, rewards=(100.0,), steps=2, tokens=2000)
    show(browser, page_of(tmp_path, tmp_path / "index.html").as_uri())
    browser.evaluate("document.querySelector('[role=option]').click()")
    browser.wait(f"{DETAIL}.includes('do task 0')")
    told = browser.evaluate("document.getElementById('detail').innerText")
    for words in (
        "pick_and_place_simple/0",
        "set/first, set/second",
        "You are in a room.",
        "step 0.",
        "look",
        "You are in room 1.",
        "900 + 100 tokens",
        "model 0.25 s",
        "environment 0.13 s",
        "score 0 \u2192 1",
        "End: solved, after 2 replies.",
        "2,000",
    ):
        assert words in told, words


def test_tools_advice_and_refusals_are_shown(browser: Browser, tmp_path: Path) -> None:
    path = make_cell(tmp_path, rewards=(100.0,), steps=3) / "trajectories.jsonl"
    told = json.loads(path.read_text())
    looked, refused, silent = told["turns"]
    looked |= {"action": None, "tool": "search_skills('mugs')", "skills_read": ["set/mugs"], "tool_seconds": 2.0}
    refused |= {"valid": False, "advice": "look in the drawer", "normalised": True, "finish_reason": "length"}
    silent |= {"action": None, "valid": False, "reply": "I only think.", "thought": "I only think."}
    path.write_text(json.dumps(told) + "\n")
    show(browser, page_of(tmp_path, tmp_path / "index.html").as_uri())
    browser.evaluate("document.querySelector('[role=option]').click()")
    browser.wait(f"{DETAIL}.includes('do task 0')")
    turns = browser.evaluate("[...document.querySelectorAll('#detail .turn')].map(turn => turn.innerText)")
    assert all(words in turns[1] for words in ("search_skills('mugs')", "read set/mugs", "selector 2.00 s"))
    assert "refused" not in turns[1] and "no command" not in turns[1]
    assert all(words in turns[2] for words in ("refused", "look in the drawer", "spelling changed", "reply was cut"))
    assert "no command in the reply" in turns[3] and "refused" not in turns[3] and turns[3].count("I only think.") == 1


def test_a_link_to_what_is_not_there_shows_what_is(browser: Browser, page: str) -> None:
    show(browser, page, setting=SETTING, method="gone", **{"with": "none"}, outcome="both")
    assert browser.evaluate(COUNT) == "17 of 19 episodes"
    assert browser.errors == []


def test_an_episode_that_is_elsewhere_says_how_to_see_it(browser: Browser, tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rewards=(100.0,))
    show(browser, page_of(tmp_path, tmp_path / "index.html", megabytes=0.0).as_uri())
    browser.evaluate("document.querySelector('[role=option]').click()")
    browser.wait(f"{DETAIL}.includes('skillarena show {rows_of(cell)[0].episode_id[:12]}')")


def test_a_press_on_a_heading_sorts_the_rows(browser: Browser, page: str) -> None:
    show(browser, page)
    rewards = (
        "[...document.querySelectorAll('#table1 tbody tr:not(.group)')].map(row => Number(row.cells[1].dataset.value))"
    )
    given = browser.evaluate(rewards)
    press = "[...document.querySelectorAll('#table1 thead button')].find(b => b.textContent === 'R').click()"
    browser.evaluate(press)
    assert browser.evaluate(rewards) == sorted(given, reverse=True)
    browser.evaluate(press)
    assert browser.evaluate(rewards) == sorted(given)
    browser.evaluate(press)
    assert browser.evaluate(rewards) == given


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_wider_than_the_screen(browser: Browser, page: str, width: int, dark: bool) -> None:
    browser.resize(width, 844, dark=dark)
    show(browser, page, setting=SETTING, method="none", **{"with": "vector top_k=1"})
    browser.evaluate("document.querySelector('[role=option]').click()")
    browser.wait("document.querySelectorAll('#detail .side').length === 2")
    assert browser.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    sizes = browser.evaluate("[...document.querySelectorAll('.part')].map(p => p.getBoundingClientRect().right)")
    assert max(sizes) <= width
    colour = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, colour[4:-1].split(","))) < 300) == dark
    assert browser.errors == []
    browser.resize(1280, 900)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Address of a server for the files of ``tmp_path``."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join(10)


def test_it_works_inside_a_sandboxed_frame(browser: Browser, page: str, tmp_path: Path, server: str) -> None:
    """As tracking servers show a page among a run's artifacts."""
    html = json.dumps(Path(page.removeprefix("file://")).read_text(encoding="utf-8")).replace("<", "\\u003c")
    put = "const frame = document.createElement('iframe'); frame.sandbox = 'allow-scripts';"
    put += f"frame.src = URL.createObjectURL(new Blob([{html}], {{type: 'text/html'}})); document.body.append(frame);"
    head = "<!doctype html><meta charset=utf-8><link rel=icon href=data:,>"
    (tmp_path / "frame.html").write_text(f"{head}<body><script>{put}</script>", encoding="utf-8")
    browser.open(f"{server}/frame.html")
    browser.wait_in_frame(COUNT)
    browser.evaluate_in_frame("document.querySelector('[role=option]').click()")
    browser.wait_in_frame(f"{DETAIL}.includes('do task 0')")
    assert browser.errors == []


def test_eight_thousand_episodes_are_quick(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)  # ledgers sync row by row, which takes most of a minute here
    for seed in range(20):
        rewards = [100.0 * ((task * 7 + seed) % 3 == 0) for task in range(400)]
        make_cell(tmp_path, selector="vector", rewards=rewards, seed=seed, steps=3)
    page = page_of(tmp_path, tmp_path / "index.html").as_uri()
    started = time.monotonic()
    show(browser, page)
    assert browser.evaluate(COUNT) == "8,000 of 8,000 episodes"
    assert time.monotonic() - started < 15
    assert browser.evaluate("document.querySelectorAll('[role=option]').length") < 60
    started = time.monotonic()
    browser.evaluate("document.getElementById('list').focus()")
    browser.press("End")
    browser.press("Enter")
    browser.wait(f"{DETAIL}.includes('8,000 of 8,000')")
    choose(browser, "text", "simple/39")
    assert browser.evaluate(COUNT) == "100 of 8,000 episodes"
    assert time.monotonic() - started < 5
    assert browser.errors == []


def test_a_real_run_can_be_read_turn_by_turn(browser: Browser, tmp_path: Path, cache: Path) -> None:
    done = run_command(
        *("run", "-m", "selector=none,oracle", "benchmark.limit=3", "tracking.enabled=false", "output_dir=out"),
        cache=cache,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    show(browser, page_of(tmp_path / "out", tmp_path / "index.html").as_uri())
    assert browser.evaluate(COUNT) == "6 of 6 episodes"
    rows = {row.episode_id[:12]: row for cell in cells(tmp_path / "out") for row in rows_of(cell)}
    for place in range(6):
        browser.evaluate(f"document.querySelectorAll('[role=option]')[{place}].click()")
        browser.wait(f"{DETAIL}.includes('{place + 1} of 6')")
        row = rows[browser.evaluate("new URLSearchParams(location.hash.slice(1)).get('episode')")]
        assert browser.evaluate("document.querySelectorAll('#detail .turn').length") == row.llm_turns + 1
        assert f"after {row.llm_turns} replies" in browser.evaluate(DETAIL)
    assert browser.errors == []
