"""`partition.metadata`: the topic id of the partition in a directory (KIP-516).

A topic that is deleted and created again has the same name and another id.
"""

from __future__ import annotations

import re

from quorumlog.ids import ZERO_UUID, Uuid, format_uuid, parse_uuid
from quorumlog_storage.files.atomic import replace_file
from quorumlog_storage.files.disk import Disk, FileMissing

PARTITION_METADATA = "partition.metadata"

_FORM = re.compile(r"version: ([0-9]{1,9})\ntopic_id: ([A-Za-z0-9_-]{22})(?:\n|\Z)", re.ASCII)


class BadPartitionMetadata(Exception):
    """A file that holds no topic id."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}; move the partition's directory away, the node fetches it again")
        self.path, self.reason = path, reason


def render_partition_metadata(topic_id: Uuid) -> bytes:
    assert topic_id != ZERO_UUID
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}".encode()


def parse_partition_metadata(path: str, content: bytes) -> Uuid:
    """Raises BadPartitionMetadata. Any version is accepted: later ones only add lines."""
    found = _FORM.match(content.decode("ascii", "replace"))
    if found is None:
        raise BadPartitionMetadata(path, "it is not two lines with a version and a topic id")
    try:
        topic_id = parse_uuid(found[2])
    except ValueError as error:
        raise BadPartitionMetadata(path, str(error)) from error
    if topic_id == ZERO_UUID:
        raise BadPartitionMetadata(path, "the topic id is zero")
    return topic_id


def write_unsynced_topic_id(disk: Disk, partition_path: str, topic_id: Uuid) -> None:
    """Write the file. Its name is durable once `partition_path` is synced. Raises DiskError."""
    replace_file(disk, f"{partition_path}/{PARTITION_METADATA}", render_partition_metadata(topic_id))


def read_topic_id(disk: Disk, partition_path: str) -> Uuid | None:
    """None where there is no file. Raises BadPartitionMetadata, DiskError."""
    path = f"{partition_path}/{PARTITION_METADATA}"
    try:
        return parse_partition_metadata(path, disk.read_bytes(path))
    except FileMissing:
        return None
