"""The read position in each partition. Pure: fetch responses go in, the next offset to fetch comes out.

Rules: a position belongs to one life of its topic: to a topic id (KIP-516). It moves only by whole batches received in
order. Records of the first batch that lie below the position are dropped on decoding. The position carries
`last_epoch`, so that a leader can tell a reader that the records it read were truncated later (KIP-320).

Of a read_committed consumer (KIP-98): the leader gives batches below the last stable offset only, and names the
aborted transactions among them: a producer and a first offset. From there on the producer's transactional batches did
not happen, until its next abort marker. Control batches are never delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from quorumlog.client.cluster.metadata_cache import NO_ID
from quorumlog.ids import NO_EPOCH, NO_NODE, Epoch, NodeId, Offset, TopicPartition, Uuid
from quorumlog.messages.buffer import Buffer
from quorumlog.messages.fetch import AbortedTransaction
from quorumlog.records import MAGIC, BatchHeader, CorruptRecords, iter_batch, iter_headers, verify_crc
from quorumlog.records.control import EndTxnMarker, decode_control
from quorumlog.records.format.legacy import in_format_2


def committed_batches(
    records: Buffer, found: Iterable[BatchHeader], aborted: Sequence[AbortedTransaction]
) -> list[BatchHeader]:
    """Of the batches `found` in `records`, in their order, those that count. Raises CorruptRecords."""
    waiting = sorted(aborted, key=lambda one: one.first_offset, reverse=True)
    live: set[int] = set()  # producers in the middle of an aborted transaction
    kept = []
    for header in found:
        while waiting and waiting[-1].first_offset <= header.last_offset:
            live.add(waiting.pop().producer_id)
        if header.is_control:
            if header.producer_id in live and _is_abort(records, header):
                live.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in live):
            kept.append(header)
    return kept


def _is_abort(records: Buffer, header: BatchHeader) -> bool:
    for record in iter_batch(records, header):
        marker = decode_control(record.key, record.value)
        return isinstance(marker, EndTxnMarker) and not marker.committed
    return False


ASSUMED_BYTES = 128.0  # of a record, before one is known; less is never asked for
LARGE_BYTES = 2.0**31  # of a record that an answer was too small for: no batch is larger


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Whole batches as received, and nothing else. `records` may be a view that keeps the whole response in memory.

    Records below `first_offset`, and at or above `stop_offset`, are not wanted. batches: those that are wanted, where
    aborted transactions are left out; None: all.
    """

    topic: str
    partition: int
    records: Buffer
    first_offset: Offset
    stop_offset: Offset  # exclusive
    next_offset: Offset  # first offset of the next chunk
    high_watermark: Offset
    batches: tuple[BatchHeader, ...] | None = None
    last_epoch: Epoch = NO_EPOCH  # of the record before `next_offset`
    topic_id: Uuid = NO_ID


@dataclass(slots=True)
class Position:
    """One assigned partition. stop_offset: exclusive; None: read on without end.

    A position does not leave `broken`; a new assignment makes a new position. Only one that is broken because its topic
    was replaced may begin anew. high_watermark: the end of what this reader may read; for one of committed records, the
    last stable offset. topic_id: empty until the client knows the topic.
    """

    topic: str
    partition: int
    next_offset: Offset
    stop_offset: Offset | None = None
    last_epoch: Epoch = NO_EPOCH
    high_watermark: Offset = -1
    buffered_bytes: int = 0  # received and not yet taken by the reader
    fetching: bool = False
    not_before_ms: int = 0
    failures: int = 0
    broken: Exception | None = None  # nothing can be read at `next_offset`, and nothing is fetched any more
    topic_id: Uuid = NO_ID
    told_of: Uuid = NO_ID  # the reader was told that this topic has replaced the one that it read
    begins_anew: bool = False  # and it wants to read the new one
    bytes_of_offset: float = ASSUMED_BYTES  # in the last answer, or assumed
    near: NodeId = NO_NODE  # the follower in the reader's rack that its leader has sent it to (KIP-392)
    near_until_ms: int = 0  # of the client's time: from then on the leader is asked again

    @property
    def key(self) -> TopicPartition:
        return self.topic, self.partition

    def wanted_bytes(self, least: int, most: int) -> int:
        """What a fetch asks for: `most`, or less where the range ends soon, for a broker that is not told of the end
        would send the records behind it, too.

        A broker gives one batch at least, however little is asked for. Kafka does so for one partition of a fetch only,
        and leaves out a larger batch of another one. So after such an answer `most` is asked for.
        least: for which the broker waits; asked for less, it would wait in vain.
        """
        if self.stop_offset is None:
            return most
        return min(most, max(least, ceil((self.stop_offset - self.next_offset) * self.bytes_of_offset)))

    @property
    def finished(self) -> bool:
        """True once everything before `stop_offset` has been received."""
        return self.stop_offset is not None and self.next_offset >= self.stop_offset

    def received(
        self,
        records: Buffer,
        high_watermark: Offset,
        *,
        check_crcs: bool,
        aborted: Sequence[AbortedTransaction] = (),
    ) -> Chunk | None:
        """Move past the batches in `records`; an incomplete batch at the end is ignored. None if there is no new batch.

        Batches before a corrupt one are taken. If it is the first new one, raises CorruptRecords and does not move.
        aborted: what a reader of committed records leaves out.
        """
        self.failures = 0
        self.high_watermark = high_watermark
        next_offset, epoch = self.next_offset, self.last_epoch
        has_old, whole, base = False, 0, self.next_offset
        try:
            for header in iter_headers(records, partial_tail=True):
                if check_crcs:
                    verify_crc(records, header)
                has_old |= header.magic < MAGIC
                whole, base = header.end, min(base, header.base_offset)
                if header.next_offset > next_offset:
                    next_offset, epoch = header.next_offset, header.leader_epoch
        except CorruptRecords:
            if next_offset == self.next_offset:
                raise
        if next_offset == self.next_offset:
            if next_offset < high_watermark:
                self.bytes_of_offset = LARGE_BYTES
            return None
        if whole < len(records):
            records = memoryview(records)[:whole]
        if has_old:
            records = in_format_2(records, iter_headers(records, partial_tail=True))
        batches: tuple[BatchHeader, ...] | None = None
        if aborted:
            batches = tuple(committed_batches(records, iter_headers(records, partial_tail=True), aborted))
        first = self.next_offset
        self.bytes_of_offset = max(len(records) / (next_offset - base), ASSUMED_BYTES)
        self.next_offset, self.last_epoch = next_offset, epoch
        self.buffered_bytes += len(records)
        return Chunk(
            topic=self.topic,
            partition=self.partition,
            records=records,
            first_offset=first,
            stop_offset=next_offset if self.stop_offset is None else min(next_offset, self.stop_offset),
            next_offset=next_offset,
            high_watermark=high_watermark,
            batches=batches,
            last_epoch=epoch,
            topic_id=self.topic_id,
        )

    def reset(self, offset: Offset) -> None:
        """Continue at `offset`, whose leader epoch is not known."""
        self.next_offset, self.last_epoch = offset, NO_EPOCH

    def failed(self) -> None:
        """A fetch has failed: the next one goes to the leader, which knows all that a follower does."""
        self.failures += 1
        self.near = NO_NODE

    def begin_anew(self, offset: Offset, topic_id: Uuid) -> None:
        """Read another life of the topic."""
        self.reset(offset)
        self.topic_id, self.told_of, self.begins_anew = topic_id, NO_ID, False
        self.failures, self.high_watermark = 0, -1
