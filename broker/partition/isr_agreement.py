"""The ISR of a partition as its leader and the controller agree on it: the controller's last word, and at most one
change that was asked for and not settled yet. Pure.

Who shall join or leave is `partition.py`'s to decide. Here is what becomes of the wish: until the controller's word is
known the change is pending, so that whoever counts replicas counts the maximal ISR, and nothing else is asked.

Sources: KIP-497, Kafka's `Partition`.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from broker.partition.events import IsrAnswered, ProposeIsr
from broker.partition.isr_state import Committed, Isr, IsrState, PendingExpand, PendingShrink
from quorumlog.errors import ErrorCode
from quorumlog.ids import BrokerEpoch, Epoch, NodeId

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
)  # a newer state is on its way; the change stays pending, so that nothing else is asked meanwhile


class Outcome(Enum):
    """Of an answer. SETTLED: nothing is pending any more. STILL_PENDING: wait. ASK_AGAIN: send the same proposal."""

    SETTLED = auto()
    STILL_PENDING = auto()
    ASK_AGAIN = auto()


class IsrAgreement:
    """Invariants: a proposal is in flight if and only if a change is pending; the partition epoch never falls."""

    def __init__(self) -> None:
        self.state: IsrState = Committed(())
        self.partition_epoch = -1  # of the controller's last word
        self._proposal: ProposeIsr | None = None  # in flight

    def commit(self, isr: Isr, partition_epoch: int) -> None:
        """The controller's word, by metadata or by an answer. It settles what is pending, whichever way."""
        assert partition_epoch >= self.partition_epoch, f"partition epoch {self.partition_epoch} -> {partition_epoch}"
        self.state = Committed(isr)
        self.partition_epoch = partition_epoch
        self._proposal = None

    def withdraw(self) -> None:
        """Whatever is answered, we no longer ask."""
        self.commit(self.state.isr, self.partition_epoch)

    def propose(
        self, change: PendingExpand | PendingShrink, leader_epoch: Epoch, epoch_seen: Callable[[NodeId], BrokerEpoch]
    ) -> ProposeIsr:
        """epoch_seen: the broker epoch of a member's fetches, -1 where none was seen."""
        assert self._proposal is None, "one change of the ISR at a time"
        assert change.isr == self.state.isr, (change, self.state)
        self.state = change
        members = tuple((node, epoch_seen(node)) for node in change.proposed)
        self._proposal = ProposeIsr(leader_epoch=leader_epoch, partition_epoch=self.partition_epoch, members=members)
        return self._proposal

    def answered(self, answer: IsrAnswered, leader_epoch: Epoch) -> Outcome:
        """leader_epoch: of this leadership."""
        if answer.proposal is not self._proposal:
            return Outcome.STILL_PENDING  # metadata has overtaken it: what is pending now is another change, if any
        if answer.error is ErrorCode.NONE:
            return self._granted(answer, leader_epoch)
        if answer.error in REFUSED:
            self.withdraw()
            return Outcome.SETTLED
        return Outcome.STILL_PENDING if answer.error in AWAIT_METADATA else Outcome.ASK_AGAIN

    def _granted(self, answer: IsrAnswered, leader_epoch: Epoch) -> Outcome:
        if answer.leader_epoch != leader_epoch or answer.partition_epoch < self.partition_epoch:
            return Outcome.STILL_PENDING
        self.commit(answer.isr, answer.partition_epoch)
        return Outcome.SETTLED

    def check_invariants(self) -> None:
        assert (self._proposal is None) == isinstance(self.state, Committed), vars(self)
