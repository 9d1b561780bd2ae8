"""Records of the internal topics by their keys: which type a record has, and what it says.

A key is the type as an int16 and the fields of its class, never flexible. A null value is a tombstone: the key's state
is gone. The rules are Kafka's CoordinatorRecordSerde and the schemas of its group and transaction coordinators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from quorumlog.records.coordinator import consumer_groups as groups
from quorumlog.records.coordinator.fields import FieldReader, FieldWriter
from quorumlog.records.coordinator.joint import GIVEN_UP, GIVEN_UP_TYPE, GROUP_TYPE, JOINT, GivenUpKey, JointKey
from quorumlog.records.coordinator.layout import INT, LONG, TEXT, Field, Layout
from quorumlog.records.coordinator.offsets import GROUP_METADATA, OFFSET_COMMIT, GroupMetadataKey, OffsetKey
from quorumlog.records.coordinator.transactions import TRANSACTION, TransactionKey
from quorumlog.records.format.corrupt import CorruptRecords
from quorumlog.records.format.flexible import INT16


class RecordType(NamedTuple):
    """A type of record: the number that its key begins with, and the layouts of its key and of its value."""

    number: int
    key_class: type[Any]
    key: Layout[Any]
    value: Layout[Any]


class UnknownType(NamedTuple):
    """The key of a record of newer software, or of a kind of group that does not exist here (share, streams)."""

    number: int


class CoordinatorRecord(NamedTuple):
    """What one record says. version, value: None for a tombstone, and where the type is not known."""

    type: int
    key: Any
    version: int | None
    value: Any

    def show(self, types: Types) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """(key, value) as kafka-dump-log shows them; the value is None for a tombstone.

        {"type": "1", "data": {...}} and {"version": "4", "data": {...}}. The key of an unknown type has no data.
        """
        if isinstance(self.key, UnknownType):
            return {"type": str(self.type)}, None
        row = types[self.type]
        key = {"type": str(self.type), "data": row.key.show(self.type, self.key)}
        if self.version is None:
            return key, None
        return key, {"version": str(self.version), "data": row.value.show(self.version, self.value)}


Types = Mapping[int, RecordType]


_KEY_KINDS = {"partition": INT, "sequence": LONG}  # of fields of keys; all others are texts


def _types(*rows: tuple[int, type[Any], Layout[Any]]) -> Types:
    """By number."""
    return {
        number: RecordType(number, key, Layout(key, *(_key_field(name) for name in key._fields)), value)
        for number, key, value in rows
    }


def _key_field(name: str) -> Field:
    """A key is read by its type as if that were a version."""
    return Field(name, _KEY_KINDS.get(name, TEXT), until=2**15 - 1)


GROUP_TYPES = _types(
    (0, OffsetKey, OFFSET_COMMIT),  # before type 1, and the same
    (1, OffsetKey, OFFSET_COMMIT),
    (2, GroupMetadataKey, GROUP_METADATA),
    (3, groups.ConsumerGroupMetadataKey, groups.GROUP),
    (4, groups.ConsumerGroupPartitionMetadataKey, groups.PARTITION_METADATA),
    (5, groups.ConsumerGroupMemberMetadataKey, groups.MEMBER),
    (6, groups.ConsumerGroupTargetAssignmentMetadataKey, groups.TARGET),
    (7, groups.ConsumerGroupTargetAssignmentMemberKey, groups.TARGET_MEMBER),
    (8, groups.ConsumerGroupCurrentMemberAssignmentKey, groups.CURRENT_MEMBER),
    (16, groups.ConsumerGroupRegularExpressionKey, groups.REGULAR_EXPRESSION),
)
TRANSACTION_TYPES = _types(
    (0, TransactionKey, TRANSACTION), (GROUP_TYPE, JointKey, JOINT), (GIVEN_UP_TYPE, GivenUpKey, GIVEN_UP)
)
_OF_TRANSACTIONS = tuple(row.key_class for row in TRANSACTION_TYPES.values())
_NUMBERS = {row.key_class: row.number for types in (GROUP_TYPES, TRANSACTION_TYPES) for row in types.values()}


def number_of(key: Any) -> int:
    """The newest type of record that has keys of this class."""
    return _NUMBERS[type(key)]


def encode_key(key: Any) -> bytes:
    """The key of a record, of the newest type that its class has."""
    number = number_of(key)
    types = TRANSACTION_TYPES if isinstance(key, _OF_TRANSACTIONS) else GROUP_TYPES
    writer = FieldWriter(flexible=False)
    writer.number(INT16, number)
    types[number].key.write(writer, number, key)
    return writer.done()


def decode(types: Types, key: bytes | None, value: bytes | None) -> CoordinatorRecord:
    """A record of the topic that has these types. A record of an unknown type is no error: its key is `UnknownType`.

    Raises CorruptRecords for bytes that are neither, with the position in the key or in the value; UnknownVersion for
    a value of newer software.
    """
    if key is None:
        raise CorruptRecords(0, "a record of an internal topic has no key")
    reader = FieldReader(key)
    number = reader.number(INT16)
    row = types.get(number)
    if row is None:
        return CoordinatorRecord(number, UnknownType(number), None, None)
    decoded = row.key.read(reader, number)
    reader.end()
    if value is None:
        return CoordinatorRecord(number, decoded, None, None)
    version, said = row.value.decode(value)
    return CoordinatorRecord(number, decoded, version, said)
