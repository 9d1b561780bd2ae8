"""Which control records about the voters the metadata log and its snapshots hold, as they are at a start.

The newest snapshot that can be read says what was in force at its end; the log is walked from there, header by header,
and only control batches are decoded. The bootstrap checkpoint is the snapshot that ends at 0.
"""

from __future__ import annotations

from struct import Struct

from quorumlog.ids import Offset
from quorumlog.messages.buffer import Buffer
from quorumlog.records import LOG_OVERHEAD, BatchHeader, decode_batch, parse_header
from quorumlog.records.control import KRaftVersion, Voters, decode_control
from quorumlog.records.format.batch import CONTROL
from quorumlog_quorum.raft import BOOTSTRAP, MembershipRecord
from quorumlog_quorum.snapshots import CorruptSnapshot, SnapshotHeading, SnapshotReader, list_snapshots, snapshot_path
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.log.log import Log
from quorumlog_storage.rules.fetch_rule import SnapshotId

SCAN_BYTES = 1 << 20  # of one read
_START_OF_HEADER = Struct(">qiibIhi")  # base offset, length, epoch, magic, checksum, attributes, last offset delta


def members_of(batches: Buffer, header: BatchHeader) -> tuple[MembershipRecord, ...]:
    """What one batch says about the voters. Raises CorruptRecords."""
    if not header.is_control:
        return ()
    found = [(record.offset, decode_control(record.key, record.value)) for record in decode_batch(batches, header)]
    return tuple(
        MembershipRecord(offset, record) for offset, record in found if isinstance(record, KRaftVersion | Voters)
    )


def read_members(disk: Disk, path: str, log: Log) -> tuple[MembershipRecord, ...]:
    """path: of the metadata log's directory. Ascending. Raises CorruptRecords, LogUnreadable, DiskError."""
    start, members = _of_snapshots(disk, path)
    return (*members, *_of_log(log, max(start, log.start_offset)))


def _of_snapshots(disk: Disk, path: str) -> tuple[Offset, tuple[MembershipRecord, ...]]:
    """The end of the newest snapshot that can be read, and what it holds."""
    for snapshot in reversed(list_snapshots(disk.list(path)).snapshots):
        heading = _heading_of(disk, path, snapshot)
        if heading is not None:
            return snapshot.offset, _members_at(snapshot.offset, heading)
    return 0, ()


def _members_at(end_offset: Offset, heading: SnapshotHeading) -> tuple[MembershipRecord, ...]:
    version = None if heading.kraft_version is None else KRaftVersion(heading.kraft_version)
    held = [record for record in (version, heading.voters) if record is not None]
    first = end_offset - len(held)
    return tuple(
        MembershipRecord(first + index if end_offset else BOOTSTRAP, record) for index, record in enumerate(held)
    )


def _heading_of(disk: Disk, path: str, snapshot: SnapshotId) -> SnapshotHeading | None:
    """None if the file cannot be read as a snapshot: an older one and the log are used instead."""
    reader = SnapshotReader(disk, snapshot_path(path, snapshot), snapshot)
    try:
        reader.read()
        return reader.heading
    except CorruptSnapshot:
        return None
    finally:
        reader.close()


def _of_log(log: Log, offset: Offset) -> list[MembershipRecord]:
    found: list[MembershipRecord] = []
    first, end_offset = offset, log.end_offset
    while offset < end_offset:
        batches = log.read(offset, SCAN_BYTES, upper_bound=end_offset)
        position, last = 0, offset
        while position < len(batches):
            base, length, _, _, _, attributes, delta = _START_OF_HEADER.unpack_from(batches, position)
            if attributes & CONTROL:
                found += members_of(batches, parse_header(batches, position))
            position, last = position + LOG_OVERHEAD + length, base + delta + 1
        assert last > offset, f"no progress at {offset} of {end_offset}"
        offset = last
    return [member for member in found if member.offset >= first]
