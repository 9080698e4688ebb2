"""One limit for each endpoint and one account for a run, however many processes make the calls."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillarena.orchestration.backbones.aimd import Aimd, fair_share
from skillarena.orchestration.backbones.reports import Report, Share, Spending, Verdict
from skillarena.orchestration.budget import Caps

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle

log = logging.getLogger(__name__)

EXPIRY_S = 5.0
"""A process not heard of for so long has lost its share; its calls are taken as ended."""

FIRST_PAUSE_S = 0.25
"""Pause after a refusal that asks for none; it doubles with every further round that is refused."""

_TENURE_S = 2.0  # a process keeps a slot for so long that others wait for too
_LONGEST_PAUSE_S = 30.0
_ANSWER_TIMEOUT_S = 10.0


@dataclass(eq=False)
class _Member:
    """One process at one endpoint."""

    report: Report
    heard_at: float
    told: int = 0
    """Its share as it knows it."""
    since: float = 0.0
    """When it got its present share, or began to be without one."""

    @property
    def occupied(self) -> int:
        """Slots that nobody else can have: calls under way go on when the share is withdrawn."""
        return max(self.told, self.report.under_way)

    def rank(self, now: float) -> tuple[int, float]:
        """Who comes first where there is not enough for all: who has just begun, who waits longest, who had a turn."""
        if not self.told:
            return 1, self.since
        return (0 if now - self.since <= _TENURE_S else 2), self.since


@dataclass(eq=False)
class _Endpoint:
    aimd: Aimd
    opens_at: float = 0.0
    members: dict[str, _Member] = field(default_factory=dict)

    def hear(self, process: str, report: Report, now: float) -> None:
        """Take in a report."""
        member = self.members.setdefault(process, _Member(report, now, since=now))
        member.report, member.heard_at = report, now
        self.members = {name: one for name, one in self.members.items() if now - one.heard_at <= EXPIRY_S}
        demand = sum(one.report.demand for one in self.members.values())
        self.aimd.lower_ceiling(report.ceiling)
        self.aimd.replied(report.epoch, report.replies, demand)
        pause = report.pause_s
        if report.refused:
            self.aimd.refused(report.epoch, demand)
            pause = pause or min(FIRST_PAUSE_S * 2.0 ** min(self.aimd.refused_rounds - 1, 30), _LONGEST_PAUSE_S)
        self.opens_at = max(self.opens_at, now + pause)

    def share(self, process: str, now: float) -> Share:
        """What a process that has just reported may do; shares that processes know of never exceed the limit."""
        member = self.members[process]
        order = sorted(self.members.values(), key=lambda one: one.rank(now))
        fair = fair_share(self.aimd.limit, [one.report.demand for one in order], order.index(member))
        free = self.aimd.limit - sum(one.occupied for one in order if one is not member)
        granted = max(0, min(fair, free))
        if (granted > 0) != (member.told > 0):
            member.since = now
        member.told = granted
        return Share(granted, self.aimd.epoch, max(0.0, self.opens_at - now))


class Governor:
    """Decides for all processes of a run how many calls each may make. Not thread-safe; an actor works call by call.

    Processes report what they have spent since they began, so a report that comes twice or gets lost does no harm, and
    a governor that had to be restarted knows the spending of all living processes again after their next reports.

    Args:
        caps: the run's budget.
        clock: monotonic seconds.
    """

    def __init__(self, caps: Caps, clock: Callable[[], float] = time.monotonic) -> None:
        self._caps = caps
        self._clock = clock
        self._endpoints: dict[str, _Endpoint] = {}
        self._accounts: dict[str, Spending] = {}

    def report(self, process: str, reports: Mapping[str, Report], spending: Spending) -> Verdict:
        """Take in the reports of a process and tell it its shares.

        Args:
            process: name of the process, unique and the same every time.
            reports: by endpoint.
            spending: all that the process has spent.
        """
        now = self._clock()
        self._accounts[process] = spending
        shares = {}
        for name, report in reports.items():
            endpoint = self._endpoints.setdefault(name, _Endpoint(Aimd(report.ceiling)))
            endpoint.hear(process, report, now)
            shares[name] = endpoint.share(process, now)
        return Verdict(shares, self._caps.reached(self.spending()))

    def spending(self) -> Spending:
        """What all processes have spent."""
        return sum(self._accounts.values(), Spending())

    def limits(self) -> dict[str, int]:
        """Present limit of each endpoint."""
        return {name: endpoint.aimd.limit for name, endpoint in self._endpoints.items()}


class GovernorActor:
    """The driver's side of a governor in a process of its own, on the driver's node.

    Args:
        caps: the run's budget.
    """

    def __init__(self, caps: Caps) -> None:
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = ray.get_runtime_context().get_node_id()
        governor: Any = ray.remote(Governor).options(
            num_cpus=0, max_restarts=-1, scheduling_strategy=NodeAffinitySchedulingStrategy(here, soft=False)
        )
        self.handle: ActorHandle[Any] = governor.remote(caps)
        """For the constructor of ``Gates`` in worker processes."""
        self._known = Spending()
        self._asked: ObjectRef[Any] | None = None
        self._lost = False

    def spending(self, wait_s: float = 0.0) -> Spending:
        """What the run has spent, as last heard; asks anew in the background.

        Args:
            wait_s: seconds to wait for a fresh answer.
        """
        import ray
        from ray.exceptions import RayError

        if self._asked is None or wait_s:
            self._asked = self.handle.spending.remote()
        ready, _ = ray.wait([self._asked], timeout=wait_s)
        if ready:
            self._asked = None
            try:
                self._known = ray.get(ready[0], timeout=_ANSWER_TIMEOUT_S)
                self._lost = False
            except RayError as error:
                if not self._lost:
                    log.warning("the governor of API calls was lost and starts again (%s)", type(error).__name__)
                self._lost = True
        return self._known
