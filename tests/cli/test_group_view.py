"""The rows of `group describe` and `group lag`: what is committed, what is read now, and how far behind it is."""

from __future__ import annotations

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from cli.commands.group_view import (
    OffsetRow,
    assignment_text,
    dashes,
    epoch_columns,
    epochs_of,
    lag_by_topic,
    member_rows,
    offset_rows,
    partitions_of,
    strategy_of,
)
from quorumlog.client.admin_groups import GroupDescription
from quorumlog.client.group_offsets import CommittedOffset
from quorumlog.messages.groups import (
    AssignedTopic,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedGroup,
    DescribedMember,
)


def member(name: str, assignment: bytes) -> DescribedMember:
    return DescribedMember(
        member_id=f"{name}-1",
        client_id=name,
        client_host="/10.0.0.1",
        member_metadata=b"",
        member_assignment=assignment,
    )


def reads(assignment: dict[str, list[int]]) -> bytes:
    """As another client's leader writes it."""
    return bytes(ConsumerProtocolMemberAssignment(0, list(assignment.items()), b"").encode())


def group(*members: DescribedMember, protocol_type: str = "consumer") -> GroupDescription:
    found = DescribedGroup(group_id="g", group_state="Stable", protocol_type=protocol_type, members=members)
    return GroupDescription(2, found)


def test_each_partition_has_its_reader_and_its_lag() -> None:
    found = group(member("a", reads({"t": [0, 1]})), member("b", reads({"t": [2]})))
    committed = {("t", 0): CommittedOffset(40), ("t", 2): CommittedOffset(90), ("gone", 0): CommittedOffset(5)}
    ends = {("t", 0): 100, ("t", 1): 7, ("t", 2): 80}
    assert offset_rows(found, committed, ends) == [
        OffsetRow("g", "gone", 0, 5, None, None, None, None, None),
        OffsetRow("g", "t", 0, 40, 100, 60, "a-1", "/10.0.0.1", "a"),
        OffsetRow("g", "t", 1, None, 7, None, "a-1", "/10.0.0.1", "a"),
        OffsetRow("g", "t", 2, 90, 80, 0, "b-1", "/10.0.0.1", "b"),  # a commit may be ahead of an older end
    ]


def test_lag_counts_what_is_committed() -> None:
    found = group(member("a", reads({"t": [0, 1, 2]})))
    committed = {("t", 0): CommittedOffset(40), ("t", 1): CommittedOffset(1), ("u", 0): CommittedOffset(0)}
    rows = offset_rows(found, committed, {("t", 0): 100, ("t", 1): 7, ("t", 2): 80, ("u", 0): 0})
    assert lag_by_topic(rows) == {"t": (66, 60), "u": (0, 0)}


def test_members_and_their_partitions() -> None:
    rows = member_rows(group(member("b", reads({"t": [2], "s": [1, 0]})), member("a", b"")))
    assert [(row.consumer_id, row.partitions, assignment_text(row.assignment)) for row in rows] == [
        ("a-1", 0, "-"),
        ("b-1", 3, "s(0,1),t(2)"),
    ]


def test_bytes_of_another_protocol_are_left_alone() -> None:
    assert partitions_of(group(member("a", reads({"t": [0]})), protocol_type="connect"), ()) == []
    damaged = group(member("a", reads({"t": [0]})[:-6]), member("b", b"\xff\xff"))
    assert [row.partitions for row in member_rows(damaged)] == [0, 0]


def test_a_group_of_the_consumer_protocol() -> None:
    """Its coordinator knows what members own, and what they will own."""
    orders, gone = (AssignedTopic(topic_id=bytes(16), topic_name=name, partitions=(0, 1)) for name in ("orders", ""))
    member = DescribedConsumerMember(
        member_id="m", member_epoch=4, client_id="c", client_host="/h", assignment=(orders, gone), target_assignment=()
    )
    group = DescribedConsumerGroup(
        group_id="g", group_epoch=6, assignment_epoch=5, assignor_name="range", members=(member,)
    )
    found = GroupDescription(2, group)
    (row,) = member_rows(found)
    assert (row.partitions, row.assignment) == (2, {"orders": (0, 1)})
    assert epoch_columns(row) == [4, "orders(0,1)", 5, "-"]
    assert (strategy_of(found), epochs_of(found)) == ("range", (6, 5))
    assert partitions_of(found, ()) == [("orders", 0), ("orders", 1)]


def test_a_group_of_the_classic_protocol_has_no_epochs() -> None:
    found = group(member("a", reads({"t": [0]})))
    (row,) = member_rows(found)
    assert dashes(epoch_columns(row)) == ["-", "t(0)", "-", "-"]
    assert (strategy_of(found), epochs_of(found)) == (None, (None, None))


def test_what_is_missing_is_a_dash() -> None:
    assert dashes(["g", None, 0, ""]) == ["g", "-", 0, "-"]
