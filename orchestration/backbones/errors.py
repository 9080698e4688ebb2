"""Faults of a chat endpoint that need different reactions from whoever called it."""

from __future__ import annotations

from skillarena.conf.errors import BackboneError


class RequestRefused(BackboneError):
    """The endpoint understood the request and will never accept it; asking again cannot help."""


class WrongKey(RequestRefused):
    """The API key is missing, unknown or lacks a right."""


class UnknownModel(RequestRefused):
    """The endpoint does not serve this model."""


class NoCredit(RequestRefused):
    """The account behind the key has nothing left to pay with."""


class BudgetSpent(BackboneError):
    """The run has spent what it may; no further call is made, and nothing that was going on has an outcome."""


class RetriesExhausted(BackboneError):
    """Every attempt of one call failed for a passing reason; the endpoint may recover later."""

    def __init__(self, message: str, fix: str = "", wasted_tokens: int = 0) -> None:
        super().__init__(message, fix)
        self.wasted_tokens = wasted_tokens
        """Tokens of the unusable replies among the attempts."""
