"""The frame around a metadata record's value: which record it is, in which version.

    uvarint frame version (0), uvarint record type, uvarint record version, the message

Types are Kafka's numbers (KIP-631), from 1000 on our own; the message is protobuf of our schema. The schema says for
each type which versions this software reads, and which one it writes at each level of metadata.version; RECORD_TYPES is
made from it.

Nothing is read halfway. A type, a version or a field that this software does not know gives UnsupportedMetadata: the
node stays out until it is upgraded. Bytes that no software wrote give BadRecord.
"""

from __future__ import annotations

from functools import cache

from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.metadata_records import MetadataRecord
from quorumlog.records.format.varint import Malformed, read_uvarint, write_uvarint
from quorumlog.rpc.convert.metadata_records import RECORD_TYPES
from quorumlog.rpc.convert.parsing import parse_with_unknown
from quorumlog.rpc.convert.record_type import RecordType
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata

FRAME_VERSION = 0

_BY_RECORD: dict[type, RecordType] = {kind.record: kind for kind in RECORD_TYPES}
_BY_NUMBER: dict[int, RecordType] = {kind.number: kind for kind in RECORD_TYPES}


class BadRecord(Exception):
    """Bytes in the metadata log that are no record: corruption, or a writer's mistake."""


class ReplayError(Exception):
    """A record that does not fit the image before it: a mistake of the writer, or a log of another system."""

    def __init__(self, record: MetadataRecord, reason: str) -> None:
        super().__init__(f"{reason}: {record}")
        self.record, self.reason = record, reason


def type_name(number: int) -> str:
    """Of a record type, also as Kafka writes it; of one that this software does not know, its number."""
    kind = _BY_NUMBER.get(number)
    return f"type {number}" if kind is None else kind.name


def is_written_at(record: type[MetadataRecord], level: int) -> bool:
    """Whether a level of metadata.version has this record."""
    kind = _BY_RECORD[record]
    return kind.version_at(level) >= 0


def differs_between(lower: int, higher: int) -> list[type[MetadataRecord]]:
    """The records that these two levels write in different versions, or that only the higher level has."""
    return [kind.record for kind in RECORD_TYPES if kind.version_at(lower) != kind.version_at(higher)]


def has_field(record: type[MetadataRecord], field: str, level: int) -> bool:
    """Whether this record, as it is written at a level of metadata.version, has this field."""
    kind = _BY_RECORD[record]
    return field not in kind.fields_after(kind.version_at(level))


def encode_record(record: MetadataRecord, level: int) -> bytes:
    """The value of a log record: frame and message. level: the metadata.version in force.

    A field that the level's version lacks must hold its default: it would be lost.
    """
    kind = _BY_RECORD[type(record)]
    header, lacks = _frame_header(kind.number, level)
    assert not (lost := _set_fields(record, lacks)), f"{kind.name} at level {level} lacks {lost}"
    return header + kind.encode(record)


def decode_record(data: bytes) -> MetadataRecord:
    """The inverse of `encode_record`, at any level. Raises BadRecord, UnsupportedMetadata."""
    frame, number, version, position = read_frame(data)
    if frame != FRAME_VERSION:
        raise UnsupportedMetadata(f"a record in frame version {frame}", f"frame version {FRAME_VERSION}")
    kind = _BY_NUMBER.get(number)
    if kind is None:
        raise UnsupportedMetadata(f"a record of type {number}", f"the types {sorted(_BY_NUMBER)}")
    if version > kind.newest:
        supported = f"its versions 0 to {kind.newest}"
        raise UnsupportedMetadata(f"{kind.name} version {version}", supported)
    return _decode_message(kind, version, data[position:])


def read_frame(data: bytes) -> tuple[int, int, int, int]:
    """Frame version, record type, record version, and the position after them. Raises BadRecord."""
    if len(data) >= 3 and max(data[0], data[1], data[2]) < 0x80:  # one byte each, as in all that is written today
        return data[0], data[1], data[2], 3
    try:
        frame, position = read_uvarint(data, 0, len(data))
        number, position = read_uvarint(data, position, len(data))
        version, position = read_uvarint(data, position, len(data))
    except Malformed as error:
        raise BadRecord(f"no frame: {error}") from error
    return frame, number, version, position


@cache
def _frame_header(number: int, level: int) -> tuple[bytes, tuple[str, ...]]:
    """For a record type: the frame before the message, and the fields that its version at this level lacks."""
    kind = _BY_NUMBER[number]
    version = kind.version_at(level)
    assert version >= 0, f"{kind.name} is not written before metadata.version {kind.levels[0]}"
    out = bytearray()
    for part in (FRAME_VERSION, number, version):
        write_uvarint(out, part)
    return bytes(out), kind.fields_after(version)


def _decode_message(kind: RecordType, version: int, message: bytes) -> MetadataRecord:
    try:
        parsed, unknown = parse_with_unknown(kind.message, message)
        record: MetadataRecord = kind.read(parsed)
    except DecodeError as error:
        raise BadRecord(str(error)) from error
    if unknown:
        found = f"{kind.name} version {version} with unknown fields ({unknown} of {len(message)} bytes)"
        raise UnsupportedMetadata(found, "the fields of its schema alone")
    if version < kind.newest and (early := _set_fields(record, kind.fields_after(version))):
        raise BadRecord(f"{kind.name} version {version} with fields of a later version: {early}")
    return record


def _set_fields(record: MetadataRecord, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the named fields that are present. An added field is optional or repeated: empty means absent."""
    return tuple(name for name in names if getattr(record, name) not in (None, ()))
