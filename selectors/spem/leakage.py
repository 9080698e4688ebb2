"""What SPEM may learn from (its paper: nothing leaks from one split into another)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillarena.conf.errors import ConfigError
from skillarena.envs.interface import Task
from skillarena.selectors.live import Lesson

_TRAINING_WORDS = frozenset({"train", "training"})


def is_training_split(split: str) -> bool:
    """Whether ``train`` or ``training`` is a word of the name, as in ``train`` and ``valid_train``.

    Every other split is for evaluation, a new one too, until its name says otherwise.
    """
    return not _TRAINING_WORDS.isdisjoint(re.split(r"[^a-z]+", split.lower()))


def check_learnable(sources: Sequence[Task] | Sequence[Lesson]) -> None:
    """Raise ``ConfigError`` unless all these tasks or lessons are of training splits."""
    evaluation = [source for source in sources if not is_training_split(source.split)]
    if evaluation:
        splits = sorted({f"{source.benchmark} {source.split}" for source in evaluation})
        raise ConfigError(
            f"{len(evaluation)} of {len(sources)} episodes are of evaluation splits ({', '.join(splits)}),"
            " from which a selector must not learn",
            "set selector.freeze=true (selector=spem_frozen), or choose a split for training, such as train",
        )
