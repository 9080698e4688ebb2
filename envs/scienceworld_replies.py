"""Telling from an observation what ScienceWorld made of an action.

The simulator knows whether it carried the action out, but keeps only the sentence; these are the sentences of 1.2.
"""

from __future__ import annotations

import re

_REFUSALS = (
    # the parser
    r"No known action matches that input\.",
    r"Unknown action\. +Type 'help' .*",  # also the answer to a wrong number after an ambiguous request
    r"I'm not sure what that means",
    r"<unknown catch>",
    r"<?ERROR\b.*",
    # things
    r"The .+ is already (?:open|closed|activated|deactivated)\.",
    r"The .+ is not (?:openable|closeable|moveable|edible|open|a container|currently passable)\.",
    r"The .+ is not something that can be activated\.",
    r"The .+ is locked\.",
    r"The .+ isn't open, so you can't see inside\.",
    r"It's not clear how to (?:look inside of|read|flush) that\.",
    r"That is already flushing\.",
    r"I'm not sure how to use .+\.",
    # places
    r"It's not clear how to get there from here\.",
    r"Its not clear how to go to.+",
    r"The door doesn't appear to go anywhere\.",
    # moving and pouring
    r"You can't (?:move|dunk) something into itself\.",
    r"You can't (?:pick up|pour) a (?:liquid|gas) directly\..*",
    r"I'm not sure how to pour a solid\.",
    r"That can't be moved there.*\.",
    r"That object (?:already appears|does not appear) to be in the inventory\.",
    r"The .+ can't be poured out.* because .+\.",
    r"The .+ is in is not movable\.",
    r"The .+ is empty, so there's nothing to pour\.",
    r"The .+ does not contain any liquids to dunk into\.",
    r"The liquids in .+ aren't able to move\.",
    # electricity
    r"Something can't be connected to itself\.",
    r"It's not clear how to (?:connect something to .+|disconnect that)",
    r".+ is already connected, and must be disconnected before it can be connected to something else",
    r"Connections must specify specific points of contact on .+",
    r"You must disconnect entire objects \(such as .+\) instead of just single terminals",
)
_REFUSAL = re.compile("|".join(_REFUSALS))
_LONGEST_REFUSAL = 1000
"""Characters; each is one sentence, and the patterns take more than linear time."""


def is_refusal(observation: str) -> bool:
    """True when the action was not understood or not carried out; a question is no refusal."""
    said = observation.strip()
    return len(said) <= _LONGEST_REFUSAL and _REFUSAL.fullmatch(said) is not None


def is_question(observation: str) -> bool:
    """True when the simulator asks which of several things is meant: it takes the next action for the answer.

    The answer is one of the listed numbers; anything else cancels the action.
    """
    return observation.startswith("Ambiguous request:")
