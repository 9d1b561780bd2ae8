"""What may differ between two logs."""

from __future__ import annotations

from dataclasses import dataclass

from quorumlog_storage.segment.offset_index import MAX_POSITION

MIN_SEGMENT_BYTES = 256
NEVER = (1 << 63) - 1  # of records or milliseconds: the largest that can be set


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Settings of one log; a topic's, or the metadata log's."""

    segment_bytes: int = 1 << 30  # segment.bytes: a new segment begins when the next batch would exceed it
    segment_ms: int = NEVER  # segment.ms: and when it is so much later than the segment's first batch
    segment_jitter_ms: int = 0  # segment.jitter.ms: the most that is taken from segment_ms, at random
    segment_index_bytes: int = 10 << 20  # segment.index.bytes: and when an index file would exceed it
    index_interval_bytes: int = 4096  # index.interval.bytes
    preallocate: bool = False  # preallocate: a new segment has room for segment_bytes on the disk from its beginning
    durable: bool = True  # durability=synced; False is durability=replicated, Kafka's page-cache rule
    flush_messages: int = NEVER  # flush.messages: with this many unsynced records, none is acknowledged before a sync
    flush_ms: int = NEVER  # flush.ms: the longest that an append waits for its sync; the caller has the clock
    delete_delay_ms: int = 60_000  # file.delete.delay.ms: between the renaming of a segment and its freeing
    remembers_producers: bool = (
        False  # so that a repeated batch is recognized (quorumlog_storage/producers/producer_state.py)
    )

    def __post_init__(self) -> None:
        assert MIN_SEGMENT_BYTES <= self.segment_bytes <= MAX_POSITION, self.segment_bytes
        assert self.index_interval_bytes >= 1 and self.segment_index_bytes >= 1
        assert self.segment_ms >= 1 and self.segment_jitter_ms >= 0
        assert self.delete_delay_ms >= 0
        assert self.flush_messages >= 1 and self.flush_ms >= 0

    @property
    def ever_syncs(self) -> bool:
        """False: only the operating system decides when an append reaches the disk."""
        return self.durable or self.flush_messages < NEVER or self.flush_ms < NEVER
