"""What goes in and out of a broker, counted where it passes: an addition of integers for a batch or an answer.

A partition's counts outlive its replica here, which may be made anew or leave and come back: counters do not fall while
the topic exists. They go with the topic.
"""

from __future__ import annotations

from collections import Counter

from quorumlog.errors import ApiError, ErrorCode
from quorumlog.ids import Uuid
from quorumlog.records.validation.record_check import InvalidRecord
from quorumlog_broker.partition.key import PartitionKey

TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
REASONS = {
    ErrorCode.CORRUPT_MESSAGE: "corrupt",
    ErrorCode.INVALID_RECORD: "invalid",
    ErrorCode.INVALID_TIMESTAMP: "timestamp",
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: "compression",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "sequence",
}
"""Why records of a producer are invalid."""


class PartitionTraffic:
    """As its leader: what producers wrote, and consumers read; bytes of whole batches."""

    __slots__ = ("bytes_in", "bytes_out", "records_in")

    def __init__(self) -> None:
        self.bytes_in = self.records_in = self.bytes_out = 0


class Traffic:
    """Of a broker. replication_in, replication_out: bytes that it copied from leaders, and that followers copied from
    it. reassignment: of those it copied, what replicas took that are being added. produce_failed, fetch_failed:
    partitions of requests that were refused. rejected: bytes of what was too large. invalid: records by reason."""

    def __init__(self) -> None:
        self.topics: dict[Uuid, dict[int, PartitionTraffic]] = {}
        self.replication_in = self.replication_out = self.reassignment = 0
        self.produce_failed = self.fetch_failed = self.rejected = 0
        self.invalid: Counter[str] = Counter()

    def of(self, key: PartitionKey) -> PartitionTraffic:
        partitions = self.topics.setdefault(key[0], {})
        found = partitions.get(key[1])
        if found is None:
            found = partitions[key[1]] = PartitionTraffic()
        return found

    def forget(self, topic_id: Uuid) -> None:
        """The topic is gone."""
        self.topics.pop(topic_id, None)

    def refused(self, error: ApiError, size_bytes: int) -> None:
        """A batch that a producer sent."""
        self.produce_failed += 1
        if error.code in TOO_LARGE:
            self.rejected += size_bytes
        elif (reason := REASONS.get(error.code)) is not None:
            faults = error.faults if isinstance(error, InvalidRecord) else ()
            self.invalid[reason] += len(faults) or 1  # where it is the batch, one
