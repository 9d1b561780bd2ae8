"""What a round is asked to do, its steps and its answer: plain values, so that a round may run in another process."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog_storage.cleaning.batches import IO_BUFFER_BYTES_DEFAULT
from quorumlog_storage.cleaning.offset_map import LOAD_FACTOR_DEFAULT
from quorumlog_storage.segment.offset_index import MAX_POSITION

DEDUPE_BUFFER_BYTES_DEFAULT = 128 << 20  # log.cleaner.dedupe.buffer.size, of all threads together
DEDUPE_BUFFER_MAX_BYTES = 2 << 30  # of one thread, as in Kafka
MARKS_BYTES_DEFAULT = 32 << 20  # for 33 million records; of the others pass 2 asks the map
UNLIMITED_BYTES_PER_S = float(2**63)  # log.cleaner.io.max.bytes.per.second


class RoundSpec(NamedTuple):
    """One round over one log.

    path: of the partition's directory. segments: (base offset, bytes) of all that lie below the uncleanable boundary,
    the oldest first. end_offset: of the last of them. beyond: the same of those behind, up to the last stable offset,
    for their markers. first_dirty: as the checkpoint says. producers: (id, epoch, last offset or -1) of the active
    ones. hash_key: random. now_ms: wall clock; the only time that a round knows.
    """

    path: str
    segments: tuple[tuple[Offset, int], ...]
    end_offset: Offset
    beyond: tuple[tuple[Offset, int], ...]
    first_dirty: Offset
    producers: tuple[tuple[int, int, Offset], ...]
    hash_key: bytes
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_interval_bytes: int
    segment_index_bytes: int
    map_bytes: int = DEDUPE_BUFFER_BYTES_DEFAULT
    marks_bytes: int = MARKS_BYTES_DEFAULT  # of `Marks`, at most
    load_factor: float = LOAD_FACTOR_DEFAULT
    io_buffer_bytes: int = IO_BUFFER_BYTES_DEFAULT
    bytes_per_s: float = UNLIMITED_BYTES_PER_S
    max_output_bytes: int = MAX_POSITION  # of one output; lower in tests


class Moved(NamedTuple):
    """A step: so many bytes were read or written since the last one."""

    size: int


class GroupCleaned(NamedTuple):
    """A group is done: its outputs are whole and synced under `.cleaned`, and may take the place of the sources.

    sources: their base offsets, at least one. outputs: (base offset, bytes), at least one; empty: nothing has changed.
    """

    sources: tuple[Offset, ...]
    outputs: tuple[tuple[Offset, int], ...]
    bytes_before: int
    bytes_after: int


class RoundDone(NamedTuple):
    """first_dirty: what the checkpoint says from now on. is_partial: the map was full before the boundary.

    keyless: records that were dropped because they had no key.
    """

    first_dirty: Offset
    is_partial: bool
    keys: int
    keyless: int
    bytes_read: int
    bytes_written: int


Step = Moved | GroupCleaned | RoundDone
