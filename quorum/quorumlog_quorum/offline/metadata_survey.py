"""What one directory of the metadata log holds, for tools: read while its node is stopped. Nothing is changed.

The newest intact snapshot is read first, then the records behind it, up to the first damage. That is what a start of
the node would find. Not all of it need be committed: a directory does not say what is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorumlog.ids import NO_EPOCH, Epoch, Offset
from quorumlog.messages.metadata_records import MetadataRecord
from quorumlog.records import BatchHeader, CorruptRecords, decode_batch, parse_header, verify_crc
from quorumlog.records.control import Voters, decode_control
from quorumlog_quorum.disk.metadata_log import METADATA_PARTITION
from quorumlog_quorum.metadata.batches import metadata_records
from quorumlog_quorum.metadata.delta import Delta
from quorumlog_quorum.metadata.frame import BadRecord, ReplayError
from quorumlog_quorum.metadata.image import EMPTY, Image
from quorumlog_quorum.metadata.snapshot_records import ImageBuilder, WrongState
from quorumlog_quorum.metadata.transactions import HeldBack, replayable
from quorumlog_quorum.snapshots import (
    CorruptSnapshot,
    SnapshotId,
    SnapshotReader,
    list_snapshots,
    order,
    parse_damaged_name,
    snapshot_path,
    values_of,
)
from quorumlog_storage.directory.offset_files import LOST_OFFSETS, RECOVERY_POINTS, OffsetFile
from quorumlog_storage.files.disk import Disk, FileMissing
from quorumlog_storage.files.names import LOG_SUFFIX, log_name, parse_segment_name


class MetadataGap(Exception):
    """Records are neither in a snapshot nor in the log."""

    def __init__(self, directory: str, start: Offset, end: Offset) -> None:
        super().__init__(
            f"{directory} lacks the records of offsets {start} to {end - 1}: no snapshot that can be read stands for "
            "them; use another node's directory"
        )


@dataclass(frozen=True, slots=True)
class MetadataSurvey:
    """end_offset: exclusive. last_epoch: of the last record, -1 for none. image: after all records.

    snapshot: the newest intact one. voters: the last set that the log or the snapshot names; None: the set is static.
    in_transaction: the records end inside a transaction, which `image` has nothing of.
    """

    end_offset: Offset
    last_epoch: Epoch
    image: Image
    snapshot: SnapshotId | None
    voters: Voters | None
    in_transaction: bool = False

    @property
    def reach(self) -> tuple[Epoch, Offset]:
        """How Raft compares logs: the larger one holds all that the smaller one has committed."""
        return self.last_epoch, self.end_offset


def survey(disk: Disk, directory: str, before: Offset | None = None) -> MetadataSurvey:
    """before: leave out the records from this offset on, where a batch begins.

    Raises MetadataGap, BadRecord, ReplayError, UnsupportedMetadata, DiskError.
    """
    snapshot, delta, voters = _newest_snapshot(disk, directory)
    end, epoch = (snapshot.offset, snapshot.epoch) if snapshot is not None else (0, NO_EPOCH)
    held_back = HeldBack()  # an open transaction at the end of the log has no effect
    for content, header in batches_of(disk, directory):
        if header.next_offset <= end:
            continue
        is_stale = header.leader_epoch < epoch  # the snapshot was fetched, and this log was not cut before the end
        if is_stale or (before is not None and header.base_offset >= before):
            break
        if header.base_offset > end:
            raise MetadataGap(directory, end, header.base_offset)
        if header.is_control:
            voters = _voters_in(content, header) or voters
        records = metadata_records(content, header, header.base_offset, delta)
        for delta.next_offset, record in replayable(records, header, held_back):
            delta.replay(record)
        end, epoch = header.next_offset, header.leader_epoch
    return MetadataSurvey(end, epoch, delta.apply(end, epoch), snapshot, voters, held_back.is_open)


def records_beyond(disk: Disk, directory: str, end: Offset, epoch: Epoch) -> Iterator[MetadataRecord]:
    """The records at or after offset `end`, and those of epochs after `epoch`, wherever they are."""
    for content, header in batches_of(disk, directory):
        if header.next_offset > end or header.leader_epoch > epoch:
            yield from metadata_records(content, header, header.base_offset, Delta(EMPTY))


def unseen_beyond(disk: Disk, directory: str, end: Offset, epoch: Epoch) -> str:
    """What the directory held at or after offset `end`, or of epochs after `epoch`, that its log does not show.

    "": `records_beyond` tells all of it. A snapshot stands for records that a log may not have, because it was fetched
    or because old segments were dropped; damage hides what follows it. Raises DiskError.
    """
    names = _names(disk, directory)
    listing = list_snapshots(names)
    damaged = [one for name in listing.damaged if (one := parse_damaged_name(name)) is not None]
    beyond = {one for one in (*listing.snapshots, *damaged) if one.offset > end or one.epoch > epoch}
    read, is_first = 0, True
    for _, header in batches_of(disk, directory):
        if is_first and header.base_offset and (header.base_offset > end or header.leader_epoch > epoch):
            break  # the log begins beyond, and what was before it is gone
        is_first, read = False, header.next_offset
        beyond -= {one for one in beyond if _is_shown(one, header)}
    if beyond:
        first = min(beyond, key=order)
        return f"the snapshot at offset {first.offset} of epoch {first.epoch}"
    points, lost = OffsetFile(disk, f"{directory}/{RECOVERY_POINTS}"), OffsetFile(disk, f"{directory}/{LOST_OFFSETS}")
    noted = max(points.get(METADATA_PARTITION), lost.get(METADATA_PARTITION))
    read = max([read, *(snapshot.offset for snapshot in listing.snapshots)])
    if noted <= max(read, end):
        return ""
    return f"records up to offset {noted}, of which those from {read} on cannot be read"


def _is_shown(snapshot: SnapshotId, header: BatchHeader) -> bool:
    """The log has the last record that the snapshot stands for. It may have another one of that offset."""
    return header.base_offset < snapshot.offset <= header.next_offset and header.leader_epoch == snapshot.epoch


def _names(disk: Disk, directory: str) -> list[str]:
    try:
        return disk.list(directory)
    except FileMissing:
        return []


def batches_of(disk: Disk, directory: str) -> Iterator[tuple[bytes, BatchHeader]]:
    """Each batch with the bytes of its segment, up to the first damage. No directory: none. Raises DiskError."""
    names = _names(disk, directory)
    bases = sorted(found[0] for name in names if (found := parse_segment_name(name)) and found[1] == LOG_SUFFIX)
    for base in bases:
        content, position = disk.read_bytes(f"{directory}/{log_name(base)}"), 0
        while position < len(content):
            header = _intact(content, position)
            if header is None:
                return
            yield content, header
            position = header.end


def _intact(content: bytes, position: int) -> BatchHeader | None:
    try:
        header = parse_header(content, position)
        if header.end <= len(content):
            verify_crc(content, header)
            return header
    except CorruptRecords:
        pass
    return None


def _voters_in(content: bytes, header: BatchHeader) -> Voters | None:
    found = [decode_control(record.key, record.value) for record in decode_batch(content, header)]
    return next((record for record in reversed(found) if isinstance(record, Voters)), None)


def _newest_snapshot(disk: Disk, directory: str) -> tuple[SnapshotId | None, Delta, Voters | None]:
    for snapshot in reversed(list_snapshots(_names(disk, directory)).snapshots):
        try:
            return snapshot, *_loaded(disk, directory, snapshot)
        except (CorruptSnapshot, WrongState, BadRecord, ReplayError):
            continue  # an older one, or the log, may hold it all
    return None, Delta(EMPTY), None


def _loaded(disk: Disk, directory: str, snapshot: SnapshotId) -> tuple[Delta, Voters | None]:
    reader, builder = SnapshotReader(disk, snapshot_path(directory, snapshot), snapshot), ImageBuilder()
    try:
        while batches := reader.read():
            for _ in builder.add(values_of(batches)):
                pass  # nothing else waits
        return builder.finish(), reader.heading.voters
    finally:
        reader.close()
