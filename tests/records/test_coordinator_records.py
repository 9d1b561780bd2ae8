"""Records of `__consumer_offsets` and `__transaction_state`, against bytes that Kafka 4.3.1 wrote."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorumlog.records import CorruptRecords
from quorumlog.records.coordinator import (
    GROUP_TYPES,
    TRANSACTION_TYPES,
    Types,
    UnknownType,
    UnknownVersion,
    decode,
    encode_key,
)
from quorumlog.records.coordinator import consumer_groups as groups
from quorumlog.records.coordinator.joint import Fact, GivenUpKey, GivenUpValue, JointKey, JointValue, pack, unpack
from quorumlog.records.coordinator.layout import Layout
from quorumlog.records.coordinator.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    OffsetKey,
)
from quorumlog.records.coordinator.transactions import (
    TRANSACTION,
    TransactionKey,
    TransactionPartitions,
    TransactionValue,
)
from tests.records.coordinator_samples import (
    AT,
    CLASSIC_MEMBER,
    GROUP_SAMPLES,
    ID,
    JOINT_CHILD,
    JOINT_SAMPLES,
    TRANSACTION_SAMPLES,
)
from tests.rules import rule

ID_HEX = ID.hex()
OFFSET = "00010001670003666f6f00000000"
GOLDEN: list[tuple[str, Types, str, str, Any, int, Any]] = [
    (
        "offset",
        GROUP_TYPES,
        OFFSET,
        "0004000000000000002a00000005026d0000018bcfe56800010010" + ID_HEX,
        OffsetKey("g", "foo", 0),
        4,
        OffsetCommitValue(42, "m", AT, leader_epoch=5, topic_id=ID),
    ),
    (
        "offset without id and metadata",
        GROUP_TYPES,
        OFFSET,
        "0004000000000000002affffffff010000018bcfe5680000",
        OffsetKey("g", "foo", 0),
        4,
        OffsetCommitValue(42, "", AT),
    ),
    (
        "classic group",
        GROUP_TYPES,
        "0002000167",
        "00030008636f6e73756d657200000001000572616e676500026d310000018bcfe568000000000100026d31ffff000163"
        "000a2f3132372e302e302e31000493e00000afc800000001010000000102",
        GroupMetadataKey("g"),
        3,
        GroupMetadataValue(
            "consumer",
            1,
            "range",
            "m1",
            (MemberMetadata("m1", "c", "/127.0.0.1", 45_000, b"\1", b"\2", rebalance_timeout=300_000),),
            current_state_timestamp=AT,
        ),
    ),
    (
        "consumer group",
        GROUP_TYPES,
        "0003000167",
        "00000000000301" + "0008" + "0000000000000001",
        groups.ConsumerGroupMetadataKey("g"),
        0,
        groups.ConsumerGroupMetadataValue(3, 1),
    ),
    (
        "member",
        GROUP_TYPES,
        "000500016700026d31",
        "0000010102630b2f3132372e302e302e310204666f6f01000493e008756e69666f726d00",
        groups.ConsumerGroupMemberMetadataKey("g", "m1"),
        0,
        groups.ConsumerGroupMemberMetadataValue("", "", "c", "/127.0.0.1", ("foo",), "", 300_000, "uniform"),
    ),
    (
        "target",
        GROUP_TYPES,
        "0006000167",
        "00000000000301" + "0008" + "0000018bcfe56800",
        groups.ConsumerGroupTargetAssignmentMetadataKey("g"),
        0,
        groups.ConsumerGroupTargetAssignmentMetadataValue(3, AT),
    ),
    (
        "target of a member",
        GROUP_TYPES,
        "000700016700026d31",
        "000002" + ID_HEX + "0300000000000000010000",
        groups.ConsumerGroupTargetAssignmentMemberKey("g", "m1"),
        0,
        groups.ConsumerGroupTargetAssignmentMemberValue((groups.TargetPartitions(ID, (0, 1)),)),
    ),
    (
        "current assignment",
        GROUP_TYPES,
        "000800016700026d31",
        "000000000003000000020002" + ID_HEX + "030000000000000001010009030000000200000003" + "0100",
        groups.ConsumerGroupCurrentMemberAssignmentKey("g", "m1"),
        0,
        groups.ConsumerGroupCurrentMemberAssignmentValue(3, 2, 0, (groups.AssignedPartitions(ID, (0, 1), (2, 3)),), ()),
    ),
    (
        "regular expression",
        GROUP_TYPES,
        "00100001670004666f2e2a",
        "00000204666f6f00000000000000070000018bcfe5680000",
        groups.ConsumerGroupRegularExpressionKey("g", "fo.*"),
        0,
        groups.ConsumerGroupRegularExpressionValue(("foo",), 7, AT),
    ),
    (
        "empty transaction",
        TRANSACTION_TYPES,
        "0000000474783131",
        "000100000000000003e900000000ea600000000001a1fb930148ffffffffffffffff01000800000000000003e9",
        TransactionKey("tx11"),
        1,
        TransactionValue(1001, 0, 60_000, 0, None, 0x1A1FB930148, previous_producer_id=1001),
    ),
    (
        "ongoing transaction",
        TRANSACTION_TYPES,
        "0000000474783131",
        "000100000000000003e900000000ea6001020474786e03000000000000000100"
        "000001a1fb93017e000001a1fb93017e01000800000000000003e9",
        TransactionKey("tx11"),
        1,
        TransactionValue(
            1001,
            0,
            60_000,
            1,
            (TransactionPartitions("txn", (0, 1)),),
            0x1A1FB93017E,
            0x1A1FB93017E,
            previous_producer_id=1001,
        ),
    ),
    (
        "complete transaction",
        TRANSACTION_TYPES,
        "0000000474783131",
        "000100000000000003e900000000ea600401000001a1fb93024f000001a1fb93017e01000800000000000003e9",
        TransactionKey("tx11"),
        1,
        TransactionValue(1001, 0, 60_000, 4, (), 0x1A1FB93024F, 0x1A1FB93017E, previous_producer_id=1001),
    ),
    (
        "child of a joint transaction",
        TRANSACTION_TYPES,
        "000000116a6f696e743a737061726b2f713a333a6b",
        "0001000000000000000700020000000101010000018bcfe568000000018bcfe5680001904e3b0108737061726b2f7100000003"
        "11000102030405060708090a0b0c0d0e0f0472756e00000000000000390f2f636865636b706f696e74732f710100",
        TransactionKey("joint:spark/q:3:k"),
        1,
        TransactionValue(7, 2, 1, 1, (), AT, AT, joint=JOINT_CHILD),
    ),
    (
        "decision of a joint group",
        TRANSACTION_TYPES,
        "27100007737061726b2f71",
        "0000000f2f636865636b706f696e74732f710472756e0303723103723200000000000000390205726f77730000000000000007000d"
        "000000000005000000017ffe0000018bcfe5680000",
        JointKey("spark/q"),
        0,
        JointValue(0, "/checkpoints/q", "run", ("r1", "r2"), 57, (Fact("rows", 7),), pack([(0, 5), (1, 32_766)]), AT),
    ),
    (
        "batch that a run has given up",
        TRANSACTION_TYPES,
        "27110007737061726b2f71000372756e0000000000000039",
        "00000000018bcfe5680000",
        GivenUpKey("spark/q", "run", 57),
        0,
        GivenUpValue(AT),
    ),
]
IDS = [row[0] for row in GOLDEN]


@rule("group 2.1")
@pytest.mark.parametrize(("types", "key", "value", "said", "version", "content"), [row[1:] for row in GOLDEN], ids=IDS)
def test_golden_bytes_are_read_and_written(
    types: Types, key: str, value: str, said: Any, version: int, content: Any
) -> None:
    record = decode(types, bytes.fromhex(key), bytes.fromhex(value))
    assert (record.key, record.version, record.value) == (said, version, content)
    assert encode_key(said).hex() == key
    assert types[record.type].value.encode(content, version).hex() == value


@pytest.mark.parametrize(("types", "key"), [(row[1], row[2]) for row in GOLDEN], ids=IDS)
def test_a_tombstone_has_no_value(types: Types, key: str) -> None:
    record = decode(types, bytes.fromhex(key), None)
    assert (record.version, record.value) == (None, None)
    assert record.show(types)[1] is None


@pytest.mark.parametrize(
    ("types", "samples"), [(GROUP_TYPES, GROUP_SAMPLES), (TRANSACTION_TYPES, [*TRANSACTION_SAMPLES, *JOINT_SAMPLES])]
)
def test_every_type_in_every_version(types: Types, samples: list[tuple[Any, int, Any]]) -> None:
    for key, version, value in samples:
        number = decode(types, encode_key(key), None).type
        layout = types[number].value
        assert layout.decode(layout.encode(value, version)) == (version, value)


def test_a_child_takes_six_bytes_of_a_decision() -> None:
    children = [(0, 0), (159_999, 32_766), (2**31 - 1, 1)]
    assert len(pack(children)) == 6 * len(children)
    assert [*unpack(pack(children))] == children


def test_half_a_child_is_damage() -> None:
    layout = TRANSACTION_TYPES[10_000].value
    value = JointValue(0, "", "r", (), 0, (), b"12345", AT)
    with pytest.raises(CorruptRecords, match="5 bytes of children are no multiple of 6"):
        layout.decode(layout.encode(value, 0))


def test_software_that_does_not_know_joint_transactions_passes_over_them() -> None:
    older = Layout(
        TransactionValue, *(one for one in TRANSACTION._fields if one.name != "joint"), newest=1, flexible_since=1
    )
    child = TransactionValue(7, 2, 1, 1, (), AT, AT, joint=JOINT_CHILD)
    assert older.decode(TRANSACTION.encode(child, 1)) == (1, replace(child, joint=None))
    older_types = {0: TRANSACTION_TYPES[0]}
    assert decode(older_types, encode_key(JointKey("g")), b"any").key == UnknownType(10_000)
    assert decode(older_types, encode_key(GivenUpKey("g", "r", 0)), b"any").key == UnknownType(10_001)


def test_a_member_that_speaks_the_classic_protocol() -> None:
    encoded = GROUP_TYPES[5].value.encode(CLASSIC_MEMBER, 0)
    assert encoded.endswith(b"\x01\x00\x11\x01\x00\x00\xaf\xc8\x02\x06range\x03\x00\x01\x00\x00")


def test_a_tag_of_newer_software_is_skipped() -> None:
    value = GROUP_TYPES[3].value.encode(groups.ConsumerGroupMetadataValue(3), 0)
    with_tag = value[:-1] + b"\x01\x07\x02\xaa\xbb"
    assert GROUP_TYPES[3].value.decode(with_tag) == (0, groups.ConsumerGroupMetadataValue(3))


@rule("group 2.4")
def test_what_is_not_known_is_told_apart_from_damage() -> None:
    assert decode(GROUP_TYPES, b"\x00\x0a\xff", b"any").key == UnknownType(10)
    with pytest.raises(UnknownVersion) as unknown:
        decode(GROUP_TYPES, bytes.fromhex(OFFSET), b"\x00\x05")
    assert unknown.value.version == 5
    for key in (None, b"", b"\x00", bytes.fromhex(OFFSET)[:-1], bytes.fromhex(OFFSET) + b"\0"):
        with pytest.raises(CorruptRecords):
            decode(GROUP_TYPES, key, None)


@given(
    st.sampled_from(GOLDEN),
    st.binary(max_size=12),
    st.integers(min_value=0, max_value=80),
    st.integers(min_value=0, max_value=12),
)
def test_damaged_values_are_read_or_refused(row: tuple[Any, ...], patch: bytes, at: int, cut: int) -> None:
    _, types, key, value, *_ = row
    data = bytes.fromhex(value)
    data = data[: at % len(data)] + patch + data[at % len(data) + cut :]
    try:
        record = decode(types, bytes.fromhex(key), data)
    except CorruptRecords:
        return
    layout = types[record.type].value
    assert record.version is not None
    again = layout.decode(layout.encode(record.value, record.version))
    assert again == (record.version, record.value)


def test_shown_as_kafka_shows_it() -> None:
    _, types, key, value, *_ = GOLDEN[0]
    shown = decode(types, bytes.fromhex(key), bytes.fromhex(value)).show(types)
    assert shown == (
        {"type": "1", "data": {"group": "g", "topic": "foo", "partition": 0}},
        {
            "version": "4",
            "data": {
                "offset": 42,
                "leaderEpoch": 5,
                "metadata": "m",
                "commitTimestamp": AT,
                "topicId": "AAECAwQFBgcICQoLDA0ODw",
            },
        },
    )
