"""The rows of `group describe`: what is committed, what is read now, and how far behind it is."""

from __future__ import annotations

from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from quorumlog.client.administration.groups import GroupDescription
from quorumlog.client.group.offsets import CommittedOffset
from quorumlog.messages.groups import (
    AssignedTopic,
    DescribedConsumerGroup,
    DescribedConsumerMember,
    DescribedGroup,
    DescribedMember,
)
from quorumlog_cli.commands.groups.group_view import (
    EPOCH_COLUMNS,
    INSTANCE_COLUMN,
    MEMBER_COLUMNS,
    OFFSET_COLUMNS,
    UPGRADED_COLUMN,
    OffsetRow,
    assignment_text,
    dashes,
    epoch_columns,
    epochs_of,
    member_rows,
    member_table,
    offset_rows,
    offset_table,
    partitions_of,
    state_row,
    state_table,
    strategy_of,
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


def test_members_and_their_partitions() -> None:
    rows = member_rows(group(member("b", reads({"t": [2], "s": [1, 0]})), member("a", b"")))
    assert [(row.consumer_id, row.partitions, assignment_text(row.assignment)) for row in rows] == [
        ("a-1", 0, "-"),
        ("b-1", 3, "s:0,1;t:2"),
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
    assert epoch_columns(row) == [4, "orders:0,1", 5, "-"]
    assert (strategy_of(found), epochs_of(found)) == ("range", (6, 5))
    assert partitions_of(found, ()) == [("orders", 0), ("orders", 1)]


def test_a_group_of_the_classic_protocol_has_no_epochs() -> None:
    found = group(member("a", reads({"t": [0]})))
    (row,) = member_rows(found)
    assert dashes(epoch_columns(row)) == ["-", "t:0", "-", "-"]
    assert (strategy_of(found), epochs_of(found)) == (None, (None, None))


def test_what_is_missing_is_a_dash() -> None:
    assert dashes(["g", None, 0, ""]) == ["g", "-", 0, "-"]


def test_states_and_epochs() -> None:
    found = group(member("a", reads({"t": [0]})))
    told = state_row(found, {2: "host:9092"})
    assert told[:6] == ("g", 2, "host:9092", None, "Stable", 1)
    assert state_table([told], verbose=False).rows == [["g", "host:9092 (2)", "-", "Stable", 1]]
    elsewhere = state_table([state_row(found, {})], verbose=True)
    assert elsewhere.rows == [["g", "- (2)", "-", "Stable", "-", "-", 1]]
    assert elsewhere.columns[-3:] == ("GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")


def test_columns_that_only_some_groups_need() -> None:
    """Instance ids, and which protocol a member speaks in a group of both."""
    ids = ("a", None, 1), ("b", "first", 0)
    members = [
        DescribedConsumerMember(
            member_id=name,
            group_instance_id=instance,
            member_epoch=4,
            client_id="c",
            client_host="/h",
            member_type=kind,
        )
        for name, instance, kind in ids
    ]
    description = DescribedConsumerGroup(
        group_id="g", group_epoch=6, assignment_epoch=5, assignor_name="range", members=tuple(members)
    )
    rows = member_rows(GroupDescription(2, description))
    columns, cells = member_table(rows, verbose=True)
    assert [(row[columns.index(INSTANCE_COLUMN)], row[columns.index(UPGRADED_COLUMN)]) for row in cells] == [
        ("-", "true"),
        ("first", "false"),
    ]
    assert member_table(rows[:1], verbose=True).columns == (*MEMBER_COLUMNS, *EPOCH_COLUMNS)
    assert member_table(rows, verbose=False).columns == (*MEMBER_COLUMNS[:2], INSTANCE_COLUMN, *MEMBER_COLUMNS[2:])


def test_leader_epochs_are_shown_on_request() -> None:
    committed = {("t", 0): CommittedOffset(40, 3), ("t", 1): CommittedOffset(1)}
    columns, rows = offset_table(offset_rows(group(), committed, {}), verbose=True)
    assert columns[2:5] == ("PARTITION", "LEADER-EPOCH", "CURRENT-OFFSET") and [row[2:5] for row in rows] == [
        [0, 3, 40],
        [1, "-", 1],
    ]
    assert offset_table(offset_rows(group(), committed, {}), verbose=False).columns == OFFSET_COLUMNS


def test_records_and_time_stand_behind_the_lag_on_request() -> None:
    (row,) = offset_rows(group(), {("t", 0): CommittedOffset(40)}, {("t", 0): 50})
    columns, (cells,) = offset_table(
        [row._replace(records=7, behind_ms=2_100, is_estimate=True)], verbose=False, records=True
    )
    shown = dict(zip(columns, cells, strict=True))
    assert (shown["LAG"], shown["RECORDS"], shown["BEHIND"]) == (10, "≤7", "2.1 s")
    columns, (cells,) = offset_table([row], verbose=True, records=True)
    assert dict(zip(columns, cells, strict=True))["RECORDS"] == "-", "as of a Kafka"
