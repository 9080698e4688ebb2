"""Graph of Skills: what fits into a bundle."""

from __future__ import annotations

from skillarena.selectors.graph_of_skills.budget import fitting, members, payload
from skillarena.selectors.interface import Skill

SKILLS = [Skill(f"s{number}", "n", "d", "x" * size) for number, size in enumerate((5000, 100, 3000, 10))]
HEADER = len("## Skill: n\nSource: s0\n")
FRONT = len("---\nname: n\ndescription: d\n---\n")


def picked(top_n: int, max_chars: int, order=(0, 1, 2, 3)) -> list[tuple[int, int]]:
    found = members(order, lambda node: SKILLS[node], top_n=top_n, max_chars=max_chars)
    return [(node, len(text)) for node, text in found]


def test_a_payload_is_a_header_and_the_clipped_document() -> None:
    assert payload(SKILLS[3], 1000) == "## Skill: n\nSource: s3\n---\nname: n\ndescription: d\n---\nxxxxxxxxxx"
    assert payload(SKILLS[3], 10) == "## Skill: n\nSource: s3\n---\nnam..."


def test_every_skill_counts_with_at_most_2400_characters_and_its_header() -> None:
    assert picked(4, 12_000) == [
        (0, HEADER + 2400),
        (1, HEADER + FRONT + 100),
        (2, HEADER + 2400),
        (3, HEADER + FRONT + 10),
    ]


def test_the_walk_ends_at_top_n() -> None:
    assert [node for node, _ in picked(2, 12_000, order=(3, 2, 1, 0))] == [3, 2]


def test_the_last_skill_is_cut_to_what_is_left() -> None:
    used = HEADER + 2400
    assert picked(4, used + 50) == [(0, used), (1, HEADER + 50)]
    assert picked(4, used) == [(0, used)]
    assert picked(4, 1) == [(0, HEADER + 1)]  # the header is counted and not cut


def test_the_final_order_is_fitted_again_below_the_title() -> None:
    texts = ["x" * 10, "y" * 10, "z" * 10]
    assert fitting(texts, "t" * 4, 4 + 3 * 12) == 3
    assert fitting(texts, "t" * 4, 4 + 3 * 12 - 1) == 3  # the last one is cut
    assert fitting(texts, "t" * 4, 4 + 2 * 12 + 2) == 2
    assert fitting(texts, "t" * 4, 4 + 12 + 3) == 2  # the one that is cut ends the bundle
    assert fitting(texts, "t" * 50, 20) == 0
