"""One look at one partition of a fetch: what the leader can answer from memory, or that it is on the disk. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from broker.replicas.replica import Replica
from quorumlog.errors import ErrorCode
from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.messages.buffer import Buffer, Pieces
from quorumlog.messages.common import EpochEndOffset
from quorumlog.messages.fetch import FetchPartition, FetchPartitionResponse, ReplicaState
from storage.fetch_rule import Diverging, OutOfRange, fetch_answer
from storage.isolation import Isolation, upper_bound
from storage.log import Log


@dataclass(slots=True)
class Look:
    """What one look at one partition has found.

    answer: without records where they have to be read from the disk first. final: there is nothing to wait for.
    bound: exclusive end of what could be read at this look.
    """

    answer: FetchPartitionResponse
    final: bool = False
    replica: Replica | None = None
    epoch: Epoch = NO_EPOCH
    bound: Offset = 0
    cold_bytes: int = 0  # > 0: read so many from the disk

    @property
    def size_bytes(self) -> int:
        return len(self.answer.records)

    def is_behind(self, wanted: FetchPartition) -> bool:
        """There was more to be read, whether or not it was given."""
        return self.replica is None or wanted.fetch_offset < self.bound


@dataclass(slots=True)
class Allowance:
    """What is left of a fetch's `max_bytes`. The first batch is given whatever is left."""

    left_bytes: int
    given_any: bool = False

    def of(self, partition: FetchPartition) -> int:
        """Bytes that this partition may have; 0: none, not even one batch."""
        if self.given_any and self.left_bytes <= 0:
            return 0
        return max(1, min(self.left_bytes, partition.max_bytes))

    def take(self, size_bytes: int) -> None:
        self.left_bytes -= size_bytes
        self.given_any = self.given_any or size_bytes > 0


def position_fault(log: Log, wanted: FetchPartition) -> Diverging | OutOfRange | None:
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
    """What `fetch_answer` says of nearly all positions, in a third of the time."""
    follows = log.start_offset <= wanted.fetch_offset <= log.end_offset
    return follows and NO_EPOCH != wanted.last_fetched_epoch == log.last_epoch


def told_of(fault: Diverging | OutOfRange, found: Replica, log: Log, index: int) -> FetchPartitionResponse:
    if isinstance(fault, OutOfRange):
        return FetchPartitionResponse(
            index=index, error_code=ErrorCode.OFFSET_OUT_OF_RANGE, log_start_offset=log.start_offset
        )
    diverging = EpochEndOffset(epoch=fault.epoch, end_offset=fault.end_offset)
    return replace(_answer(found, log, index), diverging_epoch=diverging)


def records_of(
    found: Replica, log: Log, wanted: FetchPartition, replica: ReplicaState | None, allowance: Allowance
) -> Look:
    bound = bound_of(found, replica)
    allowed_bytes = allowance.of(wanted)
    readable = wanted.fetch_offset < bound and allowed_bytes > 0
    parts = found.tail.read(wanted.fetch_offset, allowed_bytes, bound) if readable else ()
    answer = _answer(found, log, wanted.index, Pieces(parts) if parts else b"")
    look = Look(answer, replica=found, epoch=found.core.leader_epoch, bound=bound)
    look.final = replica is not None and 0 <= wanted.log_start_offset < log.start_offset  # records were deleted
    look.cold_bytes = allowed_bytes if parts is None else 0
    allowance.take(look.cold_bytes or look.size_bytes)
    return look


def bound_of(found: Replica, replica: ReplicaState | None) -> Offset:
    """How far the asker may read. replica: None for a consumer."""
    return upper_bound(Isolation.HIGH_WATERMARK if replica is None else Isolation.LOG_END, found.core)


def _answer(found: Replica, log: Log, index: int, records: Buffer | Pieces = b"") -> FetchPartitionResponse:
    return FetchPartitionResponse(
        index=index,
        high_watermark=found.core.high_watermark,
        last_stable_offset=found.core.last_stable_offset,
        log_start_offset=log.start_offset,
        records=records,
    )
