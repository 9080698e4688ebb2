"""Errors, one type for each boundary a fault can cross.

Every error carries two sentences: what is wrong and where (``message``), and what to do about it (``fix``).
Both are passed to ``Exception.__init__`` so that an error keeps its type and text through pickling between processes.
"""

from __future__ import annotations


class SkillArenaError(Exception):
    """Base of all expected errors; the command line prints it without a traceback.

    Args:
        message: what was wrong and where, one sentence.
        fix: what the user can do, one sentence; empty when there is nothing to do.
    """

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(message, fix)
        self.message = message
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.message}\n  fix: {self.fix}" if self.fix else self.message


class ConfigError(SkillArenaError):
    """A configuration value or a combination of values makes no sense."""


class DataError(SkillArenaError):
    """Benchmark data is missing, incomplete or corrupt."""


class LibraryError(SkillArenaError):
    """A skill library cannot be read or does not fit the request."""


class BackboneError(SkillArenaError):
    """An LLM backbone cannot be reached or answers with something unusable."""


class ContextOverflow(BackboneError):
    """The prompt does not fit into the model's context; asking again cannot help."""


class RerankerError(SkillArenaError):
    """An embedder or reranker cannot be loaded or scores wrongly."""


class ModelHostLost(SkillArenaError):
    """The process that holds an embedder or reranker died or hangs; the selection can be tried again."""


class EnvError(SkillArenaError):
    """An environment cannot be started, died, or missed its deadline."""


class TrackingError(SkillArenaError):
    """The tracking store refuses or loses records."""


_LONGEST_WORD = 200
"""Characters of a word that is compared with others, which takes quadratic time; nobody misspells a longer one."""


def nearest(word: str, choices: list[str] | tuple[str, ...]) -> str:
    """Return a hint such as ``; did you mean 'vector'?`` or an empty string."""
    import difflib

    if len(word) > _LONGEST_WORD:
        return ""
    choices = [choice for choice in choices if len(choice) <= _LONGEST_WORD]
    close = difflib.get_close_matches(word, choices, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
