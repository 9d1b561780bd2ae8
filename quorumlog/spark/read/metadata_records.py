"""`table=metadata.records` with `readFrom=files`: the records of a node's metadata log as rows, one for each offset.

No broker serves its metadata log to clients, so this table exists from files only. What a secret could be guessed from
is hidden, as in `quorumlog metadata dump`. Of Apache Kafka's records the type and the version are told; their content
has another layout. Files do not tell which of the newest records are committed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from quorumlog.client.errors import ConfigError
from quorumlog.ids import Offset
from quorumlog.records import BatchHeader, CorruptRecords, Record, decode_batch, headers, verify_crc
from quorumlog.records.control import describe_control
from quorumlog.spark.read.files import READ_BYTES, Advice, Patience, UnreadableLog, look_into_all
from quorumlog.topic_name import METADATA_TOPIC
from quorumlog_quorum.metadata.dump import describe_record
from quorumlog_quorum.metadata.frame import BadRecord, decode_record, read_frame, type_name
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata
from quorumlog_storage.edge.read_only_disk import ReadOnlyDisk
from quorumlog_storage.files.disk import Disk
from quorumlog_storage.foreign.log_directory import LogDirectory
from quorumlog_storage.foreign.log_reader import Hole, Part
from quorumlog_storage.segment.log_file import CorruptBatch

KEY = (METADATA_TOPIC, 0)
ANOTHER_NODE = "read the directory of another node"  # this table has no option that leaves a place out
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]


def metadata_rows(directories: tuple[str, ...], disk: Disk | None = None) -> Iterator[list[Row]]:
    """Rows of `tables.SCHEMAS`, in order, some at a time. Raises ConfigError, UnreadableLog."""
    directory = _holder(ReadOnlyDisk() if disk is None else disk, directories)
    patience = Patience(directory.path_of(KEY), Advice(ANOTHER_NODE, ANOTHER_NODE))
    offset: Offset = -1  # of what is read next; -1: nothing was read yet
    is_over = False
    while not is_over:
        try:
            with patience:
                reader = directory.reader_of(KEY)
                if 0 <= offset < reader.start_offset:
                    raise UnreadableLog(f"{reader.path}: it begins at offset {reader.start_offset} now; read it again")
                offset = max(offset, reader.start_offset)
                for part in reader.parts(offset, reader.end_offset, READ_BYTES):
                    rows = [row for row in _rows(part) if row["offset"] >= offset]
                    offset = part.next_offset
                    patience.moved_on()
                    yield rows
                if reader.damage is not None:
                    raise reader.damage
                is_over = True
        except Hole as hole:
            raise UnreadableLog(f"{hole}; {ANOTHER_NODE}") from hole


def _holder(disk: Disk, paths: tuple[str, ...]) -> LogDirectory:
    found = [one for one in look_into_all(disk, paths) if KEY in one.partitions]
    if len(found) != 1:
        what = "none" if not found else " and ".join(one.path for one in found)
        raise ConfigError(
            f"table metadata.records: of {', '.join(paths)}, {what} has {METADATA_TOPIC}-0; give one directory that "
            "has it: metadata.log.dir of a controller or broker, or the first of its log.dirs"
        )
    return found[0]


def _rows(part: Part) -> Iterator[Row]:
    try:
        for header in headers(part.data):
            verify_crc(part.data, header)
            for record in decode_batch(part.data, header):
                yield _row(header, record)
    except CorruptRecords as error:
        raise CorruptBatch(part.path, part.position + error.position, error.reason) from error


def _row(header: BatchHeader, record: Record) -> Row:
    kind, version, content = _told(header, record)
    return {
        "offset": record.offset,
        "epoch": header.leader_epoch,
        "timestamp": _EPOCH + timedelta(milliseconds=record.timestamp_ms) if record.timestamp_ms >= 0 else None,
        "type": kind,
        "version": version,
        "record": None if content is None else json.dumps(content, ensure_ascii=False, separators=(",", ":")),
    }


def _told(header: BatchHeader, record: Record) -> tuple[str, int | None, dict[str, Any] | None]:
    """Type, version and content. No content: newer software wrote it, or Apache Kafka."""
    if header.is_control:
        told = describe_control(record)
        return str(told.pop("type")), None, told
    try:
        _, number, version, _ = read_frame(record.value or b"")
        name = type_name(number)
        try:
            told = describe_record(decode_record(record.value or b""))
        except UnsupportedMetadata:
            return name, version, None
    except BadRecord as error:
        raise UnreadableLog(f"the metadata record at offset {record.offset}: {error}") from error
    told.pop("type")
    return name, version, told
