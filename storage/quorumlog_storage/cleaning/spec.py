"""What a round is asked to do, its steps and its answer: plain values, so that a round may run in another process."""

from __future__ import annotations

from typing import NamedTuple

from quorumlog.ids import Offset
from quorumlog.settings.cleaner import CleanerConfig
from quorumlog_storage.segment.offset_index import MAX_POSITION

MARKS_BYTES_DEFAULT = 32 << 20  # for 33 million records; of the others pass 2 asks the map
_ALONE = CleanerConfig()  # the memory and the rate of a round that is alone


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
    map_bytes: int = _ALONE.map_bytes
    marks_bytes: int = MARKS_BYTES_DEFAULT  # of `Marks`, at most
    load_factor: float = _ALONE.load_factor
    io_buffer_bytes: int = _ALONE.io_buffer_bytes
    bytes_per_s: float = _ALONE.bytes_per_s
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
