"""What stands between this process's clients and an endpoint: limits the calls under way and counts what they take."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.backbones.errors import BudgetSpent
from skillarena.orchestration.backbones.reports import Report, Share, Spending, Verdict
from skillarena.orchestration.backbones.retry import TryAgain
from skillarena.orchestration.budget import Caps
from skillarena.orchestration.serving.governor import EXPIRY_S, FIRST_PAUSE_S, Governor

if TYPE_CHECKING:
    from ray.actor import ActorHandle

log = logging.getLogger(__name__)

MOST_CONCURRENT = 256
"""Calls at once where the configuration names no ceiling."""

_PERIOD_S = 0.25  # between two reports to a governor in another process
_KEEPALIVE_S = EXPIRY_S / 3
_ANSWER_TIMEOUT_S = 4.0
_CUT_OFF_LIMIT = 1  # calls at once while the governor cannot be heard


class Gate:
    """The slots of one endpoint in this process; made by ``Gates``, used by any number of threads.

    Args:
        endpoint: its name.
        ceiling: most calls at once.
        gates: this process's gates.
    """

    def __init__(self, endpoint: str, ceiling: int, gates: Gates) -> None:
        self.endpoint = endpoint
        self.ceiling = ceiling
        self._gates = gates
        self._changed = threading.Condition(gates.lock)
        self._share = Share(limit=0, epoch=0)
        self._opens_at = 0.0
        self._waiting = 0
        self._under_way = 0
        self._demand = 0  # these four since the last report
        self._replies = 0
        self._refused = False
        self._pause_s = 0.0

    @contextmanager
    def slot(self, deadline: float) -> Iterator[Call]:
        """Wait for a slot and hold it.

        Args:
            deadline: ``time.monotonic()`` at which waiting ends.

        Raises:
            BudgetSpent: the run's budget is spent.
            TryAgain: the deadline has come first.
        """
        with self._changed:
            self._waiting += 1
            try:
                self._tell(urgent=self._share.limit == 0)
                self._wait(deadline)
            finally:
                self._waiting -= 1
            self._under_way += 1
            call = Call(self, self._share.epoch)
        try:
            yield call
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify()
                self._tell()

    def spend(self, tokens: int, cost: float) -> None:
        """Count what a reply took, whether it can be used or not.

        Args:
            tokens: prompt and completion tokens.
            cost: money for them.
        """
        self._gates.spend(Spending(tokens, cost))

    def replied(self, epoch: int) -> None:
        """A call that started in ``epoch`` was answered."""
        with self._changed:
            self._replies += epoch == self._share.epoch

    def refused(self, epoch: int, pause_s: float) -> None:
        """A call that started in ``epoch`` was refused; the endpoint asks for ``pause_s`` seconds of peace."""
        with self._changed:
            self._refused = self._refused or epoch == self._share.epoch
            self._pause_s = max(self._pause_s, pause_s)
            # At once, or this process would be refused again and again until the governor has answered.
            self._opens_at = max(self._opens_at, time.monotonic() + max(pause_s, FIRST_PAUSE_S))
            self._tell(urgent=True)

    def take_report(self) -> Report:
        """What happened since the last report; holds the lock of ``Gates``."""
        report = Report(
            self.ceiling, self._share.epoch, self._under_way, self._demand, self._replies, self._refused, self._pause_s
        )
        self._demand = self._under_way + self._waiting
        self._replies, self._refused, self._pause_s = 0, False, 0.0
        return report

    def obey(self, share: Share) -> None:
        """Go by a new share from now on; holds the lock of ``Gates``."""
        if share.epoch != self._share.epoch:
            self._replies, self._refused = 0, False
        self._share = share
        self._opens_at = max(self._opens_at, time.monotonic() + share.pause_s)
        self._changed.notify_all()

    def cut_off(self) -> None:
        """The governor cannot be heard: it gives this share to others by now."""
        self.obey(Share(_CUT_OFF_LIMIT, self._share.epoch))

    def _tell(self, *, urgent: bool = False) -> None:
        self._demand = max(self._demand, self._under_way + self._waiting)
        self._gates.tell(self, urgent=urgent)

    def _wait(self, deadline: float) -> None:
        while True:
            self._gates.check_budget()
            now = time.monotonic()
            closed_s = self._opens_at - now
            if closed_s <= 0 and self._under_way < self._share.limit:
                return
            if now >= deadline:
                raise TryAgain("no slot: too many other calls, or pauses that the server asked for")
            left_s = deadline - now
            self._changed.wait(min(left_s, closed_s) if closed_s > 0 else left_s)


class Call:
    """A call under way; tells its gate how it went."""

    def __init__(self, gate: Gate, epoch: int) -> None:
        self._gate = gate
        self._epoch = epoch

    def replied(self) -> None:
        """The endpoint kept up with it."""
        self._gate.replied(self._epoch)

    def refused(self, pause_s: float) -> None:
        """There were too many calls; the endpoint asks for ``pause_s`` seconds without any (0: it does not say)."""
        self._gate.refused(self._epoch, pause_s)


class Gates:
    """All gates of this process: clients of the same endpoint share one.

    Without a governor this process is alone, and limits follow every call at once. With one, a thread reports every
    quarter of a second (at once after a refusal) and takes in this process's shares, so no call waits for another
    process except the very first.

    Args:
        governor: handle of the run's ``Governor``.
    """

    def __init__(self, governor: ActorHandle[Any] | None = None) -> None:
        self.lock = threading.RLock()
        self._gates: dict[str, Gate] = {}
        self._process = uuid.uuid4().hex
        self.spending = Spending()
        """What this process has spent."""
        self._spent = ""
        self._alone = Governor(Caps()) if governor is None else None
        self._governor = governor
        self._reporter: threading.Thread | None = None
        self._wake = threading.Event()
        self._closed = False
        self._reported_at = self._heard_at = time.monotonic()
        self._reported = Spending()
        self._is_cut_off = False

    def of(self, section: Mapping[str, Any]) -> Gate:
        """The gate of the endpoint that a configuration section names.

        Args:
            section: a backbone's section, or that of a parser's model.
        """
        where = section.get("base_url") or section.get("_target_")
        endpoint = f"{where} {section.get('model')} ${section.get('api_key_env')}"
        return self.at(endpoint, section.get("max_concurrency") or MOST_CONCURRENT)

    def at(self, endpoint: str, ceiling: int) -> Gate:
        """The gate of an endpoint; of several ceilings the lowest holds."""
        with self.lock:
            gate = self._gates.setdefault(endpoint, Gate(endpoint, ceiling, self))
            gate.ceiling = min(gate.ceiling, ceiling)
            return gate

    def close(self) -> None:
        """Stop reporting."""
        self._closed = True
        self._wake.set()
        if self._reporter is not None:
            self._reporter.join(_ANSWER_TIMEOUT_S)

    def spend(self, spending: Spending) -> None:
        """Count what a reply took."""
        with self.lock:
            self.spending += spending

    def check_budget(self) -> None:
        """Raises ``BudgetSpent`` when the run may call no more."""
        if self._spent:
            raise BudgetSpent(f"no further call is made: {self._spent}", "run the same command again, or raise the cap")

    def tell(self, gate: Gate, *, urgent: bool = False) -> None:
        """Something happened at a gate, whose lock the caller holds."""
        if self._alone is not None:
            reports = {gate.endpoint: gate.take_report()}
            self._take_in(self._alone.report(self._process, reports, self.spending))
            return
        if self._reporter is None:
            self._reporter = threading.Thread(target=self._keep_reporting, name="gates", daemon=True)
            self._reporter.start()
        if urgent:
            self._wake.set()

    def _take_in(self, verdict: Verdict) -> None:
        self._spent = verdict.spent
        for name, share in verdict.shares.items():
            self._gates[name].obey(share)

    def _keep_reporting(self) -> None:
        while not self._closed:
            self._exchange()
            self._wake.wait(_PERIOD_S)
            self._wake.clear()

    def _exchange(self) -> None:
        import ray

        with self.lock:
            reports = {name: gate.take_report() for name, gate in self._gates.items()}
            spending = self.spending
        now = time.monotonic()
        idle = spending == self._reported and not any(report.demand for report in reports.values())
        if idle and now - self._reported_at < _KEEPALIVE_S:
            return
        self._reported_at, self._reported = now, spending
        try:
            answer = self._governor.report.remote(self._process, reports, spending)  # type: ignore[union-attr]
            verdict = ray.get(answer, timeout=_ANSWER_TIMEOUT_S)
        except Exception as error:  # Ray raises bare ones too, and without this thread all calls would stop
            self._cut_off(error)
            return
        with self.lock:
            self._heard_at, self._is_cut_off = time.monotonic(), False
            self._take_in(verdict)

    def _cut_off(self, error: Exception) -> None:
        if time.monotonic() - self._heard_at <= EXPIRY_S:
            return
        if not self._is_cut_off:
            log.warning("the governor of API calls does not answer (%s); one call at a time", type(error).__name__)
        self._is_cut_off = True
        with self.lock:
            for gate in self._gates.values():
                gate.cut_off()
