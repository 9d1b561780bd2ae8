"""One read of one partition for a fetch: what the broker can answer from memory, or how much lies on the disk. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, NodeId, Offset
from quorumlog.messages.buffer import Buffer, Pieces
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import AbortedTransaction, FetchPartition, FetchPartitionResponse
from quorumlog_broker.partition.key import PartitionKey
from quorumlog_broker.partition.tail import MAX_BATCHES_READ, TailRead
from quorumlog_broker.replicas.replica import Replica
from quorumlog_storage.log.aborted import NotInMemory, aborted_for, transactional
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.fetch_rule import Diverging, OutOfRange, fetch_answer
from quorumlog_storage.rules.isolation import Isolation, upper_bound
from quorumlog_storage.segment.transaction_index import AbortedTransaction as Entry

NOTHING = TailRead([], 0, 0, is_cut=False)


@dataclass(slots=True)
class PartitionRead:
    """response: without its records while they have still to be read from the disk.

    completes_fetch: the fetch is answered at once, because of this partition. readable_end: the exclusive end of what
    the reader could have at this read. replica: None if there was nothing to read from.
    """

    response: FetchPartitionResponse
    completes_fetch: bool = False
    replica: Replica | None = None
    leader_epoch: Epoch = NO_EPOCH
    readable_end: Offset = 0
    disk_bytes: int = 0  # > 0: at most so many bytes have still to be read from the disk
    allowed_bytes: int = 0  # what the limits of the fetch and of the partition left for this read
    batches: int = 0  # from memory; what comes from the disk is one buffer, however many batches it holds
    is_cut: bool = False  # there is more to read, but not for this read
    held_back_ms: int = 0  # > 0: the throttle gives this reader nothing for so long
    charged_bytes: int = 0  # what the throttle was told that this read takes
    only_committed: bool = False  # the response names the aborted transactions, too
    upcoming: PartitionKey | None = None  # this broker is about to lead it; the response says that it does not yet

    @property
    def size_bytes(self) -> int:
        return len(self.response.records)

    @property
    def filled_bytes(self) -> int:
        """How much of its limits the read has used up. Batches are not divided, so a read can end below its limit
        though there is more to read; then it has used up all of it."""
        return max(self.size_bytes, self.allowed_bytes) if self.is_cut else self.size_bytes

    def has_more(self, wanted: FetchPartition) -> bool:
        """There was more to read than the reader has, whether or not the response holds it."""
        return self.replica is None or wanted.fetch_offset < self.readable_end


@dataclass(slots=True)
class ByteBudget:
    """What is left of a fetch's `max_bytes`. The first batch is given even if it is larger.

    left_batches: of those that a fetch may take from memory; each costs a turn of the loop its time.
    """

    left_bytes: int
    left_batches: int = MAX_BATCHES_READ
    given_any: bool = False

    def allowed_for(self, partition: FetchPartition) -> int:
        """Bytes that this partition may have; 0: none, not even one batch."""
        if self.given_any and (self.left_bytes <= 0 or self.left_batches <= 0):
            return 0
        return max(1, min(self.left_bytes, partition.max_bytes))

    def spend(self, size_bytes: int, batches: int) -> None:
        self.left_bytes -= size_bytes
        self.left_batches -= batches
        self.given_any = self.given_any or size_bytes > 0


def position_fault(log: Log, wanted: FetchPartition) -> Diverging | OutOfRange | None:
    """Why the reader cannot read on from its position; None: it can."""
    if _follows_the_last_epoch(log, wanted):
        return None
    answer = fetch_answer(
        log_start=log.start_offset,
        log_end=log.end_offset,
        epochs=log.epochs,
        fetch_offset=wanted.fetch_offset,
        last_fetched_epoch=wanted.last_fetched_epoch,
    )
    return answer if isinstance(answer, Diverging | OutOfRange) else None


def _follows_the_last_epoch(log: Log, wanted: FetchPartition) -> bool:
    """A short cut: `fetch_answer` accepts such a position, as nearly all are, but takes three times as long."""
    follows = log.start_offset <= wanted.fetch_offset <= log.end_offset
    return follows and NO_EPOCH != wanted.last_fetched_epoch == log.last_epoch


def fault_response(fault: Diverging | OutOfRange, found: Replica, log: Log, index: int) -> FetchPartitionResponse:
    if isinstance(fault, OutOfRange):
        return FetchPartitionResponse(
            index=index, error_code=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=log.start_offset
        )
    diverging = EpochEndOffset(epoch=fault.epoch, end_offset=fault.end_offset)
    return replace(_response(found, log, index), diverging_epoch=diverging)


def read_from_memory(
    found: Replica, log: Log, wanted: FetchPartition, isolation: Isolation, budget: ByteBudget
) -> PartitionRead:
    """wanted: a position without a fault."""
    end = upper_bound(isolation, found.core)
    allowed_bytes = budget.allowed_for(wanted)
    is_readable = wanted.fetch_offset < end and allowed_bytes > 0
    taken: TailRead | None = NOTHING
    if is_readable:
        taken = found.tail.read(wanted.fetch_offset, allowed_bytes, end, budget.left_batches)
    only_committed = isolation is Isolation.LAST_STABLE_OFFSET
    aborted: tuple[AbortedTransaction, ...] = ()
    if only_committed and taken and taken.parts:
        try:
            aborted = _aborted(found, log, wanted.fetch_offset, taken.batches)
        except NotInMemory:
            taken = None
    response = _response(found, log, wanted.index, Pieces(taken.parts) if taken and taken.parts else b"", aborted)
    read = PartitionRead(response, replica=found, leader_epoch=found.core.leader_epoch, readable_end=end)
    read.only_committed = only_committed
    if isolation is Isolation.LOG_END:  # a follower deletes what its leader has deleted, without waiting for records
        read.completes_fetch = 0 <= wanted.log_start_offset < log.start_offset
    read.allowed_bytes = allowed_bytes
    if taken is None:
        read.disk_bytes = allowed_bytes
    else:
        read.batches, read.is_cut = taken.batches, taken.is_cut
    budget.spend(read.disk_bytes or read.size_bytes, read.batches)
    return read


def read_elsewhere(found: Replica, log: Log, index: int, isolation: Isolation, node: NodeId) -> PartitionRead:
    """The answer to a reader that is sent to `node`, a follower near it: at once, and without records."""
    response = replace(_response(found, log, index), preferred_read_replica=node)
    end = upper_bound(isolation, found.core)
    return PartitionRead(response, completes_fetch=True, replica=found, readable_end=end)


def read_nothing(found: Replica, log: Log, wanted: FetchPartition, isolation: Isolation, held_ms: int) -> PartitionRead:
    """The answer to a reader that the throttle holds back: where the log ends, and none of it."""
    end = upper_bound(isolation, found.core)
    held_back_ms = held_ms if wanted.fetch_offset < end else 0
    read = PartitionRead(_response(found, log, wanted.index), replica=found, leader_epoch=found.core.leader_epoch)
    read.readable_end, read.held_back_ms = end, held_back_ms
    read.completes_fetch = 0 <= wanted.log_start_offset < log.start_offset
    return read


def _aborted(found: Replica, log: Log, offset: Offset, batches: int) -> tuple[AbortedTransaction, ...]:
    """Of the batches that were taken from memory. Raises NotInMemory."""
    view = log.view
    if not view.aborted or log.producers is None:
        return ()
    if offset < view.start_offset:
        raise NotInMemory  # records were deleted meanwhile, and perhaps what says which of them were aborted
    taken = found.tail.batches_from(offset, batches)
    return told(aborted_for(view, log.producers, transactional(taken), in_memory=True))


def told(aborted: Sequence[Entry]) -> tuple[AbortedTransaction, ...]:
    """As a response says it: a reader finds the ends by the markers."""
    return tuple([AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset) for one in aborted])


def _response(
    found: Replica,
    log: Log,
    index: int,
    records: Buffer | Pieces = b"",
    aborted: tuple[AbortedTransaction, ...] = (),
) -> FetchPartitionResponse:
    return FetchPartitionResponse(
        index=index,
        high_watermark=found.core.high_watermark,
        last_stable_offset=found.core.last_stable_offset,
        log_start_offset=log.start_offset,
        aborted_transactions=aborted,
        records=records,
    )
