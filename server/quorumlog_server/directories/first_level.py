"""The level of metadata.version that a new cluster begins with, where `storage format` was given one.

It stands in `bootstrap.checkpoint`, Kafka's name, beside `meta.properties`: a snapshot with one FeatureLevelRecord. The
first active controller writes it to the log. Without the file a cluster begins at the highest level that the software
supports. A file in a cluster that has begun has no meaning any more.
"""

from __future__ import annotations

from quorumlog.messages.metadata_records import FeatureLevelRecord
from quorumlog.records import CorruptRecords
from quorumlog_quorum.metadata.features import METADATA_VERSION, SUPPORTED, describe_range, uncovered
from quorumlog_quorum.metadata.frame import BadRecord, decode_record, encode_record
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_quorum.snapshots import SnapshotCheck, SnapshotEncoder, SnapshotHeading, values_of
from quorumlog_server.directories.first_voters import BOOTSTRAP, FormatRefused
from quorumlog_storage.files.atomic import write_atomically
from quorumlog_storage.files.disk import Disk, FileMissing

BOOTSTRAP_NAME = "bootstrap.checkpoint"


class BadFirstLevel(Exception):
    """The file is not what `storage format` writes."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; remove it if the cluster has begun, else format an empty directory again")


def check_first_level(level: int) -> None:
    """Raises FormatRefused for a level that this software does not support."""
    if uncovered({METADATA_VERSION: level}, SUPPORTED):
        raise FormatRefused(
            f"metadata.version {level}: this software supports {describe_range(METADATA_VERSION, SUPPORTED)}"
        )


def write_first_level(disk: Disk, directory: str, level: int) -> None:
    """directory: the log directory of the metadata log. Durable when it returns. Raises DiskError."""
    encoder = SnapshotEncoder(SnapshotHeading(id=BOOTSTRAP, last_contained_timestamp_ms=0))
    value = encode_record(FeatureLevelRecord(name=METADATA_VERSION, level=level), level)
    content = encoder.begin() + encoder.values([value]) + encoder.end()
    write_atomically(disk, f"{directory}/{BOOTSTRAP_NAME}", content)


def read_first_level(disk: Disk, directory: str) -> int | None:
    """None: the file is not there. Raises BadFirstLevel, DiskError."""
    path = f"{directory}/{BOOTSTRAP_NAME}"
    try:
        content = disk.read_bytes(path)
    except FileMissing:
        return None
    try:
        check = SnapshotCheck(BOOTSTRAP)
        check.take(content)
        check.finish(len(content))
        records = [decode_record(value) for value in values_of(content)]
    except (CorruptRecords, BadRecord, UnsupportedMetadata) as error:
        raise BadFirstLevel(path, str(error)) from error
    for record in records:
        if isinstance(record, FeatureLevelRecord) and record.name == METADATA_VERSION:
            return record.level
    raise BadFirstLevel(path, f"it names no level of {METADATA_VERSION}")
