"""Snapshots of the metadata log: their files, and which of them are kept.

Pure but for the disk, which is passed in. Read the files in this order: names, codec, part_file, reader, listing,
retention.
"""

from __future__ import annotations

from quorumlog_quorum.snapshots.codec import SnapshotCheck, SnapshotEncoder, SnapshotHeading, values_of
from quorumlog_quorum.snapshots.names import (
    Listing,
    damaged_name,
    deleted_name,
    list_snapshots,
    order,
    outdated,
    parse_damaged_name,
    parse_snapshot_name,
    part_name,
    snapshot_name,
)
from quorumlog_quorum.snapshots.part_file import PartFile, write_snapshot
from quorumlog_quorum.snapshots.reader import (
    CorruptSnapshot,
    SnapshotReader,
    SnapshotSummary,
    snapshot_path,
    verify_snapshot,
)
from quorumlog_quorum.snapshots.retention import StoredSnapshot, snapshots_to_drop
from quorumlog_storage.rules.fetch_rule import SnapshotId

__all__ = [
    "CorruptSnapshot",
    "Listing",
    "PartFile",
    "SnapshotCheck",
    "SnapshotEncoder",
    "SnapshotHeading",
    "SnapshotId",
    "SnapshotReader",
    "SnapshotSummary",
    "StoredSnapshot",
    "damaged_name",
    "deleted_name",
    "list_snapshots",
    "order",
    "outdated",
    "parse_damaged_name",
    "parse_snapshot_name",
    "part_name",
    "snapshot_name",
    "snapshot_path",
    "snapshots_to_drop",
    "values_of",
    "verify_snapshot",
    "write_snapshot",
]
