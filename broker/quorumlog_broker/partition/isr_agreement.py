"""The ISR of a partition as its leader knows it: what the controller committed last, and at most one pending change.
Pure.

`partition.py` decides which replica should join or leave. This module keeps the proposal until the controller's
decision is known. Meanwhile the maximal ISR counts, and no other change is proposed.

Sources: KIP-497, Kafka's `Partition`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, NodeId
from quorumlog_broker.partition.events import IsrAnswered, ProposeIsr
from quorumlog_broker.partition.isr_state import Committed, Isr, IsrState, PendingExpand, PendingShrink

REFUSED = frozenset({ErrorCode.INELIGIBLE_REPLICA})
AWAIT_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)  # newer metadata is on its way; the change stays pending until then, so that nothing else is proposed


class ProposalStatus(Enum):
    """After an answer. SETTLED: nothing is pending. PENDING: wait for metadata. RETRY: send the same proposal again."""

    SETTLED = auto()
    PENDING = auto()
    RETRY = auto()


class IsrAgreement:
    """Invariants: a proposal is in flight if and only if a change is pending; the partition epoch never falls."""

    def __init__(self) -> None:
        self.state: IsrState = Committed(())
        self.partition_epoch = -1  # of the last committed state
        self._proposal: ProposeIsr | None = None  # in flight

    def commit(self, isr: Isr, partition_epoch: int) -> None:
        """The controller committed this, as metadata or an answer says. It ends the pending change, if any."""
        assert partition_epoch >= self.partition_epoch, f"partition epoch {self.partition_epoch} -> {partition_epoch}"
        self.state = Committed(isr)
        self.partition_epoch = partition_epoch
        self._proposal = None

    def withdraw(self) -> None:
        """Drop the pending change; its answer is ignored."""
        self.commit(self.state.isr, self.partition_epoch)

    def propose(
        self, change: PendingExpand | PendingShrink, leader_epoch: Epoch, epoch_seen: Callable[[NodeId], BrokerEpoch]
    ) -> ProposeIsr:
        """epoch_seen: the broker epoch of a member's last fetch, -1 if none was seen."""
        assert self._proposal is None, "one change of the ISR at a time"
        assert change.isr == self.state.isr, (change, self.state)
        self.state = change
        members = tuple((node, epoch_seen(node)) for node in change.proposed)
        self._proposal = ProposeIsr(leader_epoch=leader_epoch, partition_epoch=self.partition_epoch, members=members)
        return self._proposal

    def answered(self, answer: IsrAnswered, leader_epoch: Epoch) -> ProposalStatus:
        """leader_epoch: that of the current leadership."""
        if answer.proposal is not self._proposal:
            return ProposalStatus.PENDING  # newer metadata ended that proposal; another may be pending
        if answer.error is ErrorCode.NONE:
            return self._granted(answer, leader_epoch)
        if answer.error in REFUSED:
            self.withdraw()
            return ProposalStatus.SETTLED
        return ProposalStatus.PENDING if answer.error in AWAIT_METADATA else ProposalStatus.RETRY

    def _granted(self, answer: IsrAnswered, leader_epoch: Epoch) -> ProposalStatus:
        if answer.leader_epoch != leader_epoch or answer.partition_epoch < self.partition_epoch:
            return ProposalStatus.PENDING
        self.commit(answer.isr, answer.partition_epoch)
        return ProposalStatus.SETTLED

    def check_invariants(self) -> None:
        assert (self._proposal is None) == isinstance(self.state, Committed), vars(self)
