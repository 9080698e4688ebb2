"""What the agent gets for a question: skills by similarity, and by the graph their conflicts and neighbours.

Three kinds of evidence stay apart. Matches come from the texts alone; edges never influence them. Conflicts come before
neighbours, and where there are too many, whole items are left out and counted (arXiv 2606.03056, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from skillarena.selectors.interface import Skill
from skillarena.selectors.shortlist import Candidate
from skillarena.selectors.skilldag.edges import EXCLUDES, Edge
from skillarena.selectors.skilldag.graph import SkillGraph

Nearest = Callable[[str, int], Sequence[Candidate]]
"""The nearest so many skills for a text, nearest first."""


def search(
    query: str, nearest: Nearest, graph: SkillGraph, skills: Mapping[str, Skill], *, top_k: int, depth: int, most: int
) -> dict[str, Any]:
    """One question's answer.

    Args:
        query: any text with something in it.
        nearest: finds matches.
        graph: gives conflicts and neighbours.
        skills: all skills by id.
        top_k: matches.
        depth: steps that neighbours may be away, 0 for none.
        most: conflicts and neighbours listed, of each.
    """
    matches = nearest(query, top_k)
    ids = [match.skill.id for match in matches]
    conflicts = conflicts_of(ids, graph)
    neighbors = neighbors_of(ids, graph, depth)
    return {
        "query": query,
        "matches": [{**_skill(match.skill), "score": round(match.cosine, 4)} for match in matches],
        "conflicts": [
            {**_skill(skills[edge.other(match)]), "conflicts_with": match, "reason": edge.reason, "origin": edge.origin}
            for match, edge in conflicts[:most]
        ],
        "conflicts_left_out": max(0, len(conflicts) - most),
        "neighbors": [
            {**_skill(skills[edge.other(known)]), "depth": away, "reached_from": known, "via": edge.as_json()}
            for away, known, edge in neighbors[:most]
        ],
        "neighbors_left_out": max(0, len(neighbors) - most),
    }


def conflicts_of(matches: Sequence[str], graph: SkillGraph) -> list[tuple[str, Edge]]:
    """Every exclusion that touches a match, with that match: in order of the matches, then of the other skills' ids.

    Two matches that exclude each other are listed twice, once for each.
    """
    return [(match, edge) for match in matches for edge in graph.touching(match) if edge.type == EXCLUDES]


def neighbors_of(matches: Sequence[str], graph: SkillGraph, depth: int) -> list[tuple[int, str, Edge]]:
    """Skills that positive edges lead to in either direction: how far away, from which skill, and by which edge.

    Nearest first; at the same distance in the order of the skills they are reached from, beginning with the best match,
    then by type. A skill that is reached on several ways is listed for the first of them; matches are not listed.
    """
    found: list[tuple[int, str, Edge]] = []
    seen, level = set(matches), list(matches)
    for away in range(1, depth + 1):
        if not level:
            break
        following: list[str] = []
        for known in level:
            for edge in graph.touching(known):
                skill = edge.other(known)
                if edge.type != EXCLUDES and skill not in seen:
                    seen.add(skill)
                    following.append(skill)
                    found.append((away, known, edge))
        level = following
    return found


def _skill(skill: Skill) -> dict[str, Any]:
    return {"skill_id": skill.id, "name": skill.name, "description": skill.description}
