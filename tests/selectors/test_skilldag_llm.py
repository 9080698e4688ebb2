"""A cold start with a language model: what is asked, how answers are read, and that it fails loudly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from selector_contract import SKILLS, ScoredParts, WordEmbedder, task
from skilldag_calls import NAMES, UNRELATED

from skillarena.conf.errors import BackboneError
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Indexing
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.skilldag.selector import SkillDag

Reply = Callable[[str], str]


class Model:
    """Answers a prompt by a function of it; ``asked`` keeps all prompts."""

    identity = "scripted"

    def __init__(self, needs: Reply | None = None, labels: Reply | None = None) -> None:
        self._replies = {"needs": needs, "labels": labels}
        self.asked: list[list[dict[str, str]]] = []
        self.finish_reason = "stop"

    def chat(self, messages: Any, /) -> Any:
        self.asked.append(list(messages))
        prompt = messages[0]["content"]
        reply = self._replies["needs" if "takes for granted" in prompt else "labels"]
        assert reply is not None
        usage = SimpleNamespace(prompt_tokens=len(prompt), completion_tokens=10)
        return SimpleNamespace(text=reply(messages[-1]["content"]), usage=usage, finish_reason=self.finish_reason)

    def check(self) -> None: ...


def skills_of(prompt: str) -> dict[str, str]:
    """Ids of the skills by their letters."""
    return dict(re.findall(r"^(A|B\d+): (\S+)$", prompt, re.MULTILINE))


def entry(ref: str, edge_type: str = "none", source: str = "A", reason: str = "it says so") -> dict[str, str]:
    return {"target_ref": ref, "type": edge_type, "source_ref": source, "reason": reason}


def all_none(prompt: str) -> str:
    return json.dumps([entry(ref) for ref in skills_of(prompt) if ref != "A"])


def make(folder: Path, model: Model, library: SkillLibrary = UNRELATED, **options: Any) -> SkillDag:
    return SkillDag(ScoredParts(library, WordEmbedder(), HeuristicParser(), folder, model), **options)


def edges(dag: SkillDag) -> list[str]:
    shown = dag.graph_json(dag.initial_memory())["edges"]
    assert all(edge["origin"] == "cold_start" for edge in shown)
    return [f"{edge['source']} {edge['type']} {edge['target']}" for edge in shown]


def test_each_pair_is_asked_about_once_in_one_call_for_its_earlier_skill(tmp_path: Path) -> None:
    model = Model(labels=all_none)
    assert edges(make(tmp_path, model, classifier="llm")) == []
    pairs = [
        (found["A"], other)
        for (message,) in model.asked
        for found in [skills_of(message["content"])]
        for ref, other in found.items()
        if ref != "A"
    ]
    assert len(set(pairs)) == len(pairs) >= len(NAMES)
    assert all(anchor < other for anchor, other in pairs)
    assert len({anchor for anchor, _ in pairs}) == len(model.asked)


def test_labels_become_edges_in_the_direction_that_is_named(tmp_path: Path) -> None:
    wanted = {
        ("alpha", "beta"): ("depends_on", "other"),
        ("alpha", "delta"): ("specializes", "A"),
        ("alpha", "gamma"): ("composes_with", "other"),
        ("alpha", "epsilon"): ("similar_to", "A"),
    }

    def reply(prompt: str) -> str:
        found = skills_of(prompt)
        answers = []
        for ref, other in found.items():
            if ref != "A":
                edge_type, source = wanted.get((found["A"], other), ("none", "A"))
                answers.append(entry(ref, edge_type, ref if source == "other" else "A"))
        return f"<think>[so many]</think>\n```json\n{json.dumps(answers[::-1])}\n```"

    found = edges(make(tmp_path, Model(labels=reply), classifier="llm"))
    expected = {
        "beta depends_on alpha",
        "alpha specializes delta",
        "alpha composes_with gamma",
        "alpha similar_to epsilon",
    }
    asked_about = {frozenset((edge.split()[0], edge.split()[2])) for edge in found}
    assert set(found) == {edge for edge in expected if frozenset((edge.split()[0], edge.split()[2])) in asked_about}
    assert len(found) >= 3


def test_edges_that_would_close_a_cycle_are_left_out(tmp_path: Path) -> None:
    triangle = SkillLibrary(UNRELATED.skills[:3])

    def round_and_round(prompt: str) -> str:
        found = skills_of(prompt)
        order = {("alpha", "beta"): "A", ("alpha", "delta"): "B", ("beta", "delta"): "A"}
        return json.dumps(
            [
                entry(ref, "depends_on", "A" if order[found["A"], other] == "A" else ref)
                for ref, other in found.items()
                if ref != "A"
            ]
        )

    assert [skill.id for skill in triangle.skills] == ["alpha", "beta", "delta"]
    dag = make(tmp_path, Model(labels=round_and_round), triangle, classifier="llm")
    assert edges(dag) == ["alpha depends_on beta", "delta depends_on alpha"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda answers: "sorry", "it is no JSON"),
        (lambda answers: json.dumps({"answers": answers}), "it is no JSON list of objects"),
        (lambda answers: json.dumps(answers[1:]), "its target_refs are"),
        (lambda answers: json.dumps([*answers, answers[0]]), "its target_refs are"),
        (lambda answers: json.dumps([{**answers[0], "target_ref": "B99"}, *answers[1:]]), "B99"),
        (lambda answers: json.dumps([{**answers[0], "type": "conflicts_with"}, *answers[1:]]), "conflicts_with"),
        (lambda answers: json.dumps([entry("B1", "depends_on", "B2"), *answers[1:]]), "source_ref of B1"),
        (lambda answers: json.dumps([entry("B1", "similar_to", reason=" "), *answers[1:]]), "reason for B1"),
    ],
)
def test_an_answer_out_of_form_is_asked_for_once_more_and_then_stops_the_cold_start(
    tmp_path: Path, spoil: Callable[[list[dict[str, str]]], str], said: str
) -> None:
    right: dict[str, str] = {}

    def first_spoilt(prompt: str) -> str:
        if "cannot be used" in prompt:
            assert said in prompt
            return right["answer"]
        right["answer"] = all_none(prompt)
        return spoil(json.loads(right["answer"]))

    model = Model(labels=first_spoilt)
    assert edges(make(tmp_path / "once", model, classifier="llm")) == []
    assert max(map(len, model.asked)) == 3

    model = Model(labels=lambda prompt: spoil(json.loads(all_none(prompt))) if skills_of(prompt) else "sorry")
    with pytest.raises(BackboneError, match="relations of skill alpha"):
        make(tmp_path / "always", model, classifier="llm").initial_memory()


def test_an_answer_that_is_cut_off_is_out_of_form(tmp_path: Path) -> None:
    model = Model(labels=lambda prompt: all_none(prompt) if skills_of(prompt) else "[]")
    model.finish_reason = "length"
    with pytest.raises(BackboneError, match="too long"):
        make(tmp_path, model, classifier="llm").initial_memory()


def test_a_model_that_cannot_be_reached_stops_the_cold_start(tmp_path: Path) -> None:
    def unreachable(prompt: str) -> str:
        raise BackboneError("no server")

    with pytest.raises(BackboneError, match="no server"):
        make(tmp_path, Model(labels=unreachable), classifier="llm").initial_memory()
    with pytest.raises(BackboneError, match="no server"):
        make(tmp_path, Model(needs=unreachable), needs_view="llm").initial_memory()


def test_needs_come_from_id_and_description_and_lead_to_edges(tmp_path: Path) -> None:
    def reply(prompt: str) -> str:
        needs = "gamma gamma gamma" if "\nalpha: " in prompt else "Self-contained."
        return json.dumps({"imagined_tasks": ["a", "b"], "common_prerequisites": needs})

    model = Model(needs=reply)
    assert edges(make(tmp_path, model, needs_view="llm")) == ["alpha depends_on gamma"]
    assert len(model.asked) == len(NAMES)


def test_needs_out_of_form_stop_the_cold_start(tmp_path: Path) -> None:
    for answer in ('{"common_prerequisites": 5}', '["self-contained"]', "self-contained"):
        with pytest.raises(BackboneError, match="needs of skill alpha"):
            make(tmp_path, Model(needs=lambda prompt, said=answer: said), needs_view="llm").initial_memory()


def test_a_cold_start_is_paid_once_and_counts_as_offline_work(tmp_path: Path) -> None:
    model = Model(labels=all_none)
    dag = make(tmp_path, model, SKILLS, classifier="llm")
    dag.open(task("heat"))
    calls = len(model.asked)
    parts: Any = dag._parts
    assert (parts.llm.online.llm_calls, parts.llm.offline.llm_calls) == (0, calls)
    SkillDag(parts, classifier="llm").open(task("heat"))
    assert len(model.asked) == calls > 0


def test_the_work_is_told_before_it_starts(tmp_path: Path) -> None:
    model = Model()
    size = len(SKILLS)
    assert make(tmp_path, model, SKILLS).indexing() is None
    needs = make(tmp_path, model, SKILLS, needs_view="llm").indexing()
    labels = make(tmp_path, model, SKILLS, classifier="llm").indexing()
    both = make(tmp_path, model, SKILLS, needs_view="llm", classifier="llm").indexing()
    assert needs is not None
    assert labels is not None
    assert (needs.calls, labels.calls) == (size, size)
    assert both == Indexing(2 * size, both.prompt_tokens, needs.completion_tokens + labels.completion_tokens)
    assert needs.completion_tokens > 0
    assert both.prompt_tokens == pytest.approx(needs.prompt_tokens + labels.prompt_tokens, abs=1)
    assert model.asked == []
