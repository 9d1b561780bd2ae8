"""No leader goes on accepting changes without its majority (KIP-595, check quorum).

write-without-a-quorum: a leader takes a change later than 1.5 fetch time-outs after it last heard of a majority of the
voters. A process that was stopped takes what had arrived while it stood still, before its timers fire (raft_loop.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.quorum import majority_of, raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.message import Message
from jepsen.sim.time.scheduler import NS_PER_MS
from quorumlog.ids import Epoch, Offset
from quorumlog.messages.quorum import FetchSnapshotRequest, QuorumFetchRequest
from quorumlog.rpc.calls import BY_REQUEST, OLDER
from quorumlog_quorum.node.raft_loop import GRACE_MS
from quorumlog_quorum.raft import RaftRole

_CONTACTS = [
    call.method.path
    for call in (BY_REQUEST[QuorumFetchRequest], OLDER[QuorumFetchRequest], BY_REQUEST[FetchSnapshotRequest])
]
_TIMEOUTS = 1.5
_SLACK_MS = 20  # timers of a node have milliseconds, and messages take their turn


@dataclass(slots=True)
class _Leadership:
    """One node's leadership of one epoch. heard_ns: when each voter fetched last, by host.

    since_ns: when it began, or when another voter set came into force: its voters have a whole time-out from then on.
    """

    epoch: Epoch
    since_ns: int
    end: Offset
    voters_at: Offset | None
    heard_ns: dict[str, int] = field(default_factory=dict)


class QuorumContact(Invariant):
    """writes: changes that leaders took and that were checked."""

    def __init__(self, controllers: list[Machine], findings: Findings) -> None:
        self._controllers, self._findings = controllers, findings
        self._leaderships: dict[str, _Leadership] = {}  # by host
        self.writes = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"leaders' writes": self.writes}

    def on_admitted(self, message: Message) -> None:
        leadership = self._leaderships.get(message.destination)
        if leadership is not None and message.path in _CONTACTS:
            leadership.heard_ns[message.source] = self._findings.now_ns()

    def after_controller(self, machine: Machine) -> None:
        raft = raft_of(machine)
        if raft is None or raft.role.role is not RaftRole.LEADER:
            self._leaderships.pop(machine.host, None)
            return
        known = self._leaderships.get(machine.host)
        if known is None or known.epoch != raft.epoch:
            self._leaderships[machine.host] = _Leadership(
                raft.epoch, self._findings.now_ns(), raft.log.accepted_end, raft.history.offset
            )
            return
        if raft.history.offset != known.voters_at:
            known.voters_at, known.since_ns = raft.history.offset, self._findings.now_ns()
        if raft.log.accepted_end > known.end:
            known.end = raft.log.accepted_end
            self._on_write(machine, known)

    def _on_write(self, machine: Machine, known: _Leadership) -> None:
        self.writes += 1
        now_ns = self._findings.now_ns()
        if machine.resumed_ns >= 0 and now_ns - machine.resumed_ns <= GRACE_MS * NS_PER_MS:
            return
        silence_ms = (now_ns - self._heard_majority_ns(machine, known)) // NS_PER_MS
        if silence_ms > machine.config.quorum.fetch_timeout_ms * _TIMEOUTS + _SLACK_MS:
            what = f"{machine.host}, which leads {known.epoch}, takes a change up to {known.end}"
            self._findings.broken("write-without-a-quorum", f"{what}; no majority was heard for {silence_ms} ms")

    def _heard_majority_ns(self, machine: Machine, known: _Leadership) -> int:
        """When a majority, the leader included, had been heard last."""
        raft = raft_of(machine)
        assert raft is not None
        voters = [other for other in self._controllers if other.node_id in raft.voters]
        since_ns = known.since_ns
        others = [max(known.heard_ns.get(other.host, 0), since_ns) for other in voters if other is not machine]
        needed = majority_of(raft.voters) - (machine in voters)
        return sorted(others, reverse=True)[needed - 1] if needed else self._findings.now_ns()
