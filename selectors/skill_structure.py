"""Precondition and completion states from the headings and the description of a skill document."""

from __future__ import annotations

import re
from collections.abc import Iterator

from skillarena.selectors.interface import ParsedSkill, Skill
from skillarena.selectors.parse_fallback import described_skill

_REQUIREMENTS = re.compile(r"prerequisites?|pre-?conditions?|requirements|before you (?:start|begin)", re.IGNORECASE)
_OUTCOMES = re.compile(
    r"post-?conditions?|(?:expected |final )?(?:outcomes?|results?)|success criteria|(?:goal|end) state"
    r"|(?:done|finished|complete) when",
    re.IGNORECASE,
)
_PURPOSES = re.compile(r"purpose|(?:primary )?(?:objective|goal)|overview|what (?:it|this skill) does", re.IGNORECASE)
_NOTHING = re.compile(
    r"(?:none|nothing|no (?:special )?(?:prerequisites?|preconditions?|requirements?))\b", re.IGNORECASE
)

_CALLING = re.compile(r"\b(?:use|trigger|invoke|execute|apply|run|call)\w*\b", re.IGNORECASE)
_MOMENT = re.compile(r"\b(when|after|once)\b(.+)", re.IGNORECASE)
"""Behind a word for calling the skill. One pattern for both would take quadratic time."""
_IN_PLACE = re.compile(
    r"\b(?:holding|carrying|in hand|already|currently in inventory"
    r"|(?:has|have)(?: just| already)?(?: been)? (?:\w+ed|found|gotten|put|set)"
    r"|(?:is|are) (?:held|in (?:your |the )?inventory|ready|prepared))\b",
    re.IGNORECASE,
)
"""Words for something that is the case already; "when you need to find X" names a wish, not a state."""
_CONDITIONAL = re.compile(r"\b(?:if|whether)\b.*", re.IGNORECASE)
_WISH = re.compile(r",? and (?:the agent |you )?(?:(?:still )?needs?|must|want|the task requires)\b.*", re.IGNORECASE)
"""What follows a state in "you are holding X and need to do Y"."""
_MISSING = re.compile(r"\bnot (?:yet |currently |already )*(?:in|been|holding|carrying|have|found)\b", re.IGNORECASE)
_ASSUMES = re.compile(
    r"\b(?:skill|it) (?:requires|assumes|needs)(?: that)? (.+?)"
    r"(?:,? (?:outputting|allowing|resulting|and (?:moves|outputs|returns|results))\b.*)?$",
    re.IGNORECASE,
)
_SEEKS = re.compile(
    r"(?:this skill )?(?:systematically )?(?:find|search|locat|identif|pick|retriev|acquir|fetch|collect|navigat|explor"
    r"|scan|survey|select|pars|plan|analy|inspect|examin|determin|verif|look|re-)\w*",
    re.IGNORECASE,
)
"""Starts of purposes that end with having or knowing a thing, not begin with it."""
_WORKS_ON = re.compile(
    r"\b(?:an?|another|the|one) (?:(?:held|specified|given|target|tested|examined|prepared|specific) )*"
    r"(object|item|substance|material)\b",
    re.IGNORECASE,
)
"""What a skill does something to; unless it seeks that thing, the thing must be there first."""
_USAGE = re.compile(
    r"(?:use|used|trigger|invoke|execute|apply|run|call)\b|(?:this skill|it) (?:should|is|may|can|must) (?:be )?"
    r"(?:used|triggered|invoked|executed|applied|run|called)\b|(?:the skill |it )?(?:takes|requires|assumes)\b",
    re.IGNORECASE,
)
"""Starts of sentences that say when or on what a skill works, not what it achieves."""
_RESULT = re.compile(
    r"\b(?:(?:results?|resulting) in|(?:and|which|that) (?:produces|yields|outputs)|outputs|outputting|producing|"
    r"yielding|leaving|so that)\s+(.+)",
    re.IGNORECASE,
)


def parse_document(skill: Skill) -> ParsedSkill:
    """What must hold before a skill and what holds after it; ``fallback`` when no text says what it achieves."""
    description = list(_sentences(skill.description))
    achieving = [sentence for sentence in description if not _USAGE.match(sentence)]
    purpose = next(iter([*achieving, *_section(skill.body, _PURPOSES), *description]), None)
    if purpose is None:
        return described_skill(skill)
    required = _section(skill.body, _REQUIREMENTS)[:2]
    if required:
        precondition = None if _NOTHING.match(required[0]) else " ".join(required)
    else:
        precondition = _implied(description, purpose)
    return ParsedSkill(precondition, " ".join([purpose, *_outcome(skill.body, description, purpose)]))


def _implied(description: list[str], purpose: str) -> str | None:
    """What the description takes for granted: named as given, as the moment to use the skill, or as its object."""
    for sentence in description:
        assumed = _ASSUMES.search(sentence)
        if assumed and "input" not in assumed[1]:
            return _sentence(f"this is given: {assumed[1]}")
        calling = _CALLING.search(sentence)
        trigger = _MOMENT.search(sentence, calling.end()) if calling else None
        state = _state(*trigger.groups()) if trigger else None
        if state:
            return state
    thing = None if _SEEKS.match(purpose) else _WORKS_ON.search(purpose)
    return f"The {thing[1].lower()} to work on has been obtained." if thing else None


def _state(word: str, clause: str) -> str | None:
    """The state that "use this when/after/once CLAUSE" asks for; None for a mere wish."""
    known = _WISH.sub("", clause).strip(" ,:.")
    if not known or _MISSING.search(known):
        return None
    if word.lower() != "when":
        return _sentence(f"{word} {known}")
    return _sentence(known) if _IN_PLACE.search(_CONDITIONAL.sub("", known)) else None


def _outcome(body: str, description: list[str], purpose: str) -> list[str]:
    """At most one sentence on what is the case afterwards, if anything says so."""
    others = (sentence for sentence in description if sentence != purpose)
    results = [_sentence(f"the result is {found[1]}") for s in others if (found := _RESULT.search(s))]
    return (_section(body, _OUTCOMES) or results)[:1]


def _section(body: str, title: re.Pattern[str]) -> list[str]:
    """Sentences of the first section with text under a heading that starts with ``title``."""
    for heading, text in _sections(body):
        sentences = list(_sentences(text)) if title.match(heading) else []
        if sentences:
            return sentences
    return []


def _sections(body: str) -> Iterator[tuple[str, str]]:
    heading, lines, fenced = "", list[str](), False
    for line in body.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif fenced:
            continue
        elif found := re.match(r"\s{0,3}#{1,6}\s+(?:\d+[.)]?\s+)*(.+)|\s*\*\*([^*]+?):?\*\*:?\s*$", line):
            yield heading, "\n".join(lines)
            heading, lines = found[1] or found[2], []
        else:
            lines.append(line)
    yield heading, "\n".join(lines)


def _sentences(text: str) -> Iterator[str]:
    """Sentences and list items without Markdown marks, ended by a stop; tables, quotes and lead-ins are left out."""
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)", text)
    for paragraph in paragraphs:
        if re.match(r"\s*[|>]", paragraph):
            continue
        item = re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+", "", paragraph)
        plain = " ".join(re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}", "", _without_links(item)).split())
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])", plain):
            if re.search(r"\w", part) and not part.endswith(":"):
                yield _sentence(part)


def _without_links(text: str) -> str:
    """The words of ``[words](address)`` alone. A regular expression would take quadratic time for open brackets."""
    kept: list[str] = []
    done = at = 0
    while (start := text.find("[", at)) >= 0 and (end := text.find("]", start)) >= 0:
        at = end + 1
        if text.startswith("(", at):
            close = text.find(")", at)
            if close < 0:
                break
            kept += text[done:start], text[start + 1 : end]
            done = at = close + 1
    return "".join([*kept, text[done:]])


def _sentence(text: str) -> str:
    text = text.strip().rstrip(" :;,")
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")
