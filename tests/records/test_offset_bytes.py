"""Offset records as bytes: the same as the general layouts write and read."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quorumlog.ids import ZERO_UUID
from quorumlog.records import CorruptRecords
from quorumlog.records.coordinator import GROUP_TYPES, decode, encode_key
from quorumlog.records.coordinator.offset_bytes import (
    GROUP_BEGINS_AT,
    group_ends_at,
    is_rest,
    is_text,
    is_usual,
    key_of,
    offset_key,
    read_value,
    rest_of,
    topic_and_index,
    topic_part,
    write_value,
)
from quorumlog.records.coordinator.offsets import OFFSET_COMMIT, OffsetCommitValue, OffsetKey
from tests.parts import few

ID = bytes(range(1, 17))
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
int32s, int64s = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
values = st.builds(
    OffsetCommitValue,
    offset=int64s,
    metadata=st.one_of(names, st.integers(120, 130).map(lambda size: "m" * size)),
    commit_timestamp=int64s,
    leader_epoch=int32s,
    topic_id=st.sampled_from([ZERO_UUID, ID]),
)


@given(names, names, int32s)
def test_keys(group: str, topic: str, index: int) -> None:
    key = offset_key(group, topic, index)
    assert key == encode_key(OffsetKey(group, topic, index)) == key_of(group.encode(), rest_of(topic, index))
    end = group_ends_at(key)
    assert key[GROUP_BEGINS_AT:end].decode() == group and is_rest(key[end:])
    assert topic_and_index(key[end:]) == (topic, index)
    assert key[end:].startswith(topic_part(topic)) and not key[end:].startswith(topic_part(topic + "x"))


@given(values)
def test_values(value: OffsetCommitValue) -> None:
    data = write_value(value)
    assert data == OFFSET_COMMIT.encode(value, 4)
    assert read_value(data) == value
    assert is_usual(data) == (len(value.metadata.encode()) <= 126)


@given(values, st.integers(0, 3))
def test_values_of_older_versions(value: OffsetCommitValue, version: int) -> None:
    data = OFFSET_COMMIT.encode(value, version)
    assert not is_usual(data) and read_value(data) == OFFSET_COMMIT.decode(data)[1]


@pytest.mark.parametrize(("topic_id", "version"), [(ZERO_UUID, 1), (ID, 4)], ids=["Kafka's", "ours"])
def test_a_value_with_an_expire_time_is_of_the_version_that_has_one(topic_id: bytes, version: int) -> None:
    value = OffsetCommitValue(7, "m", 5, expire_timestamp=9, topic_id=topic_id)
    assert write_value(value) == OFFSET_COMMIT.encode(value, version) and read_value(write_value(value)) == value


def test_who_does_not_know_the_expire_time_of_a_value_with_a_topic_id_reads_the_rest() -> None:
    """As Kafka, and older software."""
    plain, both = (OffsetCommitValue(7, "m", 5, expire, 3, ID) for expire in (-1, 9))
    tag = b"\x90\x4e\x08" + (9).to_bytes(8, "big")  # 10,000, of eight bytes
    usual, found = write_value(plain), write_value(both)
    at = usual.index(b"\1\0\x10" + ID)  # one tagged field, number 0, of sixteen bytes
    assert found == usual[:at] + b"\2" + usual[at + 1 :] + tag and not is_usual(found)


@settings(max_examples=few(1_000))
@given(st.data())
def test_damaged_bytes_are_usual_only_if_they_can_be_read(data: st.DataObject) -> None:
    """Whatever is taken as it is in the log is what the layouts would have found."""
    out = bytearray(write_value(data.draw(values)))
    for _ in range(data.draw(st.integers(1, 3))):
        out[data.draw(st.integers(0, len(out) - 1))] = data.draw(st.integers(0, 255))
    broken = bytes(out[: data.draw(st.integers(0, len(out)))] if data.draw(st.booleans()) else out)
    if is_usual(broken):
        version, value = OFFSET_COMMIT.decode(broken)
        assert (version, value) == (4, read_value(broken))
    else:
        try:
            expected = OFFSET_COMMIT.decode(broken)[1]
        except CorruptRecords:
            with pytest.raises(CorruptRecords):
                read_value(broken)
        else:
            assert read_value(broken) == expected


@settings(max_examples=few(1_000))
@given(st.binary(max_size=24))
@example(b"\0\1\0\1\xff\0\1t\0\0\0\0")
@example(b"\0\1\0\1g\0\1\xff\0\0\0\0")
@example(b"\0\1\xff\xff\0\1t\0\0\0\0")
@example(b"\0\0\0\1g\0\1t\0\0\0\7")
def test_any_bytes_are_a_key_only_if_the_layouts_say_so(key: bytes) -> None:
    end = group_ends_at(key)
    taken = bool(end) and is_text(key[GROUP_BEGINS_AT:end]) and is_rest(key[end:])
    try:
        found = decode(GROUP_TYPES, key, None).key
    except CorruptRecords:
        found = None
    assert taken == isinstance(found, OffsetKey)
