"""The frame around a metadata record's value: which record it is, in which version.

    uvarint frame version (0), uvarint record type, uvarint record version, the message

Types are Kafka's numbers (KIP-631), from 1000 on our own; the message is protobuf of our schema. `_TYPES`
says for each type which versions this software reads, and which one it writes at each level of metadata.version.

Nothing is read halfway. A type, a version or a field that this software does not know gives UnsupportedMetadata: the
node stays out until it is upgraded. Bytes that no software wrote give BadRecord.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from quorumlog.messages.decode_error import DecodeError
from quorumlog.messages.metadata_records import (
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ClusterIncarnationRecord,
    ConfigRecord,
    DelegationTokenRecord,
    DeletedTopicRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    ForgetDeletedTopicsRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    SnapshotStateRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
)
from quorumlog.records.format.varint import Malformed, read_uvarint, write_uvarint
from quorumlog.rpc.convert import metadata_records as convert
from quorumlog.rpc.convert.parsing import parse_with_unknown
from quorumlog.rpc.pb import metadata_records_pb2 as pb
from quorumlog_quorum.metadata.features import (
    ACCESS_LEVEL,
    CORDON_LEVEL,
    INCARNATION_LEVEL,
    TOKEN_LEVEL,
    TRANSACTION_LEVEL,
)
from quorumlog_quorum.metadata.unsupported import UnsupportedMetadata

FRAME_VERSION = 0

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
    | RegisterControllerRecord
    | UnregisterControllerRecord
    | DeletedTopicRecord
    | ForgetDeletedTopicsRecord
    | SnapshotStateRecord
    | ClusterIncarnationRecord
    | UserScramCredentialRecord
    | ClientQuotaRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | RemoveUserScramCredentialRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
)


class _RecordType(NamedTuple):
    """written_from: for each version, from `lowest` on, the level of metadata.version that first writes it; ascending.

    added_fields: for each version after 0 that brought fields, their names.
    """

    number: int
    record: type
    encode: Callable[[Any], bytes]
    message: type[Any]  # the protobuf class
    read: Callable[[Any], MetadataRecord]  # from the protobuf object
    written_from: tuple[int, ...] = (1,)
    added_fields: tuple[tuple[int, tuple[str, ...]], ...] = ()
    lowest: int = 0  # the oldest version that this software reads

    @property
    def highest(self) -> int:
        """The newest version that this software reads."""
        return self.lowest + len(self.written_from) - 1

    @property
    def name(self) -> str:
        return self.record.__name__

    def version_at(self, level: int) -> int:
        """The version to write at a level of metadata.version; below `lowest` if the level has no such record."""
        return self.lowest + sum(since <= level for since in self.written_from) - 1

    def fields_after(self, version: int) -> tuple[str, ...]:
        """The fields that `version` does not have."""
        return tuple(name for added, names in self.added_fields if added > version for name in names)


_TYPES = (
    _RecordType(
        0,
        RegisterBrokerRecord,
        convert.encode_RegisterBrokerRecord,
        pb.RegisterBrokerRecord,
        convert.read_RegisterBrokerRecord,
        written_from=(1, 2, CORDON_LEVEL),
        added_fields=((1, ("features",)), (2, ("cordoned_directories",))),
    ),
    _RecordType(
        1,
        UnregisterBrokerRecord,
        convert.encode_UnregisterBrokerRecord,
        pb.UnregisterBrokerRecord,
        convert.read_UnregisterBrokerRecord,
    ),
    _RecordType(2, TopicRecord, convert.encode_TopicRecord, pb.TopicRecord, convert.read_TopicRecord),
    _RecordType(3, PartitionRecord, convert.encode_PartitionRecord, pb.PartitionRecord, convert.read_PartitionRecord),
    _RecordType(4, ConfigRecord, convert.encode_ConfigRecord, pb.ConfigRecord, convert.read_ConfigRecord),
    _RecordType(
        5,
        PartitionChangeRecord,
        convert.encode_PartitionChangeRecord,
        pb.PartitionChangeRecord,
        convert.read_PartitionChangeRecord,
    ),
    _RecordType(
        9, RemoveTopicRecord, convert.encode_RemoveTopicRecord, pb.RemoveTopicRecord, convert.read_RemoveTopicRecord
    ),
    _RecordType(
        12,
        FeatureLevelRecord,
        convert.encode_FeatureLevelRecord,
        pb.FeatureLevelRecord,
        convert.read_FeatureLevelRecord,
    ),
    _RecordType(
        15, ProducerIdsRecord, convert.encode_ProducerIdsRecord, pb.ProducerIdsRecord, convert.read_ProducerIdsRecord
    ),
    _RecordType(
        17,
        BrokerRegistrationChangeRecord,
        convert.encode_BrokerRegistrationChangeRecord,
        pb.BrokerRegistrationChangeRecord,
        convert.read_BrokerRegistrationChangeRecord,
        written_from=(1, CORDON_LEVEL),
        added_fields=((1, ("cordoned_directories",)),),
    ),
    _RecordType(20, NoOpRecord, convert.encode_NoOpRecord, pb.NoOpRecord, convert.read_NoOpRecord),
    _RecordType(
        27,
        RegisterControllerRecord,
        convert.encode_RegisterControllerRecord,
        pb.RegisterControllerRecord,
        convert.read_RegisterControllerRecord,
        written_from=(3,),
    ),
    _RecordType(
        29,
        UnregisterControllerRecord,
        convert.encode_UnregisterControllerRecord,
        pb.UnregisterControllerRecord,
        convert.read_UnregisterControllerRecord,
        written_from=(3,),
    ),
    _RecordType(
        1000,
        DeletedTopicRecord,
        convert.encode_DeletedTopicRecord,
        pb.DeletedTopicRecord,
        convert.read_DeletedTopicRecord,
        written_from=(3,),
    ),
    _RecordType(
        1001,
        ForgetDeletedTopicsRecord,
        convert.encode_ForgetDeletedTopicsRecord,
        pb.ForgetDeletedTopicsRecord,
        convert.read_ForgetDeletedTopicsRecord,
        written_from=(3,),
    ),
    _RecordType(
        1003,
        SnapshotStateRecord,
        convert.encode_SnapshotStateRecord,
        pb.SnapshotStateRecord,
        convert.read_SnapshotStateRecord,
    ),
    _RecordType(
        1002,
        ClusterIncarnationRecord,
        convert.encode_ClusterIncarnationRecord,
        pb.ClusterIncarnationRecord,
        convert.read_ClusterIncarnationRecord,
        written_from=(INCARNATION_LEVEL,),
    ),
    _RecordType(
        11,
        UserScramCredentialRecord,
        convert.encode_UserScramCredentialRecord,
        pb.UserScramCredentialRecord,
        convert.read_UserScramCredentialRecord,
        written_from=(ACCESS_LEVEL,),
    ),
    _RecordType(
        14,
        ClientQuotaRecord,
        convert.encode_ClientQuotaRecord,
        pb.ClientQuotaRecord,
        convert.read_ClientQuotaRecord,
        written_from=(ACCESS_LEVEL,),
    ),
    _RecordType(
        18,
        AccessControlEntryRecord,
        convert.encode_AccessControlEntryRecord,
        pb.AccessControlEntryRecord,
        convert.read_AccessControlEntryRecord,
        written_from=(ACCESS_LEVEL,),
    ),
    _RecordType(
        19,
        RemoveAccessControlEntryRecord,
        convert.encode_RemoveAccessControlEntryRecord,
        pb.RemoveAccessControlEntryRecord,
        convert.read_RemoveAccessControlEntryRecord,
        written_from=(ACCESS_LEVEL,),
    ),
    _RecordType(
        22,
        RemoveUserScramCredentialRecord,
        convert.encode_RemoveUserScramCredentialRecord,
        pb.RemoveUserScramCredentialRecord,
        convert.read_RemoveUserScramCredentialRecord,
        written_from=(ACCESS_LEVEL,),
    ),
    _RecordType(
        23,
        BeginTransactionRecord,
        convert.encode_BeginTransactionRecord,
        pb.BeginTransactionRecord,
        convert.read_BeginTransactionRecord,
        written_from=(TRANSACTION_LEVEL,),
    ),
    _RecordType(
        24,
        EndTransactionRecord,
        convert.encode_EndTransactionRecord,
        pb.EndTransactionRecord,
        convert.read_EndTransactionRecord,
        written_from=(TRANSACTION_LEVEL,),
    ),
    _RecordType(
        25,
        AbortTransactionRecord,
        convert.encode_AbortTransactionRecord,
        pb.AbortTransactionRecord,
        convert.read_AbortTransactionRecord,
        written_from=(TRANSACTION_LEVEL,),
    ),
    _RecordType(
        10,
        DelegationTokenRecord,
        convert.encode_DelegationTokenRecord,
        pb.DelegationTokenRecord,
        convert.read_DelegationTokenRecord,
        written_from=(TOKEN_LEVEL,),
    ),
    _RecordType(
        26,
        RemoveDelegationTokenRecord,
        convert.encode_RemoveDelegationTokenRecord,
        pb.RemoveDelegationTokenRecord,
        convert.read_RemoveDelegationTokenRecord,
        written_from=(TOKEN_LEVEL,),
    ),
)

_BY_RECORD: dict[type, _RecordType] = {kind.record: kind for kind in _TYPES}
_BY_NUMBER: dict[int, _RecordType] = {kind.number: kind for kind in _TYPES}


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
    return kind.version_at(level) >= kind.lowest


def differs_between(lower: int, higher: int) -> list[type[MetadataRecord]]:
    """The records that these two levels write in different versions, or that only the higher level has."""
    return [kind.record for kind in _TYPES if kind.version_at(lower) != kind.version_at(higher)]


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
    if not kind.lowest <= version <= kind.highest:
        supported = f"its versions {kind.lowest} to {kind.highest}"
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
    assert version >= kind.lowest, f"{kind.name} is not written before metadata.version {kind.written_from[0]}"
    out = bytearray()
    for part in (FRAME_VERSION, number, version):
        write_uvarint(out, part)
    return bytes(out), kind.fields_after(version)


def _decode_message(kind: _RecordType, version: int, message: bytes) -> MetadataRecord:
    try:
        parsed, unknown = parse_with_unknown(kind.message, message)
        record = kind.read(parsed)
    except DecodeError as error:
        raise BadRecord(str(error)) from error
    if unknown:
        found = f"{kind.name} version {version} with unknown fields ({unknown} of {len(message)} bytes)"
        raise UnsupportedMetadata(found, "the fields of its schema alone")
    if version < kind.highest and (early := _set_fields(record, kind.fields_after(version))):
        raise BadRecord(f"{kind.name} version {version} with fields of a later version: {early}")
    return record


def _set_fields(record: MetadataRecord, names: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the named fields that are present. An added field is optional or repeated: empty means absent."""
    return tuple(name for name in names if getattr(record, name) not in (None, ()))
