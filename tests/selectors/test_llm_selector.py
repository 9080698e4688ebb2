"""The language model as a selector: what it is asked, what becomes of its answer, what is done when it is no use."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from scripted_ranker import Model, asked_ids, backwards, recalled
from selector_contract import HOT_MUG, SKILLS, ScoredParts, SelectorContract, WordEmbedder, task, up_to

from skillarena.conf.errors import BackboneError, ConfigError, ContextOverflow, LibraryError
from skillarena.selectors.heuristic_parser import HeuristicParser
from skillarena.selectors.interface import Selection, SelectionCost, Selector
from skillarena.selectors.library import SkillLibrary
from skillarena.selectors.llm_selector import LlmSelector
from skillarena.selectors.measure import measured


class TestLlmSelector(SelectorContract):
    at_least = at_most = 2
    llm = Model([backwards])

    def make(self, parts: Any) -> Selector:
        if len(parts.library) == 1:
            return LlmSelector(parts, k=1, top_k=1)
        return LlmSelector(parts, k=up_to(30, parts), top_k=2)

    def test_works_with_a_library_of_one_skill(self, parts: ScoredParts) -> None:
        parts.library = SkillLibrary(parts.library.skills[:1])
        assert len(self.make(parts).open(task(HOT_MUG)).selection.skills) == 1


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Selection]:
    """Selects with a scripted model whose answers no other call has kept."""
    folders = (tmp_path / str(number) for number in count())

    def select(model: Model, library: SkillLibrary = SKILLS, **options: Any) -> Selection:
        parts = ScoredParts(library, WordEmbedder(), HeuristicParser(), next(folders), model)
        return LlmSelector(parts, **{"k": len(library), **options}).open(task(HOT_MUG)).selection

    return select


def test_the_models_order_becomes_the_ranking(run: Callable[..., Selection]) -> None:
    selection = run(Model(['["C", "A", "F", "B", "E", "D"]']), top_k=2)
    by_recall = recalled(selection)
    assert selection.details["ranking"] == [by_recall[i] for i in (2, 0, 5, 1, 4, 3)]
    assert [skill.id for skill in selection.skills] == selection.details["ranking"][:2]
    assert [skill.score for skill in selection.skills] == [1.0, 0.5]
    assert selection.marks == ()
    assert selection.details["problems"] == []


def test_candidates_come_in_recall_order_with_their_full_text(run: Callable[..., Selection]) -> None:
    model = Model([backwards])
    selection = run(model)
    (message,) = model.seen[0]
    cosines = [row["cosine"] for row in selection.details["candidates"]]
    assert cosines == sorted(cosines, reverse=True)
    documents = re.findall(r"^<skill id=(\w)>\n(.*?)\n</skill>$", message["content"], re.MULTILINE | re.DOTALL)
    assert [label for label, _ in documents] == list("ABCDEF")
    assert [text for _, text in documents] == [SKILLS.by_id[skill_id].text for skill_id in recalled(selection)]
    assert HOT_MUG in message["content"]


def test_numbers_may_be_the_ids(run: Callable[..., Selection]) -> None:
    model = Model(["3 > 1 > 6 > 2 > 5 > 4"])
    selection = run(model, ids="numbers")
    assert asked_ids(model.seen[0]) == ["1", "2", "3", "4", "5", "6"]
    assert selection.details["ranking"] == [recalled(selection)[i] for i in (2, 0, 5, 1, 4, 3)]


def test_a_list_of_half_the_skills_is_completed_in_recall_order_and_marked(run: Callable[..., Selection]) -> None:
    model = Model(['["F", "E", "B"]'])
    selection = run(model, top_k=3)
    assert len(model.seen) == 1
    assert selection.details["ranking"] == [recalled(selection)[i] for i in (5, 4, 1, 0, 2, 3)]
    assert selection.marks == ("ranking_repaired",)
    assert selection.details["named"] == ["F", "E", "B"]


def test_fewer_than_half_is_asked_for_again_with_what_was_wrong(run: Callable[..., Selection]) -> None:
    model = Model(["<think>B or D?</think>B > D", '["D", "B", "A", "C", "E", "F"]'])
    selection = run(model)
    prompt, said, complaint = model.seen[1]
    assert prompt == model.seen[0][0]
    assert said == {"role": "assistant", "content": "B > D"}
    assert "it names only 2 of the 6 ids, without A, C, E, F" in complaint["content"]
    assert selection.details["ranking"] == [recalled(selection)[i] for i in (3, 1, 0, 2, 4, 5)]
    assert selection.marks == ("ranking_repaired",)
    assert selection.details["answers"] == 2


def test_fewer_ids_than_skills_to_choose_are_asked_for_again(run: Callable[..., Selection]) -> None:
    model = Model(["B > A > C", "F > E > D > C > B > A"])
    assert run(model, top_k=5).details["answers"] == 2


def test_an_unknown_id_is_asked_for_again(run: Callable[..., Selection]) -> None:
    model = Model(['["Q", "B", "A", "C", "E", "F"]', '["D", "B", "A", "C", "E", "F"]'])
    selection = run(model)
    assert "it names Q, and there is no such id" in model.seen[1][-1]["content"]
    assert selection.details["named"] == list("DBACEF")


def test_an_id_named_twice_counts_where_it_stood_first(run: Callable[..., Selection]) -> None:
    model = Model(["B, A, B, C, D, E, F"])
    selection = run(model)
    assert len(model.seen) == 1
    assert selection.details["named"] == list("BACDEF")
    assert selection.details["repeated"] == ["B"]
    assert selection.marks == ("ranking_repaired",)


def test_an_answer_that_was_cut_off_is_told_so(run: Callable[..., Selection]) -> None:
    model = Model(["<think>Let me see, A or B", backwards], finish_reason="length")
    run(model)
    assert "became too long and was cut off, and there is no list of the ids in it" in model.seen[1][-1]["content"]
    assert model.seen[1][1]["content"] == "(no answer)"


@pytest.mark.parametrize(
    ("second", "ranking"),
    [("I do not know.", "BDACEF"), ("F", "BDACEF"), ("F > Q > E > A", "FEABCD")],
    ids=["nothing", "less", "more"],
)
def test_of_two_answers_without_use_the_one_that_names_more_counts(
    run: Callable[..., Selection], second: str, ranking: str
) -> None:
    model = Model(["B > D", second])
    selection = run(model)
    assert len(model.seen) == 2
    assert selection.details["ranking"] == [recalled(selection)["ABCDEF".index(label)] for label in ranking]
    assert len(selection.details["problems"]) == 2
    assert selection.marks == ("ranking_repaired",)


def test_without_any_id_recall_order_stands_and_is_marked_apart(run: Callable[..., Selection]) -> None:
    selection = run(Model(["I cannot help with that."]), top_k=2)
    assert selection.details["ranking"] == recalled(selection)
    assert selection.marks == ("ranking_repaired", "ranking_fallback")
    assert "did not name it" in selection.skills[0].reason


def test_an_unreachable_model_is_an_error(run: Callable[..., Selection]) -> None:
    with pytest.raises(BackboneError, match="down"):
        run(Model([BackboneError("down")]))


# --- bodies that do not fit


def with_bodies(*bodies: str) -> SkillLibrary:
    return SkillLibrary(tuple(replace(skill, body=body) for skill, body in zip(SKILLS.skills, bodies, strict=True)))


UNEVEN = with_bodies("a" * 9000, "b" * 3000, "c" * 400, "d" * 120, "", "f" * 8000)


def bodies_seen(message: str) -> list[str]:
    """Runs of one letter, as long as they are in a prompt."""
    return sorted(run[0] for run in re.finditer(r"(.)\1{50,}", message))


def test_bodies_are_cut_to_one_length_and_metadata_stays(run: Callable[..., Selection]) -> None:
    model = Model([backwards], context=9000)
    selection = run(model, UNEVEN)
    assert selection.marks == ("bodies_trimmed",)
    limit = selection.details["body_chars"]
    (message,) = model.seen[0]
    assert {run[0]: len(run) for run in bodies_seen(message["content"])} == {
        "a": limit,
        "b": min(limit, 3000),
        "c": 400,
        "d": 120,
        "f": limit,
    }
    for skill in UNEVEN.skills:
        assert f"# {skill.name}\n{skill.description}" in message["content"]
    assert message["content"].count("[the rest is left out]") == sum(len(skill.body) > limit for skill in UNEVEN.skills)
    used = sum(min(len(skill.body), limit) for skill in UNEVEN.skills)
    assert used > 0.7 * (9000 - (len(message["content"]) - used)), "much more would have fitted"
    assert model.refused == sorted(model.refused, reverse=True)


def test_refused_prompts_cost_nothing(tmp_path: Path) -> None:
    model = Model([backwards], context=9000)
    parts = ScoredParts(UNEVEN, WordEmbedder(), HeuristicParser(), tmp_path, model)
    cost = measured(LlmSelector(parts, k=6), parts, task(HOT_MUG)).cost
    assert len(model.refused) > 1
    assert (cost.llm_calls, cost.prompt_tokens) == (1, len(model.seen[0][0]["content"]))


def test_the_second_question_is_trimmed_further_where_only_it_does_not_fit(run: Callable[..., Selection]) -> None:
    model = Model([backwards])
    run(model, UNEVEN)
    whole = len(model.seen[0][0]["content"])
    model = Model(["none of them", backwards], context=whole + 50)
    selection = run(model, UNEVEN)
    assert [len(model.seen), len(model.refused)] == [2, 1]
    assert selection.marks == ("bodies_trimmed", "ranking_repaired")
    assert len(selection.details["named"]) == 6


@pytest.mark.parametrize("context", [9000, None])
def test_a_trimmed_prompt_that_left_no_room_for_an_answer_is_trimmed_further(
    run: Callable[..., Selection], context: int | None
) -> None:
    model = Model(["A", backwards], context=context, finish_reason="length")
    selection = run(model, UNEVEN)
    before, after = (len(messages[0]["content"]) for messages in model.seen)
    assert (after < before) == (context is not None)
    assert len(selection.details["named"]) == 6


def test_with_no_room_for_bodies_names_and_descriptions_are_enough(run: Callable[..., Selection]) -> None:
    model = Model([backwards])
    run(model, with_bodies(*[""] * 6))
    bare = len(model.seen[0][0]["content"])
    model = Model([backwards], context=bare + 5 * len("\n\n\n\n[the rest is left out]"))
    selection = run(model, UNEVEN)
    assert selection.details["body_chars"] == 0
    assert bodies_seen(model.seen[0][0]["content"]) == []
    assert len(selection.details["named"]) == 6


def test_names_that_do_not_fit_are_an_error_that_says_what_to_do(run: Callable[..., Selection]) -> None:
    with pytest.raises(ContextOverflow, match="names and descriptions of 6 skills alone") as raised:
        run(Model([backwards], context=300), UNEVEN)
    assert "selector.k" in raised.value.fix


# --- options and cost


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be a whole number of at least 1"),
        ({"top_k": 0}, "top_k must be a whole number of at least 1"),
        ({"k": 2, "top_k": 3}, "top_k=3 asks for more skills than the k=2 candidates"),
        ({"ids": "leters"}, "did you mean 'letters'"),
    ],
)
def test_options_without_sense_are_refused(
    run: Callable[..., Selection], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run(Model([backwards]), **options)


def test_more_candidates_than_skills_are_refused(run: Callable[..., Selection]) -> None:
    with pytest.raises(LibraryError, match=r"k=7 .* 6"):
        run(Model([backwards]), k=7)


def test_without_a_model_the_error_says_how_to_choose_one(tmp_path: Path) -> None:
    parts = ScoredParts(SKILLS, WordEmbedder(), HeuristicParser(), tmp_path)
    with pytest.raises(ConfigError, match="none is chosen"):
        LlmSelector(parts, k=2).open(task(HOT_MUG))


def test_all_questions_count_as_the_tasks_own_cost_also_when_answered_from_the_cache(tmp_path: Path) -> None:
    costs: list[SelectionCost] = []
    for replies in (["no", backwards], []):
        model = Model(replies)
        parts = ScoredParts(SKILLS, WordEmbedder(), HeuristicParser(), tmp_path, model)
        costs.append(measured(LlmSelector(parts, k=6), parts, task(HOT_MUG)).cost)
        assert len(model.seen) == len(replies)
    first, again = (replace(cost, seconds=0) for cost in costs)
    assert first == again
    assert (first.llm_calls, first.offline_tokens, first.pairs_scored) == (2, 0, 0)
    assert first.prompt_tokens > 0 and first.completion_tokens > 0


def test_it_says_which_prompt_it_used(run: Callable[..., Selection]) -> None:
    selection = run(Model([backwards]))
    assert LlmSelector.identity == f"prompt {selection.details['prompt_version']}"
