"""How much one run may spend on LLM calls, and when it must not begin another episode. Pure arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from skillarena.orchestration.backbones.reports import Spending


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that one invocation of ``skillarena run`` may spend; None is no limit."""

    max_tokens: int | None = None
    """Prompt and completion tokens of all LLM calls: agents' and selectors', discarded replies included."""
    max_cost: float | None = None
    """Money for them, in the currency of the prices."""

    def reached(self, spending: Spending) -> str:
        """Which cap is reached, as a clause; empty while none is."""
        if self.max_tokens is not None and spending.tokens >= self.max_tokens:
            return f"{spending.tokens:,} of {self.max_tokens:,} tokens are used (run.max_tokens)"
        if self.max_cost is not None and spending.cost >= self.max_cost:
            return f"{spending.cost:.4g} of {self.max_cost:.4g} are spent (run.max_cost)"
        return ""

    def hold(self, spending: Spending) -> bool:
        """Whether so much may be spent."""
        within_tokens = self.max_tokens is None or spending.tokens <= self.max_tokens
        return within_tokens and (self.max_cost is None or spending.cost <= self.max_cost)


class Budget:
    """Decides whether another episode may start, so that those playing can be expected to end within the caps.

    What an episode takes is estimated from those that ended, each weighted by its length: among those that play at one
    moment, long ones are that much more frequent. As few say little, one plays first, and then at most twice as many at
    once as have ended.

    Calls under way are let finish and spending is known some tenths of a second late, so a run may go over a cap by
    that much.

    Args:
        caps: the limits.
    """

    def __init__(self, caps: Caps) -> None:
        self.spending = Spending()
        """What the run's calls have taken so far."""
        self._caps = caps
        self._ended = Spending()
        self._known = Spending()
        self._squares = Spending()
        self._episodes = 0

    def account(self, spending: Spending) -> None:
        """Take in the run's total; an older one that comes late changes nothing."""
        tokens, cost = max(self.spending.tokens, spending.tokens), max(self.spending.cost, spending.cost)
        self.spending = Spending(tokens, cost)

    def learn(self, episode: Spending) -> None:
        """What an episode of an earlier run took."""
        self._known += episode
        self._squares += Spending(episode.tokens**2, episode.cost**2)
        self._episodes += 1

    def ended(self, episode: Spending) -> None:
        """What an episode of this run took."""
        self.learn(episode)
        self._ended += episode

    def may_start(self, playing: int) -> bool:
        """Whether another episode may start beside ``playing`` others."""
        if self._caps == Caps():
            return True
        if self._caps.reached(self.spending):
            return False
        if playing >= max(1, 2 * self._episodes):
            return False
        each = self._each
        tokens = max(self.spending.tokens, self._ended.tokens + playing * each.tokens)
        cost = max(self.spending.cost, self._ended.cost + playing * each.cost)
        return self._caps.hold(Spending(tokens, cost) + each)

    def explain(self) -> str:
        """Why nothing may start, as a sentence for people."""
        reached = self._caps.reached(self.spending)
        if reached:
            return f"the budget of this run is spent: {reached}"
        spent = f"{self.spending.tokens:,} tokens" + (f" for {self.spending.cost:.4g}" if self.spending.cost else "")
        return (
            f"the budget of this run (run.max_tokens, run.max_cost) has no room for another episode:"
            f" {spent} are spent, and one takes about {self._each.tokens:,} tokens"
        )

    @property
    def _each(self) -> Spending:
        """What an episode takes that is met while it plays."""
        tokens, cost = max(1, self._known.tokens), self._known.cost or 1.0
        return Spending(round(self._squares.tokens / tokens), self._squares.cost / cost)
