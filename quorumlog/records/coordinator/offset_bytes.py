"""Records of committed offsets as bytes, without the general layouts: coordinators write and load millions of them.

A key is the type, the group, and then the topic and the partition: `rest`, which is all that tells the offsets of one
group apart. A usual value is version 4 with short metadata and at most the topic's id as a tagged field. What is not
usual is left to `GROUP_TYPES` and `OFFSET_COMMIT`, which alone refuse bytes: both read and write the same.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from quorumlog.ids import UUID_BYTES, ZERO_UUID, Epoch, Offset, Uuid
from quorumlog.records.coordinator.offsets import NO_TIMESTAMP, OFFSET_COMMIT, OffsetCommitValue
from quorumlog.records.format.varint import write_uvarint

NEWEST, WITH_EXPIRE_TIME = 4, 1  # versions of the value
MAX_SHORT_METADATA = 126  # bytes whose number plus one is a varint of one byte

_INT32 = Struct(">i")
_KEY_BEGIN = 4  # bytes: the type and the group's length
_LENGTH_BYTES, _INDEX_BYTES = 2, 4
_BEGIN = Struct(">hqiB")  # version, offset, leader epoch, length of the metadata plus one
_BEGIN_OF_LONG = Struct(">hqi")  # without that length
_TIME = Struct(">q")
_NO_TAGS = b"\0"
_TOPIC_ID = bytes((1, 0, UUID_BYTES))  # one tagged field, number 0, of so many bytes
_WITHOUT_ID = _BEGIN.size + _TIME.size + len(_NO_TAGS)  # beside the metadata
_WITH_ID = _BEGIN.size + _TIME.size + len(_TOPIC_ID) + UUID_BYTES


def offset_key(group: str, topic: str, index: int) -> bytes:
    """The key of a record, of type 1."""
    return key_in(begin_of_keys(group, topic), index)


def key_in(begin: bytes, index: int) -> bytes:
    """begin: see `begin_of_keys`."""
    return begin + _INT32.pack(index)


@lru_cache(maxsize=4_096)
def begin_of_keys(group: str, topic: str) -> bytes:
    """What the keys of a topic's partitions begin with, in one group."""
    return b"\0\1" + _text(group) + _text(topic)


def key_of(group: bytes, rest: bytes) -> bytes:
    """The key of a record, of type 1, from its two parts."""
    return b"\0\1%b%b%b" % (len(group).to_bytes(_LENGTH_BYTES, "big"), group, rest)


def rest_of(topic: str, index: int) -> bytes:
    """The part of a key that follows the group."""
    return _topic_text(topic) + _INT32.pack(index)


def topic_and_index(rest: bytes) -> tuple[str, int]:
    return rest[_LENGTH_BYTES:-_INDEX_BYTES].decode(), _INT32.unpack_from(rest, len(rest) - _INDEX_BYTES)[0]


def topic_part(topic: str) -> bytes:
    """What `rest` begins with, for each partition of the topic, and for those of no other topic."""
    return _topic_text(topic)


@lru_cache(maxsize=4_096)
def _topic_text(topic: str) -> bytes:
    return _text(topic)


def _text(text: str) -> bytes:
    data = text.encode()
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


def group_ends_at(key: bytes) -> int:
    """Where the group ends in a key that may be of an offset; 0 if it is of another type, or too short.

    The group begins at GROUP_BEGINS_AT. What follows it may still be no topic and partition.
    """
    if len(key) < _KEY_BEGIN or key[0] or key[1] > 1 or key[2] > 0x7F:
        return 0
    return _KEY_BEGIN + (key[2] << 8 | key[3])


GROUP_BEGINS_AT = _KEY_BEGIN


def is_rest(rest: bytes) -> bool:
    """These bytes are a topic and a partition."""
    if len(rest) < _LENGTH_BYTES + _INDEX_BYTES or rest[0] > 0x7F:
        return False
    if len(rest) != _LENGTH_BYTES + (rest[0] << 8 | rest[1]) + _INDEX_BYTES:
        return False
    return is_text(rest[_LENGTH_BYTES:-_INDEX_BYTES])


def is_text(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_usual(value: bytes) -> bool:
    """A value that `read_value` takes apart by itself."""
    if len(value) < _WITHOUT_ID or value[0] or value[1] != NEWEST:
        return False
    metadata = value[_BEGIN.size - 1] - 1
    if not 0 <= metadata <= MAX_SHORT_METADATA:
        return False
    rest = len(value) - metadata
    if rest == _WITHOUT_ID:
        if value[-1]:
            return False
    elif rest != _WITH_ID or value[-UUID_BYTES - len(_TOPIC_ID) : -UUID_BYTES] != _TOPIC_ID:
        return False
    return not metadata or is_text(value[_BEGIN.size : _BEGIN.size + metadata])


def read_value(value: bytes) -> OffsetCommitValue:
    """Raises CorruptRecords, UnknownVersion."""
    if not is_usual(value):
        return OFFSET_COMMIT.decode(value)[1]
    _, offset, leader_epoch, length = _BEGIN.unpack_from(value)
    at = _BEGIN.size + length - 1
    (commit_timestamp,) = _TIME.unpack_from(value, at)
    return OffsetCommitValue(
        offset,
        value[_BEGIN.size : at].decode(),
        commit_timestamp,
        NO_TIMESTAMP,
        leader_epoch,
        value[-UUID_BYTES:] if value[at + _TIME.size] else ZERO_UUID,
    )


def write_value(value: OffsetCommitValue) -> bytes:
    """In the newest version, or in the one of Kafka's that has an expire time and no leader epoch, which is lost: where
    the value has an expire time and no topic id."""
    if value.expire_timestamp != NO_TIMESTAMP:
        return OFFSET_COMMIT.encode(value, WITH_EXPIRE_TIME if value.topic_id == ZERO_UUID else NEWEST)
    return value_of(
        value.offset, value.leader_epoch, value.metadata.encode(), end_of(value.commit_timestamp, value.topic_id)
    )


def end_of(commit_timestamp: int, topic_id: Uuid) -> bytes:
    """What a usual value ends with: the same for all partitions that one call commits of a topic."""
    return _TIME.pack(commit_timestamp) + (_NO_TAGS if topic_id == ZERO_UUID else _TOPIC_ID + topic_id)


def value_of(offset: Offset, leader_epoch: Epoch, metadata: bytes, end: bytes) -> bytes:
    """A value of the newest version. metadata: UTF-8. end: see `end_of`."""
    size = len(metadata) + 1
    if size <= MAX_SHORT_METADATA + 1:
        return _BEGIN.pack(NEWEST, offset, leader_epoch, size) + metadata + end
    begin = bytearray(_BEGIN_OF_LONG.pack(NEWEST, offset, leader_epoch))
    write_uvarint(begin, size)
    return bytes(begin) + metadata + end
