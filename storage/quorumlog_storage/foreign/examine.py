"""One full read of a source before anything is made for it: that it is whole, where the copy ends, what must follow.

A transaction that is open where the copy ends can never end in the new cluster: its coordinator does not know it. So
the copy goes on with an abort marker for each, in the order in which they began. A marker has the timestamp of the last
batch of its transaction, so that a second import of the same source makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.records import CorruptRecords
from quorumlog.records.format.batch import NO_PRODUCER, BatchHeader, headers
from quorumlog.records.open_transactions import OpenTransactions
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.foreign.source import BadSource, Source, batches


@dataclass(frozen=True, slots=True)
class Examined:
    """What is copied of a source: its batches up to `source_end`, then `markers`. Offsets are exclusive ends.

    last_epoch: the largest leader epoch; NO_EPOCH for none. max_producer_id: -1 for none. aborted: open transactions
    that the markers end. size: bytes of all batches, markers included.
    """

    source: Source
    source_end: Offset
    last_epoch: Epoch
    max_producer_id: int
    markers: tuple[bytes, ...]
    size: int
    records: int

    @property
    def end_offset(self) -> Offset:
        return self.source_end + len(self.markers)

    @property
    def aborted(self) -> int:
        return len(self.markers)

    def batches(self, disk: Disk, from_offset: Offset) -> Iterator[tuple[BatchHeader, bytes]]:
        """Everything that is copied and ends above `from_offset`, in order."""
        yield from batches(disk, self.source, from_offset, self.source_end)
        for marker in self.markers:
            (header,) = headers(marker)
            if header.next_offset > from_offset:
                yield header, marker


def examine(disk: Disk, source: Source, *, to_end: bool = False, accept_gaps: bool = False) -> Examined:
    """Read everything that is to be copied. Raises BadSource, DiskError.

    to_end: not only up to the high watermark, but also what only this replica may have.
    """
    if source.high_watermark is None and not to_end:
        raise BadSource(
            f"{source.path}: no replication-offset-checkpoint beside it says how far its records are committed; "
            "copy that file along, or import with --to-end, which also takes records that other replicas may lack"
        )
    if accept_gaps:
        source = replace(source, cleaned=source.bases[-1])
    limit = None if to_end else source.high_watermark
    end, last_epoch, max_producer_id, size, records = source.start_offset, NO_EPOCH, NO_PRODUCER, 0, 0
    open_transactions = OpenTransactions()
    for header, data in batches(disk, source, source.start_offset, limit):
        if 0 <= header.leader_epoch < last_epoch:
            raise BadSource(f"{source.path}: epoch {header.leader_epoch} at offset {header.base_offset} goes back")
        end, size, records = header.next_offset, size + header.size, records + header.count
        last_epoch, max_producer_id = max(last_epoch, header.leader_epoch), max(max_producer_id, header.producer_id)
        try:
            open_transactions.follow(header, data)
        except CorruptRecords as error:
            raise BadSource(
                f"{source.path}: offset {header.base_offset}: {error.reason}; copy another replica"
            ) from error
    if limit is not None and end < limit and limit > source.cleaned:
        raise BadSource(
            f"{source.path} ends at offset {end}, before its high watermark {limit}; copy from another replica"
        )
    markers = tuple(open_transactions.abort_markers(end, last_epoch))
    return Examined(source, end, last_epoch, max_producer_id, markers, size + sum(map(len, markers)), records)
