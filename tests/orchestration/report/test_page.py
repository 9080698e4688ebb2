"""The page as a file: what is in it, that text stays text, and that equal ledgers give equal bytes."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
from page_parts import HOSTILE, Parts, blocks, packed, page_of, parts_of
from report_cells import LOST, make_cell

from skillarena.orchestration.ledger import read_rows, read_trajectories


def texts(parts: Parts, tag: str) -> list[str]:
    return [element.text.strip() for element in parts.of(tag)]


def test_all_tables_figures_and_statistics_are_in_the_page(tmp_path: Path) -> None:
    for selector in ("none", "vector", "skillreranker", "without_split"):
        make_cell(tmp_path, selector=selector, k=None if selector in ("none", "vector") else 30)
    make_cell(tmp_path, k=10)
    parts = parts_of(page_of(tmp_path, tmp_path / "index.html"))
    named = {element.attributes.get("id") for element in parts.of("section")}
    tables = {"table1", "table2", "table3", "by_task_type", "k_curve", "selection_costs", "cells"}
    assert tables | {"figures", "statistics", "trajectories", "about"} <= named
    pictures = [element for element in parts.of("svg") if element.attributes.get("role") == "img"]
    assert len(pictures) == 3 and all(picture.attributes["aria-label"] for picture in pictures)


def test_what_is_simulated_missing_partial_or_lost_is_said(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="none", rewards=(100.0, None))
    make_cell(tmp_path, selector="vector", rewards=(100.0, LOST))
    make_cell(tmp_path, selector="none", benchmark="scienceworld")
    parts = parts_of(page_of(tmp_path, tmp_path / "index.html"))
    headings = texts(parts, "h2")
    tables = [heading for heading in headings if heading.startswith("Table")]
    assert tables and all(heading.endswith("(simulated)") for heading in tables)
    assert any("Simulated." in element.text for element in parts.of("strong"))
    assert Counter(element.text for element in parts.of("span") if "partial" in element.attributes.get("class", ""))[
        "1/2"
    ]
    assert "missing" in texts(parts, "td")
    html = (tmp_path / "index.html").read_text()
    assert "1 lost to infrastructure errors" in html
    assert "1 of 5 episodes have no recorded trajectory" in html


def test_a_mixed_table_marks_the_simulated_numbers(tmp_path: Path) -> None:
    make_cell(tmp_path, backbone="simulated")
    make_cell(tmp_path, backbone="deepseek_v4_flash", simulated=False)
    parts = parts_of(page_of(tmp_path, tmp_path / "index.html"))
    assert any(heading.endswith("(some simulated)") for heading in texts(parts, "h2"))
    assert any(element.text == "simulated" and "tag" in element.attributes["class"] for element in parts.of("span"))


def test_the_page_asks_for_nothing_and_runs_only_its_own_script(tmp_path: Path) -> None:
    make_cell(tmp_path)
    parts = parts_of(page_of(tmp_path, tmp_path / "index.html"))
    policy = next(e for e in parts.of("meta") if "http-equiv" in e.attributes).attributes["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'" and rules["base-uri"] == "'none'" and rules["form-action"] == "'none'"
    assert "unsafe" not in policy and "http" not in policy
    for tag, rule in (("script", "script-src"), ("style", "style-src")):
        run = [element for element in parts.of(tag) if element.attributes.get("type") != "text/plain"]
        digests = [base64.b64encode(hashlib.sha256(e.text.encode()).digest()).decode() for e in run]
        assert [f"'sha256-{digest}'" for digest in digests] == [rules[rule]]
    for element in parts.elements:
        assert not [name for name in element.attributes if name.startswith("on") or name in ("src", "style")], element
        assert element.attributes.get("href", "#").startswith("#")
    assert not {"link", "iframe", "object", "embed", "base"} & {element.tag for element in parts.elements}


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    words = {"goal": HOSTILE, "observation": HOSTILE, "reply": HOSTILE, "thought": HOSTILE, "action": HOSTILE}
    options = {"selector.name": f"own{HOSTILE}"}
    make_cell(
        tmp_path, selector="none", split=f"seen{HOSTILE}", options=options, texts=words, fields={"error": HOSTILE}
    )
    make_cell(tmp_path, selector="vector", split=f"seen{HOSTILE}", rewards=(0.0, LOST), fields={"error": HOSTILE})
    usual = page_of(tmp_path, tmp_path / "hostile.html")
    make_cell(tmp_path / "plain", selector="none", options={"selector.name": "own"})
    make_cell(tmp_path / "plain", selector="vector", rewards=(0.0, LOST))
    hostile, plain = parts_of(usual), parts_of(page_of(tmp_path / "plain", tmp_path / "plain.html"))
    without_blocks = [{e.tag for e in parts.elements if e.tag != "defs"} for parts in (hostile, plain)]
    assert without_blocks[0] - without_blocks[1] <= {"pattern", "rect"}
    assert len([e for e in hostile.of("script") if e.attributes.get("type") == "module"]) == 1
    assert not hostile.of("img")
    html = usual.read_text(encoding="utf-8")
    assert "{{7*7}}" in html and "49}}" not in html
    assert "\u202e" not in html and "\x00" not in html
    assert "&lt;img src=x onerror=window.pwned=1&gt;" in html


def test_equal_ledgers_give_equal_bytes_wherever_they_lie(tmp_path: Path) -> None:
    for selector in ("none", "vector"):
        make_cell(tmp_path / "a", selector=selector, rewards=(100.0, None, 0.0))
    shutil.copytree(tmp_path / "a", tmp_path / "elsewhere" / "b")
    one = page_of(tmp_path / "a", tmp_path / "one.html")
    other = page_of(tmp_path / "elsewhere" / "b", tmp_path / "other.html")
    assert one.read_bytes() == other.read_bytes()
    assert str(tmp_path) not in one.read_text()


def test_every_trajectory_is_in_the_page_word_for_word(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rewards=(100.0, 0.0, 100.0))
    parts = parts_of(page_of(tmp_path, tmp_path / "index.html"))
    index = packed(parts, "index")
    ids = [row.episode_id for row in read_rows(cell).rows]
    assert index["id"] == [episode[:12] for episode in ids]
    for number, told in enumerate(read_trajectories(cell)):
        block = packed(parts, f"block-{index['block'][number]}")
        episode = block["episodes"][index["place"][number]]
        assert block["texts"][episode["goal"]] == told["goal"]
        assert block["texts"][episode["first"]] == told["first_observation"]
        for turn, shown in zip(told["turns"], episode["turns"], strict=True):
            found = dict(zip(index["turn"], shown, strict=True))
            for name in ("reply", "thought", "action", "observation"):
                assert block["texts"][found[name]] == turn[name]
            assert found["tool"] == found["advice"] == -1
            assert (found["prompt"], found["completion"]) == (
                turn["usage"]["prompt_tokens"],
                turn["usage"]["completion_tokens"],
            )
            assert (found["score"], found["valid"]) == (turn["score"], turn["valid"])


def test_texts_of_one_task_are_kept_once(tmp_path: Path) -> None:
    for selector in ("none", "vector", "skillreranker"):
        make_cell(tmp_path, selector=selector, rewards=(100.0,))
    (block,) = blocks(parts_of(page_of(tmp_path, tmp_path / "index.html")))
    assert len(block["episodes"]) == 3
    assert len(set(block["texts"])) == len(block["texts"])


def test_a_full_page_keeps_disagreements_and_says_what_is_elsewhere(tmp_path: Path) -> None:
    make_cell(tmp_path, selector="none", rewards=(100.0, 0.0, 100.0, 0.0))
    make_cell(tmp_path, selector="vector", rewards=(100.0, 0.0, 0.0, 0.0))
    whole = parts_of(page_of(tmp_path, tmp_path / "whole.html"))
    sizes = [
        len(base64.b64decode(e.text)) for e in whole.of("script") if e.attributes.get("id", "").startswith("block")
    ]
    assert len(sizes) == 4
    path = page_of(tmp_path, tmp_path / "part.html", megabytes=(sizes[0] + 1) / 1e6)
    index = packed(parts_of(path), "index")
    kept = [number for number, block in enumerate(index["block"]) if block >= 0]
    assert {index["tasks"][index["task"][number]][0].partition("/")[2] for number in kept} == {"2"}
    assert "This page holds 2 of 8 recorded trajectories" in path.read_text()
    assert "skillarena show" in path.read_text()


def test_a_trajectory_that_cannot_be_read_is_a_problem_of_the_page(tmp_path: Path) -> None:
    cell = make_cell(tmp_path, rewards=(100.0, 0.0))
    lines = (cell / "trajectories.jsonl").read_bytes().splitlines(keepends=True)
    (cell / "trajectories.jsonl").write_bytes(lines[0] + b"#" * (len(lines[1]) - 1) + b"\n")
    parts = parts_of(page_of(tmp_path, tmp_path / "index.html"))
    problems = [text for text in texts(parts, "li") if "the trajectory cannot be read" in text]
    assert len(problems) == 1 and cell.name in problems[0]
    assert packed(parts, "index")["block"].count(-1) == 1


@pytest.mark.parametrize("seeds", [1, 2])
def test_statistics_link_to_the_tasks_that_two_methods_disagree_on(tmp_path: Path, seeds: int) -> None:
    for seed in range(seeds):
        make_cell(tmp_path, selector="skillreranker", rewards=(100.0, 0.0, 100.0), seed=seed)
        for top_k in (1, 2):
            make_cell(tmp_path, selector="vector", rewards=(0.0, 0.0, 100.0), top_k=top_k, seed=seed)
    html = page_of(tmp_path, tmp_path / "index.html").read_text()
    links = re.findall(r'<a href="(#setting=[^"]*)">([^<]*)</a>', html)
    assert [words for _, words in links] == ["vector top_k=1", "vector top_k=2"]
    assert "with=vector+top_k%3D1&amp;outcome=differ" in links[0][0]
