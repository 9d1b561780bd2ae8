"""Which neighbours become one segment: as many as fit, by size, by index size and by offsets (Kafka's
`groupSegmentsBySize`). The sizes before the compaction count, so an output always fits."""

from __future__ import annotations

from collections.abc import Container, Iterable

from quorumlog.ids import Offset
from quorumlog_storage.cleaning.batches import SourceFile
from quorumlog_storage.segment.offset_index import ENTRY_BYTES, MAX_RELATIVE_OFFSET

_TIME_ENTRY_BYTES = 12  # the time index has an entry where the offset index has one


def grouped(
    sources: Iterable[SourceFile],
    *,
    old: Container[Offset] = (),
    segment_bytes: int,
    index_bytes: int,
    index_interval_bytes: int,
) -> list[list[SourceFile]]:
    """old: base offsets of segments that stay as they are; nothing is merged across one.
    index_bytes: the limit of one index file, `segment.index.bytes`.
    """
    groups: list[list[SourceFile]] = []
    size = entries = 0
    is_closed = True
    for source in sources:
        if source.base_offset in old:
            is_closed = True
            continue
        own_entries = source.size // max(1, index_interval_bytes) + 1
        size, entries = size + source.size, entries + own_entries
        fits = (
            not is_closed
            and size <= segment_bytes
            and entries * _TIME_ENTRY_BYTES <= max(index_bytes, ENTRY_BYTES)
            and source.end_offset - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET
        )
        if fits:
            groups[-1].append(source)
        else:
            groups.append([source])
            size, entries, is_closed = source.size, own_entries, False
    return groups
