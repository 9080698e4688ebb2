"""How many skills fit: the released code's two passes over a bundle of limited size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from skillarena.selectors.graph_of_skills.fields import clip
from skillarena.selectors.interface import Skill

_MOST_OF_ONE = 2400
"""Characters of one document in a bundle."""
_GAP = 2
"""Characters between the parts of a bundle."""


def payload(skill: Skill, chars: int) -> str:
    """A skill in a bundle: two lines of header, and the document with its front matter, cut to a number of characters.

    The header is not cut. The reference names the file there; the id stands in its place, so that a choice does not
    depend on where the library lies.
    """
    document = f"---\nname: {skill.name}\ndescription: {skill.description}\n---\n{skill.body}"
    return f"## Skill: {skill.name}\nSource: {skill.id}\n{clip(document, chars)}"


def members(
    by_walk: Iterable[int], skill: Callable[[int], Skill], *, top_n: int, max_chars: int
) -> list[tuple[int, str]]:
    """The first nodes of the walk that fit, with what is left of each.

    Args:
        by_walk: nodes, best first.
        skill: gives a node's skill.
        top_n: most nodes.
        max_chars: characters of all payloads; the last one is cut, headers may exceed them.
    """
    taken: list[tuple[int, str]] = []
    used = 0
    for node in by_walk:
        if len(taken) == top_n or used >= max_chars:
            break
        text = payload(skill(node), min(_MOST_OF_ONE, max_chars - used))
        taken.append((node, text))
        used += len(text)
    return taken


def fitting(payloads: Sequence[str], title: str, max_chars: int) -> int:
    """How many payloads fit below a title in their final order; the first one that has to be cut is the last."""
    used = len(title)
    for count, text in enumerate(payloads):
        left = max_chars - used - _GAP
        if left <= 0:
            return count
        if len(text) > left:
            return count + 1
        used += _GAP + len(text)
    return len(payloads)
