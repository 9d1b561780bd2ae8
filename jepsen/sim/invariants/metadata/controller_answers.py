"""A controller that has been replaced answers nothing from what it knew.

answered-while-deposed: when the request came, a controller of a later epoch had committed records already. So whatever
an earlier one says without the consent of a majority may be stale. It may only say that it is not active, or that the
outcome is not known. A heartbeat's answer that lets the broker go on as it is says nothing about the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jepsen.checkers.findings import Findings
from jepsen.sim.invariants.invariant import Invariant
from jepsen.sim.invariants.metadata.quorum import raft_of
from jepsen.sim.machine.machine import Machine
from jepsen.sim.network.watched_transport import OnOutcome
from jepsen.sim.truth.log_truth import LogTruth
from quorumlog.errors import ApiError, ErrorCode
from quorumlog.messages.controller import BrokerHeartbeatResponse
from quorumlog_quorum.raft import RaftRole

_SAYS_NOTHING = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,  # it starts or stops
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    }
)


class ControllerAnswers(Invariant):
    """asked_when_deposed: requests that came to a controller after its replacement."""

    def __init__(self, metadata: LogTruth, findings: Findings) -> None:
        self._metadata, self._findings = metadata, findings
        self.asked_when_deposed = 0

    @property
    def exercised(self) -> Mapping[str, int]:
        return {"asked when deposed": self.asked_when_deposed}

    def on_asked(self, machine: Machine, request: Any) -> OnOutcome | None:
        raft = raft_of(machine)
        newest = self._metadata.epoch
        if raft is None or raft.role.role is not RaftRole.LEADER or raft.epoch >= newest:
            return None
        self.asked_when_deposed += 1
        epoch = raft.epoch
        return lambda outcome: self._on_answered(machine, request, outcome, epoch, newest)

    def _on_answered(self, machine: Machine, request: Any, outcome: Any, epoch: int, newest: int) -> None:
        code = outcome.code if isinstance(outcome, ApiError) else ErrorCode(outcome.error_code)
        if code in _SAYS_NOTHING:
            return
        if isinstance(outcome, BrokerHeartbeatResponse) and not outcome.should_shutdown:
            return
        what = f"{machine.host}, the controller of epoch {epoch}, answers {type(request).__name__} with {code.name}"
        self._findings.broken("answered-while-deposed", f"{what}; epoch {newest} had committed records when it came")
