"""The frame around a metadata record's value: which record it is, in which version.

    uvarint frame version (0), uvarint record type, uvarint record version (0), the message

Types are Kafka's numbers (KRAFT 2.5), the message is protobuf of our schema (DESIGN 12). Bytes left over would be
unknown fields of the message: a newer writer's, and refused, because a record that is half understood must not change
state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from quorumlog.messages.buffer import Buffer
from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from quorumlog.records.varint import Malformed, read_uvarint, write_uvarint
from quorumlog.rpc.convert import metadata_records as convert

FRAME_VERSION = 0
RECORD_VERSION = 0

MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | NoOpRecord
)


class _Kind(NamedTuple):
    number: int
    record: type
    encode: Callable[[Any], bytes]
    decode: Callable[[Buffer], MetadataRecord]


_KINDS = (
    _Kind(0, RegisterBrokerRecord, convert.encode_RegisterBrokerRecord, convert.decode_RegisterBrokerRecord),
    _Kind(1, UnregisterBrokerRecord, convert.encode_UnregisterBrokerRecord, convert.decode_UnregisterBrokerRecord),
    _Kind(2, TopicRecord, convert.encode_TopicRecord, convert.decode_TopicRecord),
    _Kind(3, PartitionRecord, convert.encode_PartitionRecord, convert.decode_PartitionRecord),
    _Kind(4, ConfigRecord, convert.encode_ConfigRecord, convert.decode_ConfigRecord),
    _Kind(5, PartitionChangeRecord, convert.encode_PartitionChangeRecord, convert.decode_PartitionChangeRecord),
    _Kind(9, RemoveTopicRecord, convert.encode_RemoveTopicRecord, convert.decode_RemoveTopicRecord),
    _Kind(12, FeatureLevelRecord, convert.encode_FeatureLevelRecord, convert.decode_FeatureLevelRecord),
    _Kind(15, ProducerIdsRecord, convert.encode_ProducerIdsRecord, convert.decode_ProducerIdsRecord),
    _Kind(
        17,
        BrokerRegistrationChangeRecord,
        convert.encode_BrokerRegistrationChangeRecord,
        convert.decode_BrokerRegistrationChangeRecord,
    ),
    _Kind(20, NoOpRecord, convert.encode_NoOpRecord, convert.decode_NoOpRecord),
)

_BY_RECORD: dict[type, _Kind] = {kind.record: kind for kind in _KINDS}
_BY_NUMBER: dict[int, _Kind] = {kind.number: kind for kind in _KINDS}


class BadRecord(Exception):
    """Bytes in the metadata log that are no record of ours: corruption, or a newer version's record."""


def record_type(record: MetadataRecord) -> int:
    """Kafka's number of the record's type."""
    return _BY_RECORD[type(record)].number


def encode_record(record: MetadataRecord) -> bytes:
    """The value of a log record: frame and message."""
    kind = _BY_RECORD[type(record)]
    out = bytearray()
    for number in (FRAME_VERSION, kind.number, RECORD_VERSION):
        write_uvarint(out, number)
    return bytes(out) + kind.encode(record)


def decode_record(data: bytes) -> MetadataRecord:
    """The inverse of `encode_record`. Raises BadRecord."""
    try:
        frame, position = read_uvarint(data, 0, len(data))
        number, position = read_uvarint(data, position, len(data))
        version, position = read_uvarint(data, position, len(data))
    except Malformed as error:
        raise BadRecord(f"no frame: {error}") from error
    if frame != FRAME_VERSION:
        raise BadRecord(f"frame version {frame}, known is {FRAME_VERSION}")
    if number not in _BY_NUMBER:
        raise BadRecord(f"unknown record type {number}")
    if version != RECORD_VERSION:
        raise BadRecord(f"{_BY_NUMBER[number].record.__name__} version {version}, known is {RECORD_VERSION}")
    return _decode_message(_BY_NUMBER[number], data[position:])


def _decode_message(kind: _Kind, message: bytes) -> MetadataRecord:
    try:
        record = kind.decode(message)
    except DecodeError as error:
        raise BadRecord(str(error)) from error
    known = len(kind.encode(record))  # protobuf passes over unknown fields in silence; the length shows them
    if known != len(message):
        raise BadRecord(f"{kind.record.__name__}: {len(message)} bytes, of which {known} are understood")
    return record
