"""A record of every type and form of the internal topics: (key, version, value)."""

from __future__ import annotations

from typing import Any

from quorumlog.records.coordinator import consumer_groups as groups
from quorumlog.records.coordinator.joint import (
    Cause,
    Fact,
    GivenUpKey,
    GivenUpValue,
    JointChild,
    JointKey,
    JointValue,
    pack,
)
from quorumlog.records.coordinator.offsets import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    OffsetKey,
)
from quorumlog.records.coordinator.transactions import TransactionKey, TransactionPartitions, TransactionValue

AT = 1_700_000_000_000
ID = bytes(range(16))


def offset_value(version: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        42,
        "m",
        AT,
        expire_timestamp=AT + 1 if version == 1 else -1,
        leader_epoch=5 if version >= 3 else -1,
        topic_id=ID if version == 4 else bytes(16),
    )


def classic_group_value(version: int) -> GroupMetadataValue:
    member = MemberMetadata(
        "m1",
        "c",
        "/h",
        45_000,
        b"\1",
        b"",
        rebalance_timeout=300_000 if version >= 1 else -1,
        group_instance_id="i" if version >= 3 else None,
    )
    return GroupMetadataValue("consumer", 7, None, None, (member, member), AT if version >= 2 else -1)


def transaction_value(version: int) -> TransactionValue:
    tags: dict[str, int] = {}
    if version == 1:
        tags = {"next_producer_id": 8, "next_producer_epoch": 0, "client_transaction_version": 2}
    return TransactionValue(7, 3, 60_000, 1, (TransactionPartitions("t", (0, 5)),), AT, AT - 1, **tags)


CLASSIC_MEMBER = groups.ConsumerGroupMemberMetadataValue(
    None,
    None,
    "c",
    "/h",
    (),
    None,
    300_000,
    None,
    groups.ClassicMemberMetadata(45_000, (groups.ClassicProtocol("range", b"\0\1"),)),
)
CURRENT = groups.ConsumerGroupCurrentMemberAssignmentValue(
    3, 2, 1, (groups.AssignedPartitions(ID, (0, 1), (2, 3)),), (groups.AssignedPartitions(ID, (7,)),)
)
GROUP_SAMPLES: list[tuple[Any, int, Any]] = [
    *((OffsetKey("g", "grüße", 7), version, offset_value(version)) for version in range(5)),
    (OffsetKey("g", "t", 1), 4, OffsetCommitValue(0, "", AT)),
    *((GroupMetadataKey("g"), version, classic_group_value(version)) for version in range(5)),
    (GroupMetadataKey("empty"), 3, GroupMetadataValue("", 0, None, None, (), AT)),
    (groups.ConsumerGroupMetadataKey("g"), 0, groups.ConsumerGroupMetadataValue(3, -1)),
    (groups.ConsumerGroupMetadataKey("g"), 0, groups.ConsumerGroupMetadataValue(3)),
    (groups.ConsumerGroupMemberMetadataKey("g", "m"), 0, CLASSIC_MEMBER),
    (
        groups.ConsumerGroupMemberMetadataKey("g", "m"),
        0,
        groups.ConsumerGroupMemberMetadataValue("i", "r", "c", "/h", ("a", "b"), "a.*", 1, "range"),
    ),
    (
        groups.ConsumerGroupTargetAssignmentMetadataKey("g"),
        0,
        groups.ConsumerGroupTargetAssignmentMetadataValue(3, AT),
    ),
    (
        groups.ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        0,
        groups.ConsumerGroupTargetAssignmentMemberValue((groups.TargetPartitions(ID, (0, 1)),)),
    ),
    (groups.ConsumerGroupCurrentMemberAssignmentKey("g", "m"), 0, CURRENT),
    (
        groups.ConsumerGroupRegularExpressionKey("g", "a.*"),
        0,
        groups.ConsumerGroupRegularExpressionValue(("a",), 7, AT),
    ),
]
TRANSACTION_SAMPLES: list[tuple[Any, int, Any]] = [
    *((TransactionKey("x"), version, transaction_value(version)) for version in range(2)),
    (TransactionKey("empty"), 0, TransactionValue(7, 0, 1, 0, None, AT)),
    (TransactionKey("empty"), 1, TransactionValue(7, 0, 1, 0, None, AT)),
    (TransactionKey("done"), 1, TransactionValue(7, 32_767, 1, 4, (), AT, AT, previous_producer_id=6)),
]
JOINT_CHILD = JointChild("spark/q", 3, bytes(range(16)), "run", 57, "/checkpoints/q", Cause.TIMED_OUT)
JOINT_SAMPLES: list[tuple[Any, int, Any]] = [
    (TransactionKey("joint:spark/q:3:k"), 1, TransactionValue(7, 2, 1, 1, (), AT, AT, joint=JOINT_CHILD)),
    (
        JointKey("spark/q"),
        0,
        JointValue(0, "/checkpoints/q", "run", ("r1", "r2"), 57, (Fact("rows", 7),), pack([(0, 5), (1, 32_766)]), AT),
    ),
    (GivenUpKey("spark/q", "run", 57), 0, GivenUpValue(AT)),
    (JointKey("write/1"), 0, JointValue(2, "", "run", (), 0, (), b"", AT)),
]
"""What is not Kafka's."""
