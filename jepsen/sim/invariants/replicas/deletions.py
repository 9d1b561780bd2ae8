"""What went does not come back: acknowledged-deletions-stay.

Whoever leads a partition has a log that begins at or above every deletion of its records that was acknowledged. Of
leaders that are elected cleanly, from the ISR or the ELR; so it is looked at only in runs without other elections
(`watch`), and where no disk loses what a log of it has noted.
"""

from __future__ import annotations

from collections.abc import Mapping

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.machine.machine import Machine
from jepsen.sim.truth.mirrors import log_of
from quorumlog.ids import Offset
from quorumlog_broker.replicas.replica import Replica

LEADERS_SEEN = "leaders of logs with acknowledged deletions"


class DeletionInvariants(Invariant):
    """seen: how often a leader of a log with an acknowledged deletion was looked at."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._before: dict[str, Offset] = {}  # by log: the largest that was acknowledged
        self._watches = False
        self.seen = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {LEADERS_SEEN: self.seen} if self.seen else {}

    def watch(self) -> None:
        self._watches = True

    def on_acked(self, log: str, before: Offset) -> None:
        """A deletion of the records before this offset was acknowledged."""
        self._before[log] = max(before, self._before.get(log, 0))

    def after(self, machine: Machine, changed: list[Replica]) -> None:
        """Called after each step of this broker's process."""
        if not self._watches or not self._before:
            return
        for replica in changed:
            core, before = replica.core, self._before.get(log_of(replica))
            if before is None or not (core.is_leader and core.ready):
                continue
            self.seen += 1
            if core.log_start < before:
                what = f"{replica.name} of {machine.host} leads and begins at {core.log_start}"
                told = f"the deletion of what is before {before} was acknowledged"
                self._findings.broken("acknowledged-deletions-stay", f"{what}; {told}")
