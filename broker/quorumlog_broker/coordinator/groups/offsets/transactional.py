"""TxnOffsetCommit, and the markers that decide about what it wrote (KIP-98, KIP-447).

Such offsets are records of a transaction like others: nobody reads them until its marker is in this partition, too. The
marker is answered once it is committed, so that a consumer which is told of the output of a transaction finds its
offsets.
"""

from __future__ import annotations

from quorumlog.errors import ErrorCode
from quorumlog.messages.groups import OffsetCommitPartitionResult, OffsetCommitTopicResult
from quorumlog.messages.transactions import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from quorumlog.slices import Sliced
from quorumlog_broker.coordinator.group_turn import Call, Producer, Turn
from quorumlog_broker.coordinator.groups.classic.group import ClassicGroup, State
from quorumlog_broker.coordinator.groups.classic.membership import unknown_or_fenced
from quorumlog_broker.coordinator.groups.offsets.calls import Allowed, OffsetCalls, everything
from quorumlog_broker.coordinator.groups.offsets.table import OffsetTable
from quorumlog_broker.produce.transactional import EndTransaction


def _says_nothing(request: TxnOffsetCommitRequest) -> bool:
    return not request.member_id and request.group_instance_id is None


class TransactionalOffsets:
    def __init__(self, turn: Turn, calls: OffsetCalls, table: OffsetTable) -> None:
        self._turn, self._calls, self._table = turn, calls, table
        self._committing: list[int] = []  # the producers of calls that are being written

    def refusal(self, group: ClassicGroup | None, request: TxnOffsetCommitRequest) -> ErrorCode:
        """A producer that says nothing of its consumer is believed; otherwise it is a member in its generation.

        Without a generation anybody may commit while the group is empty, as in a plain commit. A member may also
        commit while the leader assigns: the transaction cannot wait for the group.
        """
        if group is None and request.generation_id >= 0:
            return ErrorCode.ILLEGAL_GENERATION
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None or (request.generation_id < 0 and (group.state is State.EMPTY or _says_nothing(request))):
            return ErrorCode.NONE
        error = unknown_or_fenced(group, request.member_id, request.group_instance_id)
        if error == ErrorCode.NONE and request.generation_id != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        return error

    def commit(self, call: Call, request: TxnOffsetCommitRequest, allowed: Allowed = everything) -> Sliced[None]:
        """The caller has asked `refusal`, and the producer's transaction coordinator has this partition. One partition
        that the member may not commit refuses the call: a transaction has all of its offsets, or none."""
        producer = Producer(request.producer_id, request.producer_epoch)
        self._committing.append(producer.producer_id)
        try:
            error = yield from self._calls.first_refusal(request.topics, allowed)
            if error != ErrorCode.NONE:
                self.refuse(call, request, error)
                return
            response = yield from self._calls.write_transactional(request, producer)
        finally:
            self._committing.remove(producer.producer_id)
        self._turn.answer_after_commit(call.number, response)

    def is_committing(self, producer_id: int) -> bool:
        """Not all offsets of a call of this producer are written, so its transaction must not end here yet."""
        return producer_id in self._committing

    def refuse(self, call: Call, request: TxnOffsetCommitRequest, error: ErrorCode) -> None:
        response = TxnOffsetCommitResponse(
            topics=tuple(
                OffsetCommitTopicResult(
                    name=topic.name,
                    partitions=tuple(
                        OffsetCommitPartitionResult(index=one.index, error_code=error) for one in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )
        self._turn.answer_read(request.group_id, call.number, response)

    def end(self, call: Call, ending: EndTransaction) -> None:
        """Answered with an error code. A marker is written in any case: readers of the partition wait for it."""
        producer = Producer(ending.producer_id, ending.producer_epoch)
        self._turn.write_marker(ending.marker, producer, self._table.pending.groups_of(ending.producer_id))
        self._turn.answer_after_commit(call.number, ErrorCode.NONE)
